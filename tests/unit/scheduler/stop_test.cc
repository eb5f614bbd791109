// A campaign that is told to stop at once, beside workers that nobody hears of any more.
#include <doctest/doctest.h>

#include "common/base/limits.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

using Attempts = std::vector<AttemptId>;

TEST_SUITE("scheduler: a stop") {
  TEST_CASE("a cancel does not wait for a worker that is not heard of") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("dead", 1);
    REQUIRE(desk.assigned == Attempts{attempt_of(0)});
    desk.now.mono += limits::kSuspectAfter;
    desk.feed(TimerFired{});
    REQUIRE_FALSE(desk.ended.has_value());
    desk.feed(DrainAsked{});
    CHECK_FALSE(desk.ended.has_value());  // once: what runs is finished
    desk.feed(CancelAsked{});
    CHECK(desk.ended == false);
    // The journal has it under way, and what it may cost is still held.
    CHECK(desk.facts<AttemptLost>().empty());
    CHECK(desk.ledger.balance(kGlobal).reserved == micro(10));
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kActive);
  }

  TEST_CASE(
      "a cancel waits for those who are heard of and ends when the last of them falls silent") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.sync("well", 1);
    desk.sync("dead", 1);
    REQUIRE(desk.assigned.size() == 2);
    desk.feed(WorkerDisconnected{WorkerId("dead"), BootId(1)});
    desk.feed(CancelAsked{});
    CHECK_FALSE(desk.ended.has_value());
    const AttemptId its = desk.assigned.front();
    desk.result("well", its, 4, Termination::kOperatorCancel);
    CHECK(desk.ended == false);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(4));
    CHECK(desk.ledger.balance(kGlobal).reserved == micro(10));
  }

  TEST_CASE("what a silent worker says in the last moment is still booked") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("slow", 1);
    desk.feed(WorkerDisconnected{WorkerId("slow"), BootId(1)});
    desk.feed(CancelAsked{});
    REQUIRE(desk.ended == false);
    desk.result("slow", attempt_of(0), 4);
    CHECK(desk.acked == Attempts{attempt_of(0)});
    CHECK(desk.ledger.balance(kGlobal).spent == micro(4));
  }

  TEST_CASE("an attempt of an earlier life is waited for as long as a worker may be silent") {
    Desk desk(plan_of({0, 0}));
    RestoredAttempt earlier;
    earlier.attempt = attempt_of(0);
    earlier.state = AttemptState::kGranted;
    earlier.worker = WorkerId("w");
    earlier.ask = micro(10);
    desk.restore(earlier, true);
    desk.start();
    desk.feed(CancelAsked{});
    CHECK_FALSE(desk.ended.has_value());
    desk.now.mono += limits::kSuspectAfter;
    desk.feed(TimerFired{});
    CHECK(desk.ended == false);
    CHECK(desk.facts<AttemptLost>().empty());
  }
}
