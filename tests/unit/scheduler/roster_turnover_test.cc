// Workers that come, go and never come again: allocations of a cluster have a new name each.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <malloc.h>

#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {

void pass(Desk& desk, Millis time) {
  desk.now.mono += time;
  desk.now.wall = WallTime(desk.now.wall.raw() + time.count());
}
void leave(Desk& desk, const char* worker, std::uint64_t boot = 1) {
  desk.feed(WorkerLeft{WorkerId(worker), BootId(boot), std::set<AttemptId>{}});
}
// Long enough for whoever left to be forgotten.
void pass_lease(Desk& desk) {
  for (int i = 0; i < 17; ++i) {
    pass(desk, Millis(60'000));
    desk.feed(TimerFired{});
  }
}
std::size_t memory() {
  return ::mallinfo2().uordblks;
}

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a day of 100,000 names takes no more room than its first hour") {
    Desk desk(plan_of(std::vector<std::uint32_t>(1'000, 0)));
    desk.start();
    constexpr std::size_t kNames = 100'000, kFirst = 5'000, kTickEvery = 10;
    constexpr Millis kDay{24 * 60 * 60 * 1'000};
    std::size_t before = 0, most_before = 0, most = 0;
    for (std::size_t i = 0; i < kNames; ++i) {
      const std::string name = fmt::format("night-a{}", i);
      desk.sync(name.c_str(), 0);  // without slots: what runs do is not looked at here
      leave(desk, name.c_str());
      pass(desk, kDay / kNames);
      if (i % kTickEvery == 0) desk.feed(TimerFired{});
      desk.journal.clear();
      desk.heard.clear();
      (i < kFirst ? most_before : most) =
          std::max(i < kFirst ? most_before : most, desk.core.roster().names());
      if (i == kFirst) before = memory();
    }
    CHECK(desk.core.roster().names() < 1'200);  // of a lease and a minute
    CHECK(most <= most_before + most_before / 20);
    CHECK(desk.core.roster().size() < 1'200);
    CHECK_MESSAGE(memory() <= before + before / 20, memory(), " after ", before);
  }

  TEST_CASE("who comes into the place of a forgotten worker is nobody's heir") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("old", 1);
    REQUIRE(desk.assigned == std::vector{attempt_of(0)});
    desk.sync("old", 1, {attempt_of(0)});
    desk.result("old", attempt_of(0), 3);
    leave(desk, "old");
    pass_lease(desk);
    CHECK_FALSE(desk.core.roster().find(WorkerId("old")));
    desk.sync("new", 1);
    CHECK(desk.core.roster().size() == 1);
    CHECK(desk.core.roster().at(0).id == WorkerId("new"));
    desk.acked.clear();
    desk.sync("old", 0, {}, {attempt_of(0)});  // our Ack was lost, a day ago
    CHECK(desk.reply.acked == std::vector{attempt_of(0)});
    CHECK(desk.heard.empty());
  }

  TEST_CASE("what a forgotten worker lost is still its own, and nobody else's") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("old", 1);
    desk.sync("old", 1, {attempt_of(0)});
    pass_lease(desk);  // silent: its attempt is lost, and then it is gone
    pass_lease(desk);
    CHECK_FALSE(desk.core.roster().find(WorkerId("old")));
    desk.sync("new", 0, {}, {attempt_of(0)});
    CHECK(desk.reply.acked.empty());
    CHECK(desk.reply.resend.empty());
    CHECK_FALSE(desk.core.awaits(WorkerId("new"), attempt_of(0)));
    desk.sync("old", 0, {}, {attempt_of(0)});
    CHECK(desk.reply.resend == std::vector{attempt_of(0)});
    CHECK(desk.core.awaits(WorkerId("old"), attempt_of(0)));
  }

  TEST_CASE("an operator's word about a worker outlives its absence") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("drained", 1);
    REQUIRE(desk.act(OperatorActKind::kDrain, {}, "drained").verdict ==
            OperatorAnswer::Verdict::kDone);
    leave(desk, "drained");
    pass_lease(desk);
    desk.sync("drained", 1, {}, {}, 2);
    CHECK(desk.assigned.size() == 1);  // the one before it was drained
    REQUIRE(desk.core.roster().find(WorkerId("drained")));
    CHECK(desk.core.roster().at(0).drained);
  }

  TEST_CASE("a name is refused where the roster is full of those who stay") {
    Desk desk(plan_of({0}));
    desk.start();
    for (std::size_t i = 0; i < kRosterMax; ++i) desk.sync(fmt::format("w{}", i).c_str(), 0);
    CHECK(desk.core.takes_name(WorkerId("w7")));
    CHECK_FALSE(desk.core.takes_name(WorkerId("one-more")));
    desk.sync("one-more", 1);
    CHECK_FALSE(desk.core.roster().find(WorkerId("one-more")));
    CHECK(desk.assigned.empty());
  }
}
