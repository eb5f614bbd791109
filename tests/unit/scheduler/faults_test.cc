// One bad task must not stop a campaign, and a broken agent is not a failure.
#include <doctest/doctest.h>

#include "common/score/outcome.h"
#include "coordinator/journal/legacy_text.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {

// Tasks 0 and 1, needing nothing special, with a method for each run.
PlanView mixed(const std::vector<std::pair<std::uint32_t, std::uint16_t>>& runs) {
  PlanView plan = plan_of({});
  plan.tasks[1].needs = 0;
  for (const auto& [task, method] : runs) plan.runs.push_back({task, 0, method});
  return plan;
}

void fails(Desk& desk, const std::string& worker, AttemptId id, Fault fault = Fault::kTask,
           const std::string& cause = "setup step 1 (pip install x): exit 1") {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.infrastructure = true;
  r.termination =
      fault == Fault::kAgent ? Termination::kAgentUnavailable : Termination::kInfrastructure;
  r.fault = fault;
  r.cause = cause;
  r.facts = journal::facts_in(r.outcome, r.termination, cause);
  r.rationale = cause + "; stderr ends: no route to the index";
  desk.feed(ResultReceived{WorkerId(worker), r});
}

std::vector<FaultFact> told(const Desk& desk, FaultFact::Verdict verdict) {
  std::vector<FaultFact> out;
  for (const Note& n : desk.facts<Note>())
    if (n.kind == FaultFact::kNote)
      if (const FaultFact f = fact_of<FaultFact>(n).value(); f.verdict == verdict) out.push_back(f);
  return out;
}

