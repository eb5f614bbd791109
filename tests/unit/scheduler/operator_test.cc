// What operators ask of the scheduler.
#include <doctest/doctest.h>

#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;
using Kind = OperatorActKind;
using Verdict = OperatorAnswer::Verdict;
using Attempts = std::vector<AttemptId>;

namespace {
OperatorAct pause_now() {
  OperatorAct a;
  a.kind = Kind::kPause;
  a.now = true;
  return a;
}
OperatorAct raise_to(std::uint32_t scope, std::int64_t to) {
  OperatorAct a;
  a.kind = Kind::kRaise;
  a.scope = ScopeId(scope);
  a.to = micro(to);
  return a;
}
OperatorAct review_of(std::uint32_t run, std::uint64_t milli_minutes) {
  OperatorAct a;
  a.kind = Kind::kReview;
  a.runs = {RunId(run)};
  a.milli_minutes = milli_minutes;
  return a;
}
// A minute of a person's costs 10.
SchedulerSettings with_people() {
  SchedulerSettings s = settings();
  PriceRow row;
  row.action_type = kHumanAction;
  row.unit = kHumanUnit;
  row.pico_usd = 10'000'000;
  s.cost_model.rows.push_back(row);
  return s;
}
// Nothing the agent did, and the same on every host: another attempt is not made by itself.
void end_invalid(Desk& desk, AttemptId id, Termination why = Termination::kInfrastructure,
                 std::string rationale = "") {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.outcome = RunOutcome::kInvalid;
  r.termination = why;
  r.facts.not_judged = rationale.find(not_judged("")) != std::string::npos;
  r.rationale = std::move(rationale);
  r.usage.tool_calls = 10;
  r.archive_bytes = 1;
  desk.feed(ResultReceived{WorkerId("w"), r});
}
OperatorAct again(std::vector<RunId> runs) {
  OperatorAct a;
  a.kind = Kind::kRequeue;
  a.runs = std::move(runs);
  a.invalid = true;
  return a;
}
// The next life of the coordinator, with the notes of `before`.
void inherit(Desk& next, const Desk& before) {
  for (const Note& n : before.standing()) REQUIRE(next.core.restore_note(n).ok());
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a paused campaign starts nothing until it is told to go on") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    CHECK(desk.act(Kind::kPause).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kPause).verdict == Verdict::kUnchanged);
    desk.sync("w", 2);
    CHECK(desk.asks.empty());
    CHECK(desk.core.why(RunId(0)).code == "paused");
    CHECK_FALSE(desk.reply.suspended);
    CHECK(desk.act(Kind::kUnpause).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kUnpause).verdict == Verdict::kUnchanged);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
  }

  TEST_CASE("pause now suspends what runs and a worker is told at once") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    CHECK_FALSE(desk.reply.suspended);
    CHECK(desk.act(pause_now()).verdict == Verdict::kDone);
    CHECK(desk.reply.suspended);
    CHECK_FALSE(desk.reply.drain);
    CHECK(desk.act(pause_now()).verdict == Verdict::kUnchanged);
    desk.act(Kind::kUnpause);
    CHECK_FALSE(desk.reply.suspended);
  }

  TEST_CASE("a pause outlives the coordinator and a drain of the campaign does not") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.act(pause_now());
    desk.act(Kind::kDrain);
    CHECK(desk.ended == false);
    Desk next(plan_of({0}));
    inherit(next, desk);
    next.start();
    next.sync("w", 1);
    CHECK(next.core.paused());
    CHECK(next.reply.suspended);
    CHECK_FALSE(next.core.draining());
    next.act(Kind::kUnpause);
    CHECK(next.assigned == Attempts{attempt_of(0)});
  }

  TEST_CASE("a cancelled run never starts and the others do") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    CHECK(desk.act(Kind::kCancel, {RunId(0), RunId(2)}).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kCancel, {RunId(0)}).verdict == Verdict::kUnchanged);
    desk.sync("w", 3);
    CHECK(desk.assigned == Attempts{attempt_of(1)});
    CHECK(desk.core.why(RunId(2)).code == "cancelled");
    CHECK(desk.core.counts().cancelled == 2);
    desk.result("w", attempt_of(1), 4);
    CHECK(desk.ended == true);
    Desk next(plan_of({0, 0, 0}));
    inherit(next, desk);
    next.start();
    CHECK(next.core.phase(RunId(0)) == RunPhase::kCancelled);
  }

  TEST_CASE("a cancelled run that is under way is stopped and gets no outcome whatever arrives") {
    for (const Termination how : {Termination::kOperatorCancel, Termination::kCompleted}) {
      Desk desk(plan_of({0, 0}));
      desk.start();
      desk.sync("w", 1);
      desk.act(Kind::kCancel, {RunId(0)});
      CHECK(desk.cancelled == Attempts{attempt_of(0)});
      CHECK(desk.core.why(RunId(0)).code == "cancelling");
      desk.sync("w", 1, {attempt_of(0)});
      CHECK(desk.reply.cancel == Attempts{attempt_of(0)});  // until it obeys
      desk.result("w", attempt_of(0), 4, how);
      CHECK(desk.core.phase(RunId(0)) == RunPhase::kCancelled);
      CHECK_FALSE(desk.facts<AttemptResult>().back().sets_outcome);
      CHECK(desk.ledger.balance(kGlobal).spent == micro(4));
      CHECK(desk.assigned.back() == attempt_of(1));
    }
  }

  TEST_CASE("a requeued run is made anew in its place of the plan") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.act(Kind::kCancel, {RunId(0), RunId(1)});
    CHECK(desk.act(Kind::kRequeue, {RunId(0), RunId(2)}).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kRequeue, {RunId(0)}).verdict == Verdict::kUnchanged);
    desk.sync("w", 1);
    CHECK(desk.assigned == Attempts{attempt_of(0)});
    CHECK(desk.core.why(RunId(2)).code == "worker");
    Desk next(plan_of({0, 0, 0}));
    inherit(next, desk);
    next.start();
    CHECK(next.core.phase(RunId(0)) == RunPhase::kQueued);
    CHECK(next.core.phase(RunId(1)) == RunPhase::kCancelled);
  }

  TEST_CASE("an invalid run is run again within the attempts that were registered") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 1;
    const PlanView plan = plan_of({0, 0, 1});  // the last one waits for Docker
    Desk desk(plan, s);
    desk.start();
    desk.sync("w", 1);
    end_invalid(desk, attempt_of(0));
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    const OperatorAnswer plain = desk.act(Kind::kRequeue, {RunId(0)});
    CHECK(plain.verdict == Verdict::kUnchanged);
    CHECK(plain.text.find("1 run ended invalid: --invalid") != std::string::npos);
    CHECK(desk.act(again({RunId(1), RunId(2)})).verdict == Verdict::kUnchanged);
    CHECK(desk.core.reopens(RunId(0)) == Scheduler::Reopens::kYes);
    CHECK(desk.act(again({RunId(0), RunId(2)})).verdict == Verdict::kDone);
    REQUIRE(desk.facts<RunReopened>().size() == 1);
    CHECK(desk.facts<RunReopened>()[0].attempt == attempt_of(0));
    CHECK(desk.core.counts().ended_total() == 0);
    desk.result("w", attempt_of(1), 10);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));

    // The next life knows of the result that was set aside: it is one of two attempts.
    Desk next(plan, s);
    next.core.restore_fact(RunEnded{RunId(0), attempt_of(0, 2), RunOutcome::kInvalid});
    next.core.restore_fact(RunEnded{RunId(1), attempt_of(1), RunOutcome::kSuccess});
    inherit(next, desk);
    for (const std::uint32_t no : {1U, 2U}) {
      RestoredAttempt a;
      a.attempt = attempt_of(0, no);
      a.state = AttemptState::kFinished;
      a.ask = micro(10);
      a.has_result = a.settled = true;
      a.sets_outcome = no == 2;
      a.termination = Termination::kInfrastructure;
      next.restore(a, false);
    }
    next.start();
    const OperatorAnswer later = next.act(again({RunId(0)}));
    CHECK(later.verdict == Verdict::kUnchanged);
    CHECK(later.text.find("1 run has no attempt left") != std::string::npos);

    // So does this one.
    end_invalid(desk, attempt_of(0, 2));
    CHECK(desk.core.reopens(RunId(0)) == Scheduler::Reopens::kUsedUp);
    CHECK(desk.core.reopens(RunId(1)) == Scheduler::Reopens::kNotInvalid);
    CHECK(desk.act(again({RunId(0)})).verdict == Verdict::kUnchanged);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    CHECK(desk.core.counts().ended_total() == 2);
  }

  TEST_CASE("what an agent did is no reason for another try, nor is a run that failed") {
    Desk desk(plan_of({0, 0, 1}));
    desk.start();
    desk.sync("w", 1);
    end_invalid(desk, attempt_of(0), Termination::kResourceLimit);
    const OperatorAnswer answer = desk.act(again({RunId(0)}));
    CHECK(answer.verdict == Verdict::kUnchanged);
    CHECK(answer.text.find("by what the agent did") != std::string::npos);
    CHECK(desk.core.reopens(RunId(0)) == Scheduler::Reopens::kOfTheAgent);
    desk.result("w", attempt_of(1), 10);
    CHECK(desk.act(again({RunId(1)})).verdict == Verdict::kUnchanged);
    CHECK(desk.facts<RunReopened>().empty());
  }

  TEST_CASE("a run that could not be judged has no other agent, whoever asks") {
    SchedulerSettings s = settings();
    s.retries.escalate = true;
    s.retries.quarantine_after = 2;
    Desk desk(plan_of({0, 0, 1}), s);
    desk.start();
    desk.sync("w", 1);
    const std::string why = ended_by_itself("exit 0") + not_judged("check c: no descriptors");
    end_invalid(desk, attempt_of(0), Termination::kCompleted, why);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    CHECK(desk.core.counts().held == 0);
    CHECK(desk.act(again({RunId(0)})).verdict == Verdict::kUnchanged);
    CHECK(desk.facts<RunReopened>().empty());
    CHECK(desk.assigned == std::vector<AttemptId>{attempt_of(0), attempt_of(1)});
    // It is its host's failure all the same.
    CHECK(desk.core.roster().at(0).failures == 1);
    end_invalid(desk, attempt_of(1), Termination::kAgentTimeout, why);
    CHECK(desk.core.roster().at(0).quarantine == WorkerState::Quarantine::kFailures);
    CHECK(desk.assigned.size() == 2);
  }

  TEST_CASE("a worker in quarantine or drained gets nothing until it is released") {
    for (const Kind kind : {Kind::kQuarantine, Kind::kDrain}) {
      Desk desk(plan_of({0, 0}));
      desk.start();
      CHECK(desk.act(kind, {}, "w").verdict == Verdict::kRefused);
      desk.sync("w", 1);
      CHECK(desk.act(kind, {}, "w").verdict == Verdict::kDone);
      CHECK(desk.act(kind, {}, "w").verdict == Verdict::kUnchanged);
      desk.result("w", attempt_of(0), 4);  // what ran there ended as ever
      CHECK(desk.assigned == Attempts{attempt_of(0)});
      CHECK(desk.core.why(RunId(1)).code == "worker");
      CHECK_FALSE(desk.reply.drain);
      Desk next(plan_of({0, 0}));
      inherit(next, desk);
      next.start();
      next.sync("w", 1);
      CHECK(next.assigned.empty());
      CHECK(next.act(Kind::kRelease, {}, "w").verdict == Verdict::kDone);
      CHECK(next.act(Kind::kRelease, {}, "w").verdict == Verdict::kUnchanged);
      CHECK(next.assigned.size() == 1);
    }
  }

  TEST_CASE("a kicked worker is told to leave and its attempts are no failures of their runs") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk desk(plan_of({0}), s);
    desk.start();
    desk.sync("w", 1);
    CHECK(desk.act(Kind::kKick, {}, "w").verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kKick, {}, "w").verdict == Verdict::kUnchanged);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kQueued);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(10));
    desk.sync("w", 1, {attempt_of(0)});
    CHECK(desk.reply.drain);
    CHECK(desk.reply.cancel == Attempts{attempt_of(0)});
    CHECK(desk.assigned.size() == 1);
    desk.sync("w", 1, {}, {}, 2);  // started again
    CHECK_FALSE(desk.reply.drain);
    CHECK(desk.assigned.back() == attempt_of(0, 2));
  }

  TEST_CASE("runs that are named twice and in any order are noted so that a next life reads them") {
    Desk desk(plan_of({1, 1, 1, 1}));  // they wait for Docker
    desk.start();
    const OperatorAnswer answer =
        desk.act(Kind::kCancel, {RunId(3), RunId(1), RunId(3), RunId(0), RunId(1)});
    CHECK(answer.text.find("cancelled 3 runs") != std::string::npos);
    Desk next(plan_of({1, 1, 1, 1}));
    for (const Note& n : desk.standing()) REQUIRE(next.core.restore_note(n).ok());
    CHECK(next.core.counts().cancelled == 3);
  }

  TEST_CASE("a raised envelope lets parked runs go on at once") {
    Desk desk(plan_of({0, 0, 1}, 15));  // the last one waits for Docker: the campaign goes on
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 10);
    REQUIRE(desk.core.phase(RunId(1)) == RunPhase::kParked);
    CHECK(desk.act(raise_to(0, 40)).verdict == Verdict::kDone);
    CHECK(desk.ledger.balance(kGlobal).cap == micro(40));
    CHECK(desk.facts<RunUnparked>().size() == 1);
    CHECK(desk.assigned.back() == attempt_of(1));
  }

  TEST_CASE("a raise below the cap or beyond what the ledger counts is refused") {
    Desk desk(plan_of({0, 0, 0}, 1000, 15));
    desk.start();
    desk.sync("w", 2);
    desk.act(Kind::kCancel, {RunId(2)});
    CHECK(desk.act(raise_to(2, 14)).verdict == Verdict::kRefused);
    CHECK(desk.act(raise_to(9, 99)).verdict == Verdict::kRefused);
    CHECK(desk.act(raise_to(2, 15)).verdict == Verdict::kUnchanged);
    CHECK(desk.assigned == Attempts{attempt_of(0)});
    CHECK(desk.act(raise_to(2, 25)).verdict == Verdict::kDone);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
    CHECK(desk.ledger.balance(ScopeId(2)).cap == micro(25));
    REQUIRE(desk.facts<ScopeDefined>().size() == 1);
    CHECK(desk.facts<ScopeDefined>()[0].raised_from == micro(15));
  }

  TEST_CASE("a raise of an inner envelope beyond the campaign's own is refused") {
    Desk desk(plan_of({0, 0, 0}, 40, 15));
    desk.start();
    const OperatorAnswer beyond = desk.act(raise_to(2, 41));
    CHECK(beyond.verdict == Verdict::kRefused);
    CHECK(beyond.text.find("raise that first") != std::string::npos);
    CHECK(desk.facts<ScopeDefined>().empty());
    CHECK(desk.act(raise_to(2, 40)).verdict == Verdict::kDone);
    CHECK(desk.act(raise_to(0, 50)).verdict == Verdict::kDone);
    CHECK(desk.act(raise_to(2, 50)).verdict == Verdict::kDone);
  }

  TEST_CASE("a run without an attempt left waits for a decision where the campaign says so") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    s.retries.escalate = true;
    Desk desk(plan_of({0}), s);
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 1, Termination::kInfrastructure);
    CHECK(desk.core.why(RunId(0)).code == "decision");
    CHECK_FALSE(desk.ended.has_value());
    CHECK(desk.act(Kind::kApprove, {RunId(0)}).verdict == Verdict::kDone);
    CHECK(desk.act(Kind::kApprove, {RunId(0)}).verdict == Verdict::kUnchanged);
    CHECK(desk.assigned.back() == attempt_of(0, 2));
    Desk next(plan_of({0}), s);
    inherit(next, desk);
    RestoredAttempt failed;
    failed.attempt = attempt_of(0);
    failed.state = AttemptState::kFinished;
    failed.has_result = failed.infrastructure = failed.settled = true;
    failed.termination = Termination::kInfrastructure;
    next.restore(failed, false);
    next.start();
    CHECK(next.core.phase(RunId(0)) == RunPhase::kQueued);  // forgiven
    Desk without(plan_of({0}), s);
    without.restore(failed, false);
    without.start();
    CHECK(without.core.phase(RunId(0)) == RunPhase::kHeld);
  }

  TEST_CASE("whoever waits its turn is told how many are before it") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.act(Kind::kPause);
    desk.sync("w", 1);
    desk.act(Kind::kCancel, {RunId(0)});
    desk.act(Kind::kUnpause);
    const Explanation why = desk.core.why(RunId(2));
    CHECK(why.code == "worker");
    CHECK(to_json(why).dump() ==
          "{\"code\":\"worker\",\"facts\":{\"before\":0,\"needs\":\"nothing special\"},\"text\":"
          "\"it waits for a free worker with nothing special\"}");
  }

  TEST_CASE("a review takes what nobody has asked for and the ledger hears of it once") {
    Desk desk(plan_of({0, 0, 0}, 1000, 40), with_people());
    desk.start();
    desk.sync("w", 1);
    CHECK(desk.act(review_of(0, 1000)).verdict == Verdict::kRefused);  // it runs
    desk.result("w", attempt_of(0), 1);
    // Spent 1, reserved 10 for the next run, of 40.
    CHECK(desk.ledger.balance(ScopeId(2)).reserved == micro(10));
    const OperatorAnswer shy = desk.act(review_of(0, 3000));
    CHECK(shy.verdict == Verdict::kRefused);
    CHECK(shy.short_of_money);
    CHECK(shy.text.find("task:0 is short by") != std::string::npos);
    CHECK(desk.ledger.balance(ScopeId(2)).spent == micro(1));
    CHECK(desk.act(review_of(0, 2000)).verdict == Verdict::kDone);
    CHECK(desk.act(review_of(0, 500)).verdict == Verdict::kDone);  // booked as often as it is asked
    for (const std::uint32_t s : {0U, 1U, 2U})
      CHECK(desk.ledger.balance(ScopeId(s)).spent == micro(26));
    CHECK(desk.ledger.balance(ScopeId(3)).spent == micro(0));
    CHECK(desk.core.balances()[2].spent == micro(26));
    desk.result("w", attempt_of(1), 1);
    // 27 of 40: the last run still fits.
    CHECK(desk.assigned.back() == attempt_of(2));
    desk.core.check();
  }

  TEST_CASE("who is parked where a review was booked is short by that much more") {
    // The last one needs a worker that is not here: the campaign goes on.
    Desk desk(plan_of({0, 0, 0, 1}, 1000, 25), with_people());
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 10);
    desk.result("w", attempt_of(1), 10);
    CHECK(desk.core.phase(RunId(2)) == RunPhase::kParked);
    CHECK(desk.act(review_of(0, 300)).verdict == Verdict::kDone);
    CHECK(desk.core.phase(RunId(2)) == RunPhase::kParked);
    // 10 are asked, 25 - 20 - 3 are there.
    CHECK(desk.facts<RunParked>().back().short_by == micro(8));
  }
}
