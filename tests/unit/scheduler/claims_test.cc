// A worker with a key that lies: it speaks of attempts that were granted to another.
#include <doctest/doctest.h>

#include "coordinator/core/scheduler.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {
using Attempts = std::vector<AttemptId>;

RestoredAttempt of_honest(AttemptState state) {
  RestoredAttempt a;
  a.attempt = attempt_of(0);
  a.state = state;
  a.ask = micro(10);
  a.worker = WorkerId("honest");
  a.boot = BootId(1);
  return a;
}

wire::ResultMessage result_of(AttemptId id, std::uint64_t epoch) {
  wire::ResultMessage r;
  r.epoch = Epoch(epoch);
  r.attempt = id;
  r.outcome = RunOutcome::kSuccess;
  r.archive_bytes = 1;
  return r;
}
// What a Sync with this in its spool is answered while nothing that was written is durable yet.
wire::SyncReply reply_before_commit(Desk& desk, const char* worker, AttemptId unacked) {
  wire::Sync s;
  s.worker = WorkerId(worker);
  s.boot = BootId(1);
  s.epoch_seen = Epoch(2);
  s.unacked = {unacked};
  for (const Command& c : desk.core.on(WorkerSynced{s}, desk.now))
    if (const auto* reply = std::get_if<ReplySync>(&c)) return reply->reply;
  return {};
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a result that is being made durable is neither awaited nor acknowledged") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("honest", 1);
    static_cast<void>(
        desk.core.on(ResultReceived{WorkerId("honest"), result_of(attempt_of(0), 2)}, desk.now));
    CHECK_FALSE(desk.core.awaits(WorkerId("honest"), attempt_of(0)));
    CHECK(reply_before_commit(desk, "honest", attempt_of(0)).acked.empty());
  }

  TEST_CASE("a late result that is being made durable is neither awaited nor acknowledged") {
    Desk desk(plan_of({0, 0}));
    RestoredAttempt lost = of_honest(AttemptState::kLost);
    lost.settled = true;
    desk.restore(lost, false);
    desk.start();
    desk.sync("honest", 0);
    desk.sync("liar", 0);
    CHECK(desk.core.awaits(WorkerId("honest"), attempt_of(0)));
    CHECK_FALSE(desk.core.awaits(WorkerId("liar"), attempt_of(0)));
    static_cast<void>(
        desk.core.on(ResultReceived{WorkerId("honest"), result_of(attempt_of(0), 1)}, desk.now));
    CHECK_FALSE(desk.core.awaits(WorkerId("honest"), attempt_of(0)));
    CHECK(reply_before_commit(desk, "honest", attempt_of(0)).acked.empty());
  }

  TEST_CASE("a restored attempt's result is of no epoch that has not begun") {
    Desk desk(plan_of({0}));
    desk.restore(of_honest(AttemptState::kGranted), true);
    desk.start();
    desk.sync("honest", 1, {attempt_of(0)});
    desk.feed(ResultReceived{WorkerId("honest"), result_of(attempt_of(0), 9)});
    CHECK(desk.facts<AttemptResult>().empty());
    desk.feed(ResultReceived{WorkerId("honest"), result_of(attempt_of(0), 1)});
    CHECK(desk.facts<AttemptResult>().size() == 1);
  }

  TEST_CASE("after a restart only the worker that the grant names has the seat") {
    Desk desk(plan_of({0}));
    desk.restore(of_honest(AttemptState::kGranted), true);
    desk.start();
    desk.sync("liar", 0, {attempt_of(0)});
    CHECK(desk.reply.cancel == Attempts{attempt_of(0)});
    desk.sync("liar", 0, {}, {attempt_of(0)});
    CHECK(desk.reply.resend.empty());
    CHECK(desk.reply.acked.empty());
    desk.result("liar", attempt_of(0), 4);
    CHECK(desk.acked.empty());
    CHECK(desk.facts<AttemptResult>().empty());
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kActive);
    desk.sync("honest", 1, {attempt_of(0)});
    CHECK(desk.reply.cancel.empty());
    desk.result("honest", attempt_of(0), 4);
    CHECK(desk.facts<AttemptResult>().size() == 1);
    CHECK(desk.acked == Attempts{attempt_of(0)});
  }

  TEST_CASE(
      "after a restart a new life of the worker that the grant names may deliver its result") {
    Desk desk(plan_of({0}));
    desk.restore(of_honest(AttemptState::kGranted), true);
    desk.start();
    desk.sync("honest", 1, {}, {attempt_of(0)}, 2);
    CHECK(desk.reply.resend == Attempts{attempt_of(0)});
    desk.result("honest", attempt_of(0), 4);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
  }

  TEST_CASE("a late result of a lost attempt counts only from the worker that had it") {
    for (const bool restored : {false, true}) {
      CAPTURE(restored);
      Desk desk(plan_of({0, 0}));
      if (restored) {
        RestoredAttempt a = of_honest(AttemptState::kLost);
        a.settled = true;
        desk.restore(a, false);
      }
      desk.start();
      if (!restored) {
        desk.sync("honest", 1);
        desk.sync("honest", 1, {attempt_of(0)});
        desk.feed(WorkerLeft{WorkerId("honest"), BootId(1)});
        REQUIRE(desk.facts<AttemptLost>().size() == 1);
      }
      desk.sync("liar", 0, {}, {attempt_of(0)});
      CHECK(desk.reply.resend.empty());
      desk.result("liar", attempt_of(0), 4);
      CHECK(desk.facts<AttemptResult>().empty());
      CHECK(desk.acked.empty());
      desk.sync("honest", 0, {}, {attempt_of(0)}, 2);
      CHECK(desk.reply.resend == Attempts{attempt_of(0)});
      desk.result("honest", attempt_of(0), 4);
      CHECK(desk.facts<AttemptResult>().size() == 1);
      CHECK(desk.acked == Attempts{attempt_of(0)});
    }
  }

  TEST_CASE("a result of an attempt that has ended is acknowledged to its own worker alone") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("liar", 0);
    desk.sync("honest", 1);
    desk.result("honest", attempt_of(0), 4);
    REQUIRE(desk.acked == Attempts{attempt_of(0)});
    desk.result("liar", attempt_of(0), 4);
    CHECK(desk.acked == Attempts{attempt_of(0)});
    desk.result("honest", attempt_of(0), 4);
    CHECK(desk.acked == Attempts{attempt_of(0), attempt_of(0)});
  }

  TEST_CASE("whose an attempt is, before and after its end and in the next life") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("liar", 0);
    desk.sync("honest", 1);
    const WorkerId honest("honest"), liar("liar");
    CHECK(desk.core.awaits(honest, attempt_of(0)));
    CHECK_FALSE(desk.core.awaits(liar, attempt_of(0)));
    CHECK_FALSE(desk.core.awaits(WorkerId("nobody"), attempt_of(0)));
    CHECK_FALSE(desk.core.awaits(honest, attempt_of(1)));     // of nobody yet
    CHECK_FALSE(desk.core.awaits(honest, attempt_of(0, 2)));  // never made
    CHECK_FALSE(desk.core.awaits(honest, attempt_of(7)));     // not of the plan
    desk.result("honest", attempt_of(0), 4);
    CHECK_FALSE(desk.core.awaits(honest, attempt_of(0)));  // its result is recorded

    Desk next(plan_of({0, 0}));
    next.core.restore_fact(RunEnded{RunId(0), attempt_of(0), RunOutcome::kSuccess});
    RestoredAttempt ended = of_honest(AttemptState::kFinished);
    ended.settled = ended.has_result = true;
    next.restore(ended, false);
    next.start();
    next.sync("liar", 0);
    next.result("liar", attempt_of(0), 4);
    CHECK(next.acked.empty());
    next.sync("liar", 0, {}, {attempt_of(0)});
    CHECK(next.reply.acked.empty());
    next.sync("honest", 0, {}, {attempt_of(0)}, 2);
    CHECK(next.reply.acked == Attempts{attempt_of(0)});
  }

  TEST_CASE("a result that nobody can check ends nothing and counts against its worker") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    wire::ResultMessage r;
    r.epoch = Epoch(2);
    r.attempt = attempt_of(0);
    r.outcome = RunOutcome::kSuccess;
    desk.feed(ResultReceived{WorkerId("w"), r});
    REQUIRE(desk.facts<AttemptResult>().size() == 1);
    CHECK(desk.facts<AttemptResult>()[0].infrastructure);
    CHECK(desk.facts<AttemptResult>()[0].outcome == RunOutcome::kInvalid);
    CHECK_FALSE(desk.facts<AttemptResult>()[0].sets_outcome);
    CHECK(desk.core.roster().at(0).failures == 1);
    CHECK(desk.core.counts().ended_total() == 0);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(0, 2)});  // tried again
  }

  TEST_CASE("a result of an epoch that has not begun, or of another one than its assignment's") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    for (const std::uint64_t epoch : {1, 3}) {
      wire::ResultMessage r;
      r.epoch = Epoch(epoch);
      r.attempt = attempt_of(0);
      r.outcome = RunOutcome::kSuccess;
      r.archive_bytes = 1;
      desk.feed(ResultReceived{WorkerId("w"), r});
      CHECK(desk.facts<AttemptResult>().empty());
    }
    desk.result("w", attempt_of(0), 4);
    CHECK(desk.facts<AttemptResult>().size() == 1);
  }

  TEST_CASE("an attempt that was never made is told once, and stays with who has it") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("old", 0, {}, {attempt_of(0, 5), attempt_of(7)}, 2);
    CHECK(desk.reply.acked == Attempts{attempt_of(7)});  // of no run of this plan
    const auto told = [&] {
      std::size_t n = 0;
      for (const std::string& text : desk.heard)
        n += text.find("0.5, which this journal never granted") != std::string::npos;
      return n;
    };
    CHECK(told() == 1);
    desk.sync("old", 1, {attempt_of(1, 9)}, {attempt_of(0, 5)}, 2);
    CHECK(desk.reply.acked.empty());
    CHECK(desk.reply.cancel == Attempts{attempt_of(1, 9)});
    CHECK(told() == 1);
    CHECK(desk.core.phase(RunId(0)) != RunPhase::kEnded);
  }
}
