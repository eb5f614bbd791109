// Peers that talk too much.
#include <doctest/doctest.h>

#include "common/wire/codec.h"
#include "coordinator/shell/loop_guards.h"

using namespace proctor;

namespace {
std::uint64_t kind_of(const wire::Message& message) {
  return wire::peek_kind(wire::encode(message));
}
std::uint32_t taken(FloodGuard& guard, const std::string& peer, std::uint64_t kind) {
  constexpr int kSent = 1'000;
  std::uint32_t n = 0;
  for (int i = 0; i < kSent; ++i) n += guard.takes(0, peer, kind) ? 1 : 0;
  return n;
}
}  // namespace

TEST_SUITE("shell") {
  TEST_CASE("a flood of one worker's progress is cut and no other worker's") {
    FloodGuard guard;
    const std::uint64_t progress = kind_of(wire::Progress{});
    CHECK(taken(guard, "a", progress) == FloodGuard::kProgress);
    CHECK(guard.refused() == 1'000 - FloodGuard::kProgress);
    CHECK(guard.takes(0, "b", progress));
    CHECK(guard.takes(1, "a", progress));
    guard.next_second();
    CHECK(guard.takes(0, "a", progress));
  }

  TEST_CASE("Syncs and Wants and garbage are counted each for itself") {
    FloodGuard guard;
    CHECK(taken(guard, "a", kind_of(wire::Progress{})) == FloodGuard::kProgress);
    wire::Sync sync;
    sync.worker = WorkerId("w");
    sync.version = "test";
    CHECK(taken(guard, "a", kind_of(sync)) == FloodGuard::kSyncs);
    CHECK(taken(guard, "a", kind_of(wire::Want{})) == FloodGuard::kWants);
    CHECK(taken(guard, "a", wire::peek_kind("garbage")) == FloodGuard::kGarbage);
  }

  TEST_CASE("results are taken however many there are") {
    FloodGuard guard;
    wire::ResultMessage result;
    result.attempt = {RunId(1), AttemptNo(1)};
    CHECK(taken(guard, "a", kind_of(result)) == 1'000);
    CHECK(guard.refused() == 0);
  }

  TEST_CASE("who comes anew again and again is not heard until the minute is over") {
    FloodGuard guard;
    std::uint32_t taken = 0;
    for (int i = 0; i < 1'000; ++i) taken += guard.takes_arrival(WorkerId("w")) ? 1 : 0;
    CHECK(taken == FloodGuard::kArrivals);
    CHECK(guard.takes_arrival(WorkerId("other")));
    for (int second = 0; second < 59; ++second) guard.next_second();
    CHECK_FALSE(guard.takes_arrival(WorkerId("w")));
    guard.next_second();
    CHECK(guard.takes_arrival(WorkerId("w")));
  }

  TEST_CASE("a throttle says what it kept back") {
    Throttle throttle(2);
    CHECK(throttle.allows());
    CHECK(throttle.allows());
    CHECK_FALSE(throttle.allows());
    CHECK_FALSE(throttle.allows());
    CHECK(throttle.next_second() == 2);
    CHECK(throttle.allows());
    CHECK(throttle.next_second() == 0);
  }
}
