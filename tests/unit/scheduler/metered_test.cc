// What attempts under way have metered: told, bounded, never backwards, and no part of any
// decision.  And what becomes of an attempt whose worker was killed.
#include <doctest/doctest.h>

#include "desk.h"

namespace proctor {
namespace {

using namespace scheduler_test;

// A desk that keeps what the scheduler tells the operator.
struct Listening : Desk {
  explicit Listening(const PlanView& plan) : Desk(plan) { start(); }
  std::size_t tell(const char* worker, AttemptId id, std::uint64_t calls,
                   const std::vector<std::uint64_t Usage::*>& zeroed = {}) {
    Usage usage;
    usage.tool_calls = usage.agent_ms = usage.priced_calls = calls;
    for (const auto counter : zeroed) usage.*counter = 0;
    wire::Progress p{Epoch(2), {{id, wire::Stage::kAgent, true, usage}}};
    std::size_t alerts = 0;
    for (const Command& c : core.on(ProgressReceived{WorkerId(worker), p}, now))
      if (const auto* alert = std::get_if<Alert>(&c); alert != nullptr && !alert->noted) ++alerts;
    return alerts;
  }
  std::vector<std::int64_t> metered() const {
    std::vector<std::int64_t> out;
    for (const MicroUsd m : core.metered()) out.push_back(m.micros());
    return out;
  }
};
using Micros = std::vector<std::int64_t>;

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("what attempts have metered is told by envelope and ends with their settlement") {
    Listening desk(plan_of({0, 1}));
    desk.sync("w", 2, {}, {}, 1, "sandbox:null");
    desk.sync("d", 2, {}, {}, 1, "sandbox:docker");
    CHECK(desk.metered() == Micros{0, 0, 0, 0});
    CHECK(desk.tell("w", attempt_of(0), 3) == 0);
    CHECK(desk.tell("d", attempt_of(1), 4) == 0);
    CHECK(desk.metered() == Micros{7, 7, 3, 4});
    CHECK(desk.tell("w", attempt_of(0), 9'000) == 0);  // above what is reserved: bounded by it
    CHECK(desk.metered() == Micros{14, 14, 10, 4});
    const auto before = desk.core.balances();
    desk.result("d", attempt_of(1), 6);
    CHECK(desk.metered() == Micros{10, 10, 10, 0});
    CHECK(before[0].reserved == micro(20));
    CHECK(before[0].spent == micro(0));
    CHECK(desk.core.balances()[0].spent == micro(6));
  }

  TEST_CASE("usage that goes backwards changes nothing and is told once") {
    Listening desk(plan_of({0}));
    desk.sync("w", 1);
    CHECK(desk.tell("w", attempt_of(0), 5) == 0);
    CHECK(desk.tell("w", attempt_of(0), 5) == 0);
    CHECK(desk.tell("w", attempt_of(0), 4) == 1);
    CHECK(desk.tell("w", attempt_of(0), 3) == 0);
    CHECK(desk.tell("w", attempt_of(0), 9, {&Usage::priced_calls}) == 0);
    CHECK(desk.metered() == Micros{5, 5, 5, 0});
    CHECK(desk.tell("w", attempt_of(0), 6) == 0);
    CHECK(desk.metered() == Micros{6, 6, 6, 0});
  }

  TEST_CASE("usage of an attempt of another worker or of none changes nothing and is told once") {
    Listening desk(plan_of({0}));
    desk.sync("w", 1);
    desk.sync("x", 1);
    CHECK(desk.tell("w", attempt_of(0), 5) == 0);
    CHECK(desk.tell("x", attempt_of(0), 9) == 1);
    CHECK(desk.tell("x", attempt_of(7), 9) == 0);
    CHECK(desk.tell("w", attempt_of(7), 9) == 1);
    CHECK(desk.tell("w", attempt_of(0, 2), 9) == 0);  // perhaps late: nothing to tell
    CHECK(desk.metered() == Micros{5, 5, 5, 0});
  }

  TEST_CASE("an attempt that a killed worker reports is settled at what was metered") {
    Listening desk(plan_of({0}));
    desk.sync("w", 1);
    CHECK(desk.tell("w", attempt_of(0), 2) == 0);
    desk.sync("w", 1, {}, {attempt_of(0)}, 2);  // another life, and it names the attempt
    CHECK(desk.reply.resend == std::vector{attempt_of(0)});
    CHECK(desk.facts<AttemptLost>().empty());
    desk.result("w", attempt_of(0), 4, Termination::kInfrastructure);
    REQUIRE(desk.facts<AttemptSettled>().size() == 1);
    CHECK(desk.facts<AttemptSettled>()[0].charged == micro(4));
    CHECK(desk.assigned.back() == attempt_of(0, 2));  // and its run is tried again
    CHECK(desk.acked == std::vector{attempt_of(0)});
  }

  TEST_CASE("a report that comes after the settlement at the ceiling is evidence and no money") {
    Listening desk(plan_of({0}));
    desk.sync("w", 1);
    desk.sync("w", 1, {}, {}, 2);  // another life that knows nothing of it
    REQUIRE(desk.facts<AttemptSettled>().size() == 1);
    CHECK(desk.facts<AttemptSettled>()[0].charged == micro(10));
    desk.sync("w", 1, {}, {attempt_of(0)}, 2);
    CHECK(desk.reply.resend == std::vector{attempt_of(0)});
    desk.result("w", attempt_of(0), 4, Termination::kInfrastructure);
    CHECK(desk.facts<AttemptSettled>().size() == 1);
    CHECK(desk.core.balances()[0].spent == micro(10));
    REQUIRE(desk.facts<AttemptResult>().size() == 1);
    CHECK_FALSE(desk.facts<AttemptResult>()[0].sets_outcome);
    CHECK(desk.facts<AttemptResult>()[0].usage.tool_calls == 4);
    CHECK(desk.acked == std::vector{attempt_of(0)});
  }
}

}  // namespace proctor
