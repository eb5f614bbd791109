// Gates between stages: nothing of a stage is begun before the stages before it are over, what they
// came to holds, and as many people as it asks for have approved that.
#include <doctest/doctest.h>

#include "common/score/outcome.h"
#include "coordinator/core/notes.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;
using Kind = OperatorActKind;
using Verdict = OperatorAnswer::Verdict;
using Attempts = std::vector<AttemptId>;

namespace {

// Two runs of task 0 in stage "one", two in stage "two", before which a gate stands by `rules`.
PlanView staged(const StageRules& rules, const StageRules& first = {}) {
  PlanView plan;
  plan.scopes = {{"global", micro(1000)},
                 {"stage:one", micro(1000)},
                 {"task:0", micro(1000)},
                 {"stage:two", micro(1000)}};
  plan.stage_scopes = {ScopeId(1), ScopeId(3)};
  plan.tasks = {{ScopeId(2), micro(10), 0}};
  plan.runs = {{0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 1, 0}};
  plan.stages = {{"one", first, micro(1000)}, {"two", rules, micro(1000)}};
  plan.method_names = {"agent"};
  return plan;
}

StageRules approved_by(std::uint32_t people) {
  StageRules out;
  out.people = people;
  return out;
}

StageRules entry(StagePredicate is, std::uint32_t millionths = 0, std::uint32_t people = 0) {
  StageRules out;
  out.entry = {{is, "", millionths}};
  out.people = people;
  return out;
}

// Desk::act says that it was ada, whoever it was.
OperatorAnswer approve(Desk& desk, const char* by, std::string digest = "") {
  OperatorAct a;
  a.kind = Kind::kApproveStage;
  a.stage = "two";
  a.digest = std::move(digest);
  a.by = by;
  a.reason = "because";
  desk.feed(OperatorAsked{++desk.ticket, a});
  REQUIRE_FALSE(desk.told.empty());
  return desk.told.back().answer;
}

void end_first_stage(Desk& desk) {
  desk.sync("w", 4);
  desk.result("w", attempt_of(0), 1);
  desk.result("w", attempt_of(1), 1);
}

// Not the agent's doing, and no failure that is counted: it may be made again.
void end_invalid(Desk& desk, AttemptId id) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.outcome = RunOutcome::kInvalid;
  r.termination = Termination::kInfrastructure;
  r.archive_bytes = 1;
  desk.feed(ResultReceived{WorkerId("w"), r});
}

// As if its method's program could not start.
void end_unstarted(Desk& desk, AttemptId id) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.infrastructure = true;
  r.termination = Termination::kAgentUnavailable;
  r.fault = Fault::kAgent;
  r.cause = r.rationale = could_not_start("exit 127");
  r.facts.agent_exit = 127;
  desk.feed(ResultReceived{WorkerId("w"), r});
}

void make_again(Desk& desk, RunId run) {
  OperatorAct again;
  again.kind = Kind::kRequeue;
  again.runs = {run};
  again.invalid = true;
  REQUIRE(desk.act(again).verdict == Verdict::kDone);
}

std::vector<Note> notes_of(const Desk& desk, const char* kind) {
  std::vector<Note> out;
  for (const Note& n : desk.facts<Note>())
    if (n.kind == kind) out.push_back(n);
  return out;
}

SchedulerSettings ends_at_gate() {
  SchedulerSettings s = settings();
  s.stays_at_gate = false;
  return s;
}

OperatorAnswer waive(Desk& desk, const char* stage, const char* criterion) {
  OperatorAct a;
  a.kind = Kind::kWaive;
  a.stage = stage;
  a.criterion = criterion;
  return desk.act(a);
}

OperatorAnswer close(Desk& desk, const char* stage) {
  OperatorAct a;
  a.kind = Kind::kCloseStage;
  a.stage = stage;
  return desk.act(a);
}

void raise(Desk& desk) {
  OperatorAct a;
  a.kind = Kind::kRaise;
  for (const std::uint32_t scope : {0U, 1U}) {
    a.scope = ScopeId(scope);
    a.to = micro(3000);
    REQUIRE(desk.act(a).verdict == Verdict::kDone);
  }
}

// Its first stage has room for one of its runs, and a raise makes it two.
PlanView narrow(const StageRules& rules, const StageRules& first) {
  PlanView plan = staged(rules, first);
  plan.scopes[1].cap = plan.stages[0].registered = micro(15);
  return plan;
}

