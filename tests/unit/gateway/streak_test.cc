// Whether a provider is worth asking, by how the calls of all runs ended.
#include <doctest/doctest.h>

#include "worker/gateway/provider_streak.h"

using namespace proctor;
using namespace std::chrono_literals;
using End = ProviderStreak::End;

namespace {

const ProviderStreak::Time kBegin{};

ProviderStreak after_failures(int times) {
  ProviderStreak streak({.failures = 3, .first = 10s, .most = 35s});
  for (int i = 0; i < times; ++i)
    streak.ended(End::kFailed, false, "no " + std::to_string(i), kBegin);
  return streak;
}

}  // namespace

TEST_SUITE("gateway streak") {
  TEST_CASE("calls go on until as many in a row failed, and an answer begins the row anew") {
    ProviderStreak streak = after_failures(2);
    CHECK(streak.may_begin(kBegin).wait == 0ms);
    streak.ended(End::kAnswered, false, "", kBegin);
    streak.ended(End::kFailed, false, "a", kBegin);
    streak.ended(End::kUnknown, false, "", kBegin);
    streak.ended(End::kFailed, false, "b", kBegin);
    CHECK(streak.may_begin(kBegin).wait == 0ms);
    streak.ended(End::kFailed, false, "c", kBegin);
    CHECK(streak.may_begin(kBegin).wait == 10s);
    CHECK(streak.may_begin(kBegin + 4s).wait == 6s);
    CHECK(streak.why() == "c");
  }

  TEST_CASE("then one call tries, the others wait for it, and its answer lets all go") {
    ProviderStreak streak = after_failures(3);
    const auto probe = streak.may_begin(kBegin + 10s);
    CHECK(probe.wait == 0ms);
    CHECK(probe.probe);
    CHECK(0ms < streak.may_begin(kBegin + 11s).wait);
    streak.ended(End::kAnswered, true, "", kBegin + 12s);
    const auto next = streak.may_begin(kBegin + 12s);
    CHECK(next.wait == 0ms);
    CHECK_FALSE(next.probe);
  }

  TEST_CASE("each try that fails doubles the waiting, and one that came to nothing is made again") {
    ProviderStreak streak = after_failures(3);
    auto now = kBegin + 10s;
    for (const auto pause : {20s, 35s, 35s}) {
      REQUIRE(streak.may_begin(now).probe);
      streak.ended(End::kUnknown, true, "", now);
      REQUIRE(streak.may_begin(now).probe);
      streak.ended(End::kFailed, true, "still", now);
      CHECK(streak.may_begin(now).wait == pause);
      now += pause;
    }
  }

  TEST_CASE("calls that began before change nothing by failing, and let all go by an answer") {
    ProviderStreak streak = after_failures(3);
    streak.ended(End::kFailed, false, "late", kBegin + 9s);
    CHECK(streak.may_begin(kBegin + 9s).wait == 1s);
    streak.ended(End::kAnswered, false, "", kBegin + 9s);
    CHECK(streak.may_begin(kBegin + 9s).wait == 0ms);
  }
}