// Who was given the attempt.
std::string worker_of(const Desk& desk, AttemptId id) {
  std::string out;
  for (const AttemptGranted& g : desk.facts<AttemptGranted>())
    if (g.attempt == id) out = g.worker.raw();
  return out;
}

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a task whose setup fails on every worker is parked and no worker stands back") {
    Desk desk(mixed({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}}));
    desk.start();
    desk.sync("w0", 1);
    desk.sync("w1", 1);
    REQUIRE(desk.assigned.size() == 2);
    // Each is tried on the other worker before it is tried where it failed.
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      const std::string worker = worker_of(desk, id);
      if (id.run.raw() < 4)
        fails(desk, worker, id);
      else
        desk.result(worker.c_str(), id, 1);
    }
    CHECK(told(desk, FaultFact::Verdict::kFailed).size() <= 4);  // and what was under way
    CHECK(told(desk, FaultFact::Verdict::kParked).size() == 1);
    CHECK(desk.core.counts().parked == 4);
    CHECK(desk.core.counts().ended[0] == 2);  // the other task never noticed
    CHECK(desk.ended == true);
    for (WorkerIndex w = 0; w < 2; ++w) {
      CHECK(standing(desk.core.roster().at(w)) == "ready");
      CHECK(desk.core.roster().at(w).failures == 0);
    }
    const Explanation why = desk.core.why(RunId(3));
    CHECK(why.code == "parked");
    CHECK(why.text.find("its task is parked: it failed") != std::string::npos);
    CHECK(why.text.find("on w0 and w1: setup step 1 (pip install x): exit 1; stderr ends: "
                        "no route to the index") != std::string::npos);
    CHECK(desk.facts<RunParked>().empty());  // no envelope is short
  }

  TEST_CASE("alone on one worker a task is parked after as many equal failures as registered") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 10;
    s.retries.park_after = 2;
    Desk desk(mixed({{0, 0}, {1, 0}}), s);
    desk.start();
    desk.sync("w", 1);
    fails(desk, "w", attempt_of(0), Fault::kTask, "setup step 1: exit 1");
    CHECK(desk.core.phase(RunId(0)) != RunPhase::kParked);
    desk.result("w", attempt_of(1), 1);
    // Another failure than the one before begins to count anew.
    for (std::uint32_t no = 2; no <= 3; ++no) {
      CHECK(desk.core.phase(RunId(0)) != RunPhase::kParked);
      fails(desk, "w", attempt_of(0, no), Fault::kTask, "setup step 1: exit 2");
    }
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
    CHECK(desk.core.roster().at(0).failures == 0);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a fault that a restarted worker names is the task's and not the worker's death") {
    Desk desk(mixed({{0, 0}, {1, 0}}));
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 2);  // it goes on with it in its next life
    fails(desk, "w", attempt_of(0));
    CHECK(told(desk, FaultFact::Verdict::kFailed).size() == 1);
    CHECK(desk.core.roster().at(0).failures == 0);
  }

  TEST_CASE("a host where no setup works does not park what another host can do") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 20;
    Desk desk(mixed({{0, 0}, {0, 0}, {0, 0}, {0, 0}}), s);
    desk.start();
    desk.sync("deaf", 3);
    std::size_t at = 0;
    for (; at < desk.assigned.size(); ++at) fails(desk, "deaf", desk.assigned[at]);
    CHECK(desk.core.counts().parked == 4);  // there was no other
    CHECK(desk.ended == true);
    desk.ended.reset();
    // Had it been there in time it would have been asked.
    Desk both(mixed({{0, 0}, {0, 0}, {0, 0}, {0, 0}}), s);
    both.start();
    both.sync("deaf", 3);
    both.sync("sound", 1);
    for (at = 0; at < both.assigned.size(); ++at) {
      const AttemptId id = both.assigned[at];
      worker_of(both, id) == "sound" ? both.result("sound", id, 1) : fails(both, "deaf", id);
    }
    CHECK(told(both, FaultFact::Verdict::kParked).empty());
    CHECK(both.core.counts().ended[0] == 4);
  }

  TEST_CASE("a requeue of one run lets go whatever was parked with it") {
    Desk desk(mixed({{0, 0}, {0, 0}, {0, 0}, {1, 0}}));
    desk.start();
    desk.sync("w", 1);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at)
      if (desk.assigned[at].run != RunId(3)) {
        fails(desk, "w", desk.assigned[at]);
      } else if (desk.core.counts().parked == 0) {
        desk.decline("w", desk.assigned[at], 0);
        desk.sync("w", 1);
      }
    REQUIRE(desk.core.counts().parked == 3);
    CHECK(desk.act(OperatorActKind::kRequeue, {RunId(1)}).text ==
          "1 run in line again, and 2 runs parked with them");
    CHECK(desk.core.counts().parked == 0);
    CHECK(desk.act(OperatorActKind::kRequeue, {RunId(1)}).verdict ==
          OperatorAnswer::Verdict::kUnchanged);
  }

  TEST_CASE("what fails on one worker and works on another counts against that host") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 20;
    Desk desk(mixed({{0, 0}, {0, 0}, {0, 0}, {0, 0}}), s);
    desk.start();
    desk.sync("sound", 1);
    desk.sync("deaf", 3);
    REQUIRE(desk.assigned.size() == 4);
    AttemptId at_sound{};
    for (const AttemptId& id : std::vector<AttemptId>(desk.assigned)) {
      if (worker_of(desk, id) == "sound")
        at_sound = id;
      else
        fails(desk, "deaf", id);
    }
    CHECK(desk.core.roster().at(1).failures == 0);  // the task's, so far
    CHECK(desk.core.why(RunId(at_sound.run.raw() == 3 ? 2 : 3)).code == "elsewhere");
    CHECK(told(desk, FaultFact::Verdict::kParked).empty());
    desk.result("sound", at_sound, 1);
    CHECK(standing(desk.core.roster().at(1)) == "quarantined: 3 infrastructure failures in a row");
    for (std::size_t i = 4; i < desk.assigned.size(); ++i) {
      const AttemptId id = desk.assigned[i];
      worker_of(desk, id) == "sound" ? desk.result("sound", id, 1) : fails(desk, "deaf", id);
    }
    CHECK(desk.core.counts().ended[0] == 4);
  }

  TEST_CASE("who waits for another worker is parked when there is none any more") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 20;
    Desk desk(mixed({{1, 0}, {0, 0}, {0, 0}, {0, 0}}), s);
    desk.start();
    desk.sync("other", 1);
    desk.sync("w", 3);
    std::string busy;
    for (const AttemptId& id : std::vector<AttemptId>(desk.assigned))
      if (id.run == RunId(0)) busy = worker_of(desk, id);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      if (id.run != RunId(0) && worker_of(desk, id) == "w") fails(desk, "w", id);
    }
    if (busy == "other") {
      CHECK(desk.core.why(RunId(1)).code == "elsewhere");
      desk.feed(WorkerLeft{WorkerId("other"), BootId(1)});
    }
    desk.now.mono += Millis(1'000);
    desk.feed(TimerFired{});
    CHECK(desk.core.phase(RunId(1)) == RunPhase::kParked);
  }

  TEST_CASE("a method that starts nowhere is parked, one that started once never is") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 1;
    // Method 1 works at task 0 first, and then starts nowhere at task 1.
    Desk desk(mixed({{0, 1}, {0, 0}, {1, 0}, {0, 0}, {1, 0}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}), s);
    desk.start();
    desk.sync("w", 1);
    const std::string cause = "the agent could not start: exit 127";
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      id == attempt_of(0) ? desk.result("w", id, 1) : fails(desk, "w", id, Fault::kAgent, cause);
    }
    REQUIRE(told(desk, FaultFact::Verdict::kParked).size() == 1);
    CHECK(told(desk, FaultFact::Verdict::kParked)[0].subject ==
          FaultSubject{FaultSubject::Kind::kMethod, 0});
    CHECK(desk.core.counts().ended[0] == 1);
    CHECK(desk.core.counts().ended[1] == 4);  // those of method 1, which could start
    CHECK(desk.core.counts().ended[3] == 3);  // those of method 0 that were tried, once each
    CHECK(desk.core.counts().parked == 1);
    CHECK(desk.core.roster().at(0).failures == 0);
    CHECK(desk.core.why(RunId(4)).text.find("its method is parked") != std::string::npos);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a method that worked once is not parked though it then starts at no task") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk desk(mixed({{0, 0}, {0, 0}, {1, 0}, {0, 0}, {1, 0}}), s);
    desk.start();
    desk.sync("w", 1);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      id.run == RunId(0) ? desk.result("w", id, 1)
                         : fails(desk, "w", id, Fault::kAgent, "exit 127");
    }
    CHECK(desk.core.counts().ended[3] == 4);
    CHECK(desk.core.counts().parked == 0);
  }

  TEST_CASE("a method whose model is gone is parked, also where it had worked before") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk desk(mixed({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}}), s);
    desk.start();
    desk.sync("w", 1);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      id.run == RunId(0) ? desk.result("w", id, 1)
                         : fails(desk, "w", id, Fault::kAgent, no_model("its key is refused"));
    }
    REQUIRE(told(desk, FaultFact::Verdict::kParked).size() == 1);
    CHECK(desk.core.counts().parked == 2);  // three are spent, the others wait for a person
    CHECK(desk.core.why(RunId(5)).text.find("its model could not be had: its key is refused") !=
          std::string::npos);
    CHECK(desk.core.roster().at(0).failures == 0);
    CHECK(desk.ended == true);
  }

  TEST_CASE("an agent that starts on one worker only says nothing of the other") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 20;
    Desk desk(mixed({{0, 0}, {1, 0}, {0, 0}, {1, 0}}), s);
    desk.start();
    desk.sync("sound", 1);
    desk.sync("lacking", 3);
    AttemptId at_sound{};
    for (const AttemptId& id : std::vector<AttemptId>(desk.assigned))
      if (worker_of(desk, id) == "sound")
        at_sound = id;
      else
        fails(desk, "lacking", id, Fault::kAgent, "exit 127");
    desk.result("sound", at_sound, 1);
    CHECK(desk.core.roster().at(1).failures == 0);
    CHECK(standing(desk.core.roster().at(1)) == "ready");
  }

  TEST_CASE("what one task lacks parks no method") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk desk(mixed({{1, 0}, {1, 0}, {1, 0}, {1, 0}, {0, 0}}), s);
    desk.start();
    desk.sync("w", 1);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      id.run == RunId(4) ? desk.result("w", id, 1)
                         : fails(desk, "w", id, Fault::kAgent, "exit 127");
    }
    CHECK(desk.core.counts().ended[3] == 4);
    CHECK(desk.core.counts().ended[0] == 1);
    CHECK(desk.core.counts().parked == 0);
  }

  TEST_CASE("an exit code takes no run out of the count of a method that was at work") {
    // Before and after the one that works, with other attempts left and without.
    for (const std::uint32_t works : {0U, 1U, 4U})
      for (const std::uint32_t retries : {0U, 2U}) {
        CAPTURE(works);
        CAPTURE(retries);
        SchedulerSettings s = settings();
        s.infrastructure_retries = retries;
        Desk desk(mixed({{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {0, 1}}), s);
        desk.start();
        desk.sync("w", 1);
        for (std::size_t at = 0; at < desk.assigned.size(); ++at) {
          const AttemptId id = desk.assigned[at];
          id.run == RunId(works) || id.run == RunId(5)
              ? desk.result("w", id, 1)
              : fails(desk, "w", id, Fault::kAgent, could_not_start("exit 127"));
        }
        CHECK(desk.core.counts().ended[0] == 2);
        CHECK(desk.core.counts().ended[1] == 4);  // failures
        CHECK(desk.core.counts().ended[3] == 0);
        CHECK(desk.core.counts().parked == 0);
        CHECK(desk.ended == true);
        for (const RunEnded& e : desk.facts<RunEnded>()) CHECK(e.outcome == RunOutcome::kFailure);
        for (std::uint32_t run = 0; run < 5; ++run)  // no run is drawn again
          CHECK(std::ranges::count(desk.assigned, RunId(run), &AttemptId::run) == 1);
      }
  }

  TEST_CASE("a method that starts nowhere has no failures, also after a restart") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    const PlanView plan = mixed({{1, 0}, {1, 0}, {0, 1}});
    Desk desk(plan, s);
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.assigned == std::vector<AttemptId>{attempt_of(0)});
    fails(desk, "w", attempt_of(0), Fault::kAgent, could_not_start("exit 126"));
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
    CHECK(desk.core.why(RunId(0)).code == "parked");
    for (std::size_t at = 1; at < desk.assigned.size(); ++at) {
      const AttemptId id = desk.assigned[at];
      id.run == RunId(1) ? fails(desk, "w", id, Fault::kAgent, could_not_start("exit 126"))
                         : desk.result("w", id, 1);
    }
    CHECK(desk.core.counts().ended[0] == 1);
    CHECK(desk.core.counts().ended[3] == 2);
    CHECK(desk.ended == true);
    // The next life knows it from the notes, and ends the run by what the method does then.
    for (const bool works : {true, false}) {
      CAPTURE(works);
      Desk next(plan, s);
      FaultFact fact{{FaultSubject::Kind::kMethod, 0},
                     FaultFact::Verdict::kFailed,
                     attempt_of(0),
                     WorkerId("w"),
                     could_not_start("exit 126"),
                     could_not_start("exit 126"),
                     {},
                     126};
      REQUIRE(next.core.restore_note(note_of(fact)).ok());
      RestoredAttempt had;
      had.attempt = attempt_of(0);
      had.state = AttemptState::kFinished;
      had.has_result = had.infrastructure = had.settled = true;
      had.termination = Termination::kAgentUnavailable;
      next.core.restore_attempt(had);
      next.start();
      CHECK(next.core.phase(RunId(0)) == RunPhase::kParked);
      next.sync("w", 1);
      for (std::size_t at = 0; at < next.assigned.size(); ++at) {
        const AttemptId id = next.assigned[at];
        id.run == RunId(1) && !works
            ? fails(next, "w", id, Fault::kAgent, could_not_start("exit 126"))
            : next.result("w", id, 1);
      }
      CHECK(next.core.counts().ended[1] == (works ? 1 : 0));
      CHECK(next.core.counts().ended[3] == (works ? 0 : 2));
    }
  }

  TEST_CASE("a person decides of what started nowhere, unless the method is at work after all") {
    for (const bool works : {true, false}) {
      CAPTURE(works);
      SchedulerSettings s = settings();
      s.infrastructure_retries = 2;
      s.retries.escalate = true;
      Desk desk(mixed({{1, 0}, {0, 0}}), s);
      desk.start();
      desk.sync("w", 1);
      fails(desk, "w", attempt_of(0), Fault::kAgent, could_not_start("exit 127"));
      CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
      REQUIRE(desk.assigned.back() == attempt_of(1));
      fails(desk, "w", attempt_of(1), Fault::kAgent, could_not_start("exit 127"));
      REQUIRE(desk.core.counts().held == 2);
      REQUIRE(desk.act(OperatorActKind::kApprove, {RunId(1)}).verdict ==
              OperatorAnswer::Verdict::kDone);
      REQUIRE(desk.assigned.back() == attempt_of(1, 2));
      if (works)
        desk.result("w", attempt_of(1, 2), 1);
      else
        fails(desk, "w", attempt_of(1, 2), Fault::kAgent, could_not_start("exit 127"));
      CHECK(desk.core.counts().ended[1] == (works ? 1 : 0));
      CHECK(desk.core.counts().held == (works ? 0 : 1));  // the other waits for that one
      CHECK(desk.assigned.size() == 3);
    }
  }

  TEST_CASE("what ended invalid for want of a start may be made again, also after a restart") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 1;
    const PlanView plan = mixed({{1, 0}, {0, 1}});
    Desk desk(plan, s);
    desk.start();
    desk.sync("w", 1);
    fails(desk, "w", attempt_of(0), Fault::kAgent, could_not_start("exit 127"));
    OperatorAct again;
    again.kind = OperatorActKind::kRequeue;
    again.runs = {RunId(0)};
    again.invalid = true;
    CHECK(desk.act(again).verdict == OperatorAnswer::Verdict::kUnchanged);  // it waits
    desk.result("w", attempt_of(1), 1);
    REQUIRE(desk.core.counts().ended[3] == 1);
    std::vector<Note> notes = desk.standing();
    RestoredAttempt had;
    had.attempt = attempt_of(0);
    had.state = AttemptState::kFinished;
    had.has_result = had.infrastructure = had.settled = true;
    had.termination = Termination::kAgentUnavailable;
    Desk over(plan, s);
    over.core.restore_fact(RunEnded{RunId(0), attempt_of(0), RunOutcome::kInvalid});
    for (const Note& n : notes) REQUIRE(over.core.restore_note(n).ok());
    over.core.restore_attempt(had);
    OperatorAnswer answer;
    for (const JournalWrite& w : over.core.reopen_after_the_end(again, answer))
      if (const Note* n = std::get_if<Note>(&w)) notes.push_back(*n);
    CHECK(answer.verdict == OperatorAnswer::Verdict::kDone);
    Desk next(plan, s);
    for (const Note& n : notes) REQUIRE(next.core.restore_note(n).ok());
    next.core.restore_attempt(had);
    next.start();
    CHECK(next.core.phase(RunId(0)) == RunPhase::kQueued);
  }

  TEST_CASE("a requeue gives a run that waits for its method's others a try of its own") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk desk(mixed({{1, 0}, {0, 1}}), s);
    desk.start();
    desk.sync("w", 1);
    fails(desk, "w", attempt_of(0), Fault::kAgent, could_not_start("exit 127"));
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kParked);
    REQUIRE(desk.act(OperatorActKind::kRequeue, {RunId(0)}).verdict ==
            OperatorAnswer::Verdict::kDone);
    const Note act = desk.standing().back();
    REQUIRE(act.kind == OperatorFact::kNote);
    CHECK(fact_of<OperatorFact>(act)->forgiven == std::vector<AttemptId>{attempt_of(0)});
    desk.result("w", attempt_of(1), 1);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    fails(desk, "w", attempt_of(0, 2), Fault::kAgent, could_not_start("exit 127"));
    CHECK(desk.core.counts().ended[3] == 1);  // it had no more than that one
    CHECK(desk.ended == true);
  }

  TEST_CASE("a life that finds all else done ends what waits for it") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    for (const bool works : {true, false}) {
      CAPTURE(works);
      Desk next(mixed({{1, 0}, {0, works ? std::uint16_t{0} : std::uint16_t{1}}}), s);
      REQUIRE(next.core
                  .restore_note(note_of(FaultFact{{FaultSubject::Kind::kMethod, 0},
                                                  FaultFact::Verdict::kFailed,
                                                  attempt_of(0),
                                                  WorkerId("w"),
                                                  could_not_start("exit 127"),
                                                  could_not_start("exit 127"),
                                                  {},
                                                  127}))
                  .ok());
      RestoredAttempt had;
      had.attempt = attempt_of(0);
      had.state = AttemptState::kFinished;
      had.has_result = had.infrastructure = had.settled = true;
      had.termination = Termination::kAgentUnavailable;
      next.core.restore_attempt(had);
      had = {};
      had.attempt = attempt_of(1);
      had.state = AttemptState::kFinished;
      had.has_result = had.sets_outcome = had.settled = true;
      had.outcome = RunOutcome::kSuccess;
      next.core.restore_attempt(had);
      next.start();
      CHECK(next.core.phase(RunId(0)) == RunPhase::kEnded);
      CHECK(next.core.counts().ended[1] == (works ? 1 : 0));
      CHECK(next.core.counts().ended[3] == (works ? 0 : 1));
      CHECK(next.ended == true);
    }
  }

  TEST_CASE("a life decides what waits for a start before it ends, also when money ends it") {
    for (const bool escalate : {true, false}) {
      CAPTURE(escalate);
      SchedulerSettings s = settings();
      s.retries.escalate = escalate;
      PlanView plan = mixed({{1, 0}, {0, 1}});
      plan.scopes[2].cap = micro(5);
      Desk next(plan, s);
      next.core.restore_fact(RunParked{RunId(1), ScopeId(2), micro(5), WallTime(1)});
      REQUIRE(next.core
                  .restore_note(note_of(FaultFact{{FaultSubject::Kind::kMethod, 0},
                                                  FaultFact::Verdict::kFailed,
                                                  attempt_of(0),
                                                  WorkerId("w"),
                                                  could_not_start("exit 127"),
                                                  could_not_start("exit 127"),
                                                  {},
                                                  127}))
                  .ok());
      RestoredAttempt had;
      had.attempt = attempt_of(0);
      had.state = AttemptState::kFinished;
      had.has_result = had.infrastructure = had.settled = true;
      had.termination = Termination::kAgentUnavailable;
      next.core.restore_attempt(had);
      next.start();
      REQUIRE(next.core.phase(RunId(0)) == RunPhase::kParked);
      next.feed(TimerFired{});  // the other is parked as it was
      CHECK(next.core.phase(RunId(1)) == RunPhase::kParked);
      CHECK(next.core.phase(RunId(0)) == (escalate ? RunPhase::kHeld : RunPhase::kEnded));
      CHECK(next.ended.has_value() == !escalate);
      CHECK(next.core.counts().ended[3] == (escalate ? 0 : 1));
    }
  }

  TEST_CASE("what is parked outlives the coordinator, and a requeue too") {
    Desk desk(mixed({{0, 0}, {0, 0}, {1, 0}}));
    desk.start();
    desk.sync("w", 2);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at)
      if (desk.assigned[at].run != RunId(2)) fails(desk, "w", desk.assigned[at]);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kParked);
    const auto next_life = [&](const std::vector<Note>& notes) {
      auto next = std::make_unique<Desk>(desk.core.plan());
      for (const Note& n : notes) REQUIRE(next->core.restore_note(n).ok());
      next->start();
      return next;
    };
    const auto same = next_life(desk.standing());
    CHECK(same->core.phase(RunId(0)) == RunPhase::kParked);
    CHECK(same->core.phase(RunId(1)) == RunPhase::kParked);
    CHECK(same->core.phase(RunId(2)) == RunPhase::kQueued);
    CHECK(same->core.explain(RunId(1)) == desk.core.explain(RunId(1)));
    CHECK(desk.act(OperatorActKind::kRequeue, {RunId(1)}).verdict ==
          OperatorAnswer::Verdict::kDone);
    CHECK(desk.core.phase(RunId(0)) != RunPhase::kParked);
    const auto released = next_life(desk.standing());
    CHECK(released->core.phase(RunId(0)) == RunPhase::kQueued);
    CHECK(released->core.phase(RunId(1)) == RunPhase::kQueued);
    // Notes of another plan, or of nothing, are damage.
    for (Note n : desk.standing()) {
      if (n.kind != FaultFact::kNote) continue;
      n.run = RunId(2);
      CHECK_FALSE(same->core.plan().runs.empty());
      Desk other(desk.core.plan());
      CHECK(other.core.restore_note(n).error().code == Errc::kCorrupt);
      n.detail = "{}";
      CHECK(other.core.restore_note(n).error().code == Errc::kCorrupt);
    }
  }

  TEST_CASE("who is parked with its task is not said to wait for money as well") {
    PlanView plan = mixed({{0, 0}, {0, 0}, {0, 0}, {1, 0}});
    plan.scopes[2].cap = micro(25);  // two asks of task 0
    Desk desk(plan);
    desk.start();
    desk.sync("w", 2);
    desk.sync("v", 2);
    for (std::uint32_t run = 0; run < 2; ++run) {  // both end, 16 are spent: none fits any more
      REQUIRE_FALSE(worker_of(desk, attempt_of(run)).empty());
      desk.result(worker_of(desk, attempt_of(run)).c_str(), attempt_of(run), 8);
    }
    REQUIRE(desk.core.phase(RunId(2)) == RunPhase::kParked);
    REQUIRE(desk.facts<RunParked>().size() == 1);
    FaultFact fact{{FaultSubject::Kind::kTask, 0},
                   FaultFact::Verdict::kFailed,
                   attempt_of(0),
                   WorkerId("w"),
                   "it failed",
                   "it failed",
                   {}};
    const auto next_life = [&] {  // which reads that the task failed everywhere
      auto next = std::make_unique<Desk>(plan);
      for (const std::uint32_t run : {0U, 1U})
        next->core.restore_fact(RunEnded{RunId(run), attempt_of(run), RunOutcome::kSuccess});
      next->core.restore_fact(AttemptSettled{attempt_of(0), micro(16), {}, {}, WallTime(1)});
      next->core.restore_fact(RunParked{RunId(2), ScopeId(2), micro(1), WallTime(1)});
      return next;
    };
    for (const auto verdict : {FaultFact::Verdict::kFailed, FaultFact::Verdict::kParked}) {
      fact.verdict = verdict;
      const auto next = next_life();
      REQUIRE(next->core.restore_note(note_of(fact)).ok());
      next->start();
      CHECK(next->facts<RunUnparked>().size() ==
            (verdict == FaultFact::Verdict::kParked ? 1 : 0));  // the rest is asked for first
    }
  }

  TEST_CASE("a raise says of what a resume has put in line that it is short no more") {
    PlanView plan = mixed({{0, 0}, {1, 0}});
    plan.scopes[2].cap = micro(5);
    Desk desk(plan);
    desk.core.restore_fact(RunParked{RunId(0), ScopeId(2), micro(1), WallTime(1)});
    desk.start();
    OperatorAct raise;
    raise.kind = OperatorActKind::kRaise;
    raise.scope = ScopeId(2);
    raise.to = micro(8);
    REQUIRE(desk.act(raise).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.facts<RunUnparked>().empty());  // 8 are not enough either
    raise.to = micro(50);
    REQUIRE(desk.act(raise).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.facts<RunUnparked>().size() == 1);
    desk.sync("w", 1);
    CHECK(desk.assigned == std::vector<AttemptId>{attempt_of(0)});
    CHECK(desk.facts<RunUnparked>().size() == 1);
  }

  TEST_CASE("a raise of money does not release what is parked for its own fault") {
    Desk desk(mixed({{0, 0}, {1, 0}}));
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 2);
    for (std::size_t at = 0; at < desk.assigned.size(); ++at)
      if (desk.assigned[at].run == RunId(0)) fails(desk, "w", desk.assigned[at]);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kParked);
    OperatorAct raise;
    raise.kind = OperatorActKind::kRaise;
    raise.to = micro(5'000);
    CHECK(desk.act(raise).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kParked);
    CHECK(desk.act(OperatorActKind::kCancel, {RunId(0)}).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.facts<RunUnparked>().empty());
    CHECK(desk.core.counts().parked == 0);
  }
}