// The next life, by what is durable of the one before.
void inherit(Desk& next, const Desk& before) {
  for (const AttemptResult& r : before.facts<AttemptResult>())
    if (r.sets_outcome) next.core.restore_fact(RunEnded{r.attempt.run, r.attempt, r.outcome});
  for (const Note& n : before.standing()) REQUIRE(next.core.restore_note(n).ok());
}

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("nothing of a stage behind a gate begins before the stage before it is over") {
    Desk desk(staged(entry(StagePredicate::kCompleteOrStopped)));
    desk.start();
    desk.sync("w", 4);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
    CHECK(desk.core.why(RunId(2)).code == "gate");
    CHECK(desk.core.gate()->waits_for == "runs");
    CHECK(desk.core.gate()->behind == 2);
    desk.result("w", attempt_of(0), 1);
    CHECK(desk.assigned.size() == 2);
    CHECK(notes_of(desk, StageChecked::kNote).empty());
    desk.result("w", attempt_of(1), 1);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1), attempt_of(2), attempt_of(3)});
    CHECK_FALSE(desk.core.gate().has_value());
    CHECK(notes_of(desk, StageChecked::kNote).size() == 1);
    CHECK(notes_of(desk, StageOpened::kNote).size() == 1);
  }

  TEST_CASE("a run that could not start waits for later stages, and is invalid to the gate") {
    for (const bool works : {true, false}) {
      CAPTURE(works);
      Desk desk(staged(entry(StagePredicate::kInvalidShare, 1'000'000)));
      desk.start();
      desk.sync("w", 4);
      end_unstarted(desk, attempt_of(0));
      end_unstarted(desk, attempt_of(1));
      const StageFacts facts = desk.core.facts_of(0);
      CHECK(facts.methods[0].ended == 2);
      CHECK(facts.methods[0].invalid == 2);
      CHECK(facts.infrastructure == 2);
      CHECK(facts.parked == 0);
      REQUIRE(desk.assigned.size() == 4);  // the gate is open
      CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
      for (const std::uint32_t run : {2U, 3U})
        if (works)
          desk.result("w", attempt_of(run), 1);
        else
          end_unstarted(desk, attempt_of(run));
      CHECK(desk.core.counts().ended[works ? 1 : 3] == (works ? 2 : 4));
      CHECK(desk.core.facts_of(0).methods[0].invalid == (works ? 0 : 2));
      CHECK(desk.core.facts_of(0).infrastructure == (works ? 0 : 2));
      CHECK(desk.ended == true);
    }
  }

  TEST_CASE("a campaign that ends at a gate keeps what could not start for its next life") {
    Desk desk(staged(entry(StagePredicate::kInvalidShare, 0)), ends_at_gate());
    desk.start();
    desk.sync("w", 4);
    end_unstarted(desk, attempt_of(0));
    end_unstarted(desk, attempt_of(1));
    CHECK(desk.at_gate);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
    CHECK(desk.core.gate()->waits_for == "criteria");
  }

  TEST_CASE("no gate counts an exit code as infrastructure once its method has been at work") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 1;
    Desk desk(staged(entry(StagePredicate::kInfrastructureShare, 0)), s);
    desk.start();
    desk.sync("w", 4);
    end_unstarted(desk, attempt_of(0));
    desk.result("w", attempt_of(1), 1);
    CHECK(desk.core.facts_of(0).infrastructure == 0);
    CHECK(desk.core.facts_of(0).attempts == 2);
    REQUIRE(desk.assigned.size() == 4);  // open
    end_unstarted(desk, attempt_of(2));  // a failure at once
    desk.result("w", attempt_of(3), 0, Termination::kInfrastructure);
    CHECK(desk.core.facts_of(1).infrastructure == 1);
    CHECK(desk.core.facts_of(1).methods[0].invalid == 0);
    Desk next(staged(entry(StagePredicate::kInfrastructureShare, 0)), s);
    next.core.restore_fact(RunEnded{RunId(0), attempt_of(0), RunOutcome::kFailure});
    RestoredAttempt had;
    had.attempt = attempt_of(0);
    had.state = AttemptState::kFinished;
    had.has_result = had.infrastructure = had.settled = true;
    had.termination = Termination::kAgentUnavailable;
    next.core.restore_attempt(had);
    CHECK(next.core.facts_of(0).infrastructure == 0);
    CHECK(next.core.facts_of(0).attempts == 1);
  }

  TEST_CASE("stages without a gate follow one another without waiting") {
    PlanView plan = staged({});
    plan.stages.clear();
    plan.method_names.clear();
    Desk desk(plan);
    desk.start();
    desk.sync("w", 4);
    CHECK(desk.assigned.size() == 4);
    CHECK_FALSE(desk.core.gate().has_value());
    for (const auto& [name, text] : desk.core.durable()) CHECK_FALSE(name.starts_with("gate"));
  }

  TEST_CASE("a stage waits for as many people as it asks for, each counted once") {
    Desk desk(staged(approved_by(2)));
    desk.start();
    CHECK(approve(desk, "ada").verdict == Verdict::kRefused);  // nothing to approve yet
    end_first_stage(desk);
    CHECK(desk.core.gate()->waits_for == "approval");
    CHECK(desk.assigned.size() == 2);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    CHECK(approve(desk, "ada").verdict == Verdict::kUnchanged);
    CHECK(desk.assigned.size() == 2);
    CHECK(desk.core.gate()->approved == std::vector<std::string>{"ada"});
    CHECK(approve(desk, "bo").verdict == Verdict::kDone);
    CHECK(desk.assigned.size() == 4);
    CHECK(approve(desk, "cy").verdict == Verdict::kUnchanged);  // it is open
    CHECK_FALSE(desk.ended.has_value());
  }

  TEST_CASE("an approval is of one check, and lapses when the facts change") {
    Desk desk(staged(entry(StagePredicate::kInvalidShare, 1'000'000, 2)));
    desk.start();
    desk.sync("w", 4);
    desk.result("w", attempt_of(0), 1);
    end_invalid(desk, attempt_of(1));
    const std::string before = desk.core.gate()->digest;
    CHECK(approve(desk, "ada", "0000").verdict == Verdict::kRefused);
    CHECK(approve(desk, "ada", before.substr(0, 12)).verdict == Verdict::kDone);
    // What is behind the gate is none of its facts.
    CHECK(desk.act(Kind::kCancel, {RunId(3)}).verdict == Verdict::kDone);
    CHECK(desk.core.gate()->digest == before);
    CHECK(desk.core.gate()->approved.size() == 1);
    make_again(desk, RunId(1));
    desk.result("w", attempt_of(1, 2), 1);
    CHECK(desk.core.gate()->digest != before);
    CHECK(desk.core.gate()->approved.empty());
    CHECK(approve(desk, "bo").verdict == Verdict::kDone);
    CHECK(desk.core.gate().has_value());
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    CHECK_FALSE(desk.core.gate().has_value());
  }

  TEST_CASE("criteria that do not hold keep a stage shut, and nobody can approve them away") {
    Desk desk(staged(entry(StagePredicate::kInvalidShare, 400'000, 1)));
    desk.start();
    desk.sync("w", 4);
    desk.result("w", attempt_of(0), 1);
    end_invalid(desk, attempt_of(1));
    CHECK(desk.core.gate()->waits_for == "criteria");
    const std::string before = desk.core.gate()->digest;
    const OperatorAnswer refused = approve(desk, "ada");
    CHECK(refused.verdict == Verdict::kRefused);
    CHECK(refused.text.find("agent 1 of 2") != std::string::npos);
    CHECK(desk.assigned.size() == 2);
    // Mended: the run is made again, and what it comes to is judged anew.
    make_again(desk, RunId(1));
    CHECK(desk.core.gate()->waits_for == "runs");
    desk.result("w", attempt_of(1, 2), 1);
    CHECK(desk.core.gate()->waits_for == "approval");
    CHECK(desk.core.gate()->digest != before);
    CHECK(approve(desk, "ada", before).verdict == Verdict::kRefused);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    CHECK(desk.assigned.size() == 5);
    CHECK(notes_of(desk, StageChecked::kNote).size() == 2);
  }

  TEST_CASE("the exit of a stage keeps the next one shut, though that asks for nothing") {
    StageRules first;
    first.exit = {{StagePredicate::kSpendWithin, "", 0}};
    Desk desk(staged({}, first));
    desk.start();
    end_first_stage(desk);
    CHECK(desk.assigned.size() == 4);  // within: open by itself
    Desk raised(staged({}, first));
    raised.start();
    raised.sync("w", 4);
    raise(raised);
    raised.result("w", attempt_of(0), 1);
    raised.result("w", attempt_of(1), 1);
    CHECK(raised.assigned.size() == 4);  // judged by what was spent
  }

  TEST_CASE(
      "a stage that spent beyond what was registered is waived, and that is of one criterion") {
    StageRules first;
    first.exit = {{StagePredicate::kSpendWithin, "", 0}, {StagePredicate::kInvalidShare, "", 0}};
    Desk desk(narrow(approved_by(1), first));
    desk.start();
    CHECK(waive(desk, "one", "spend_within").verdict == Verdict::kRefused);  // not over
    raise(desk);
    desk.sync("w", 4);
    desk.result("w", attempt_of(0), 10);
    desk.result("w", attempt_of(1), 10);
    CHECK(desk.assigned.size() == 2);
    CHECK(desk.core.gate()->waits_for == "criteria");
    CHECK(waive(desk, "one", "spend").verdict == Verdict::kRefused);
    CHECK(waive(desk, "one", "closed").verdict == Verdict::kRefused);
    CHECK(waive(desk, "one", "invalid_share").verdict == Verdict::kRefused);  // it holds
    CHECK(waive(desk, "two", "spend_within").verdict == Verdict::kRefused);
    const std::string before = desk.core.gate()->digest;
    CHECK(waive(desk, "one", "spend_within").verdict == Verdict::kDone);
    CHECK(waive(desk, "one", "exit spend_within").verdict == Verdict::kRefused);  // done already
    CHECK(desk.core.gate()->waits_for == "approval");
    CHECK(desk.core.gate()->digest != before);
    CHECK(approve(desk, "ada", before).verdict == Verdict::kRefused);
    // The next life waits for the same approval, of the same check.
    Desk next(narrow(approved_by(1), first));
    for (const Note& n : notes_of(desk, BudgetRaised::kNote))
      next.core.restore_fact(fact_of<BudgetRaised>(n).value());
    inherit(next, desk);
    for (const AttemptSettled& s : desk.facts<AttemptSettled>()) next.core.restore_fact(s);
    next.start();
    CHECK(next.core.gate()->digest == desk.core.gate()->digest);
    CHECK(approve(next, "ada").verdict == Verdict::kDone);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    CHECK(desk.assigned.size() == 4);
    CHECK(waive(desk, "one", "spend_within").verdict == Verdict::kRefused);  // all are open
  }

  TEST_CASE("a closed stage begins nothing more, and its exit is decided over what was run") {
    StageRules first;
    first.exit = {{StagePredicate::kEndpointComputable, "", 0}};
    PlanView plan = staged({}, first);  // two tasks in its first stage, one of them run
    plan.scopes.push_back({"task:1", micro(1000)});
    plan.tasks.push_back({ScopeId(4), micro(10), 0});
    plan.runs[1].task = 1;
    Desk desk(plan);
    desk.start();
    CHECK(close(desk, "two").verdict == Verdict::kRefused);  // it is not open
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 1);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
    CHECK(close(desk, "one").verdict == Verdict::kDone);
    CHECK(close(desk, "one").verdict == Verdict::kRefused);
    CHECK(desk.core.phase(RunId(1)) == RunPhase::kCancelled);
    CHECK(desk.cancelled == Attempts{attempt_of(1)});
    CHECK(desk.assigned.size() == 2);  // its attempt is still to be paid for
    desk.result("w", attempt_of(1), 1, Termination::kOperatorCancel);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1), attempt_of(2)});
    CHECK(desk.act(Kind::kRequeue, {RunId(1)}).verdict == Verdict::kUnchanged);
    OperatorAct act;
    act.kind = Kind::kRequeue;
    act.runs = {RunId(1), RunId(3)};
    for (const bool invalid : {false, true}) {
      act.invalid = invalid;
      const OperatorAnswer mixed = desk.act(act);
      CHECK(mixed.verdict == Verdict::kUnchanged);
      CHECK_MESSAGE(mixed.text.find(kStageClosed) != std::string::npos, mixed.text);
    }
    CHECK(desk.core.phase(RunId(1)) == RunPhase::kCancelled);
    Desk next(plan);
    inherit(next, desk);
    next.start();
    CHECK_FALSE(next.core.gate().has_value());
    CHECK(next.core.gates().is_closed(plan, RunId(1)));
    CHECK(next.act(Kind::kRequeue, {RunId(1)}).verdict == Verdict::kUnchanged);
  }

  TEST_CASE("a closed stage of which no task ended under every method has no endpoint") {
    StageRules first;
    first.exit = {{StagePredicate::kEndpointComputable, "", 0}};
    PlanView plan = staged({}, first);
    plan.method_names = {"agent", "other"};
    plan.runs[1].method = 1;
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 1);
    CHECK(close(desk, "one").verdict == Verdict::kDone);
    desk.result("w", attempt_of(1), 1, Termination::kOperatorCancel);
    CHECK(desk.core.gate()->waits_for == "criteria");
    CHECK(desk.core.facts_of(0).no_task);
    CHECK(waive(desk, "one", "endpoint_computable").verdict == Verdict::kDone);
    CHECK_FALSE(desk.core.gate().has_value());
  }

  TEST_CASE("where only a person can go on, a coordinator that does not stay ends and says so") {
    Desk desk(staged(approved_by(1)), ends_at_gate());
    desk.start();
    end_first_stage(desk);
    CHECK(desk.ended == false);
    CHECK(desk.at_gate);
    // What it had written opens the stage in the next life, once somebody has approved.
    Desk next(staged(approved_by(1)));
    inherit(next, desk);
    next.start();
    CHECK(next.core.gate()->waits_for == "approval");
    CHECK(next.core.gate()->digest == desk.core.gate()->digest);
    CHECK(notes_of(next, StageChecked::kNote).empty());  // noted already
    CHECK(approve(next, "ada").verdict == Verdict::kDone);
    next.sync("w", 4);
    CHECK(next.assigned == Attempts{attempt_of(2), attempt_of(3)});
  }

  TEST_CASE("an approval that was durable when its coordinator died opens the stage in the next") {
    Desk desk(staged(approved_by(1)));
    desk.start();
    end_first_stage(desk);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    Desk next(staged(approved_by(1)), ends_at_gate());
    for (const AttemptResult& r : desk.facts<AttemptResult>())
      if (r.sets_outcome) next.core.restore_fact(RunEnded{r.attempt.run, r.attempt, r.outcome});
    for (const Note& n : desk.standing())  // all but that it was opened
      if (n.kind != StageOpened::kNote) REQUIRE(next.core.restore_note(n).ok());
    next.start();
    next.sync("w", 4);
    CHECK(next.assigned == Attempts{attempt_of(2), attempt_of(3)});
    CHECK(notes_of(next, StageOpened::kNote).size() == 1);
  }

  TEST_CASE("a journal in which a stage opened without its check or its approvals is refused") {
    Desk desk(staged(approved_by(1)));
    desk.start();
    end_first_stage(desk);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    const std::vector<Note> all = desk.standing();
    for (const char* without : {StageChecked::kNote, OperatorFact::kNote}) {
      CAPTURE(without);
      Desk next(staged(approved_by(1)));
      Status last = ok_status();
      for (const Note& n : all)
        if (n.kind != without && last.ok()) last = next.core.restore_note(n);
      REQUIRE_FALSE(last.ok());
      CHECK(last.error().code == Errc::kCorrupt);
    }
    Desk forged(staged(approved_by(1)));
    Note check = notes_of(desk, StageChecked::kNote).front();
    check.detail.replace(check.detail.find("\"ended\":2"), 9, "\"ended\":3");
    CHECK_FALSE(forged.core.restore_note(check).ok());
  }

  TEST_CASE("a run that was cancelled or parked is over, one that waits to be tried again is not") {
    SchedulerSettings slow = settings();
    slow.retries.backoff = Millis(5'000);
    Desk desk(staged(entry(StagePredicate::kCompleteOrStopped)), slow);
    desk.start();
    desk.sync("w", 1);
    CHECK(desk.act(Kind::kCancel, {RunId(1)}).verdict == Verdict::kDone);
    desk.result("w", attempt_of(0), 1, Termination::kInfrastructure);
    CHECK(desk.core.gate()->waits_for == "runs");
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kBackoff);
    desk.now.mono += Millis(60'000);
    desk.feed(TimerFired{});
    desk.sync("w", 1);
    desk.result("w", attempt_of(0, 2), 1);
    CHECK(desk.assigned.back() == attempt_of(2));
  }

  TEST_CASE("cancelled runs behind a gate that are put in line again stay behind it") {
    Desk desk(staged(approved_by(1)));
    desk.start();
    CHECK(desk.act(Kind::kCancel, {RunId(2), RunId(3)}).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kRequeue, {RunId(2)}).verdict == Verdict::kDone);
    CHECK(desk.core.gate()->behind == 1);
    end_first_stage(desk);
    CHECK(desk.assigned.size() == 2);
    CHECK(approve(desk, "ada").verdict == Verdict::kDone);
    CHECK(desk.assigned.back() == attempt_of(2));
    desk.result("w", attempt_of(2), 1);
    CHECK(desk.ended == true);
  }
}
