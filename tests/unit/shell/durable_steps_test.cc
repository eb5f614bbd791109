// How much of what became durable one turn of the loop is told.
#include <doctest/doctest.h>

#include <vector>

#include "coordinator/shell/loop_guards.h"

using namespace proctor;

TEST_SUITE("durable steps") {
  TEST_CASE("steps that gathered while the disk stood still take turns with all else") {
    DurableSteps steps;
    constexpr std::uint64_t kSteps = 1'000;
    constexpr std::size_t kFacts = 100;
    for (std::uint64_t seq = 1; seq <= kSteps; ++seq) steps.asked(seq, kFacts);
    CHECK_FALSE(steps.next(0));
    std::uint64_t told = 0, turns = 0;
    while (steps.has_more(kSteps)) {
      const auto last = steps.next(kSteps);
      REQUIRE(last);
      CHECK(told < *last);
      CHECK((*last - told) * kFacts <= DurableSteps::kFactsPerTurn);
      told = *last;
      ++turns;
    }
    CHECK(told == kSteps);  // all of them, in order, each once
    CHECK(turns == kSteps * kFacts / DurableSteps::kFactsPerTurn);
    CHECK_FALSE(steps.next(kSteps));
  }

  TEST_CASE("a step is told whole, and none before it is durable") {
    DurableSteps steps;
    steps.asked(1, 100'000);
    steps.asked(2, 1);
    steps.asked(3, 1);
    CHECK(steps.next(2) == 1);
    CHECK(steps.has_more(2));
    CHECK(steps.next(2) == 2);
    CHECK_FALSE(steps.has_more(2));
    CHECK(steps.next(3) == 3);
  }
}
