// Whether a provider is worth asking, by how the calls of all runs ended.
#include <doctest/doctest.h>

#include "worker/gateway/provider_connection.h"

using namespace proctor;
using namespace std::chrono_literals;
using End = ProviderStreak::End;

namespace {

const ProviderStreak::Time kBegin{};
const int kOne = 1, kOther = 2;  // runs

ProviderStreak after_failures(int times) {
  ProviderStreak streak({.failures = 3, .first = 10s, .most = 35s});
  for (int i = 0; i < times; ++i) streak.ended(&kOne, End::kFailed, false, kBegin);
  return streak;
}

}  // namespace

TEST_SUITE("gateway streak") {
  TEST_CASE("calls go on until as many in a row failed, and an answer begins the row anew") {
    ProviderStreak streak = after_failures(2);
    CHECK(streak.may_begin(&kOne, kBegin).wait == 0ms);
    streak.ended(&kOne, End::kAnswered, false, kBegin);
    streak.ended(&kOne, End::kFailed, false, kBegin);
    streak.ended(&kOne, End::kUnknown, false, kBegin);
    streak.ended(&kOne, End::kFailed, false, kBegin);
    CHECK(streak.may_begin(&kOne, kBegin).wait == 0ms);
    streak.ended(&kOne, End::kFailed, false, kBegin);
    CHECK(streak.may_begin(&kOne, kBegin).wait == 10s);
    CHECK(streak.may_begin(&kOne, kBegin + 4s).wait == 6s);
  }

  TEST_CASE("then one call tries, the others wait for it, and its answer lets all go") {
    ProviderStreak streak = after_failures(3);
    const auto probe = streak.may_begin(&kOne, kBegin + 10s);
    CHECK(probe.wait == 0ms);
    CHECK(probe.probe);
    CHECK(0ms < streak.may_begin(&kOne, kBegin + 11s).wait);
    streak.ended(&kOne, End::kAnswered, true, kBegin + 12s);
    const auto next = streak.may_begin(&kOne, kBegin + 12s);
    CHECK(next.wait == 0ms);
    CHECK_FALSE(next.probe);
  }

  TEST_CASE("each try that fails doubles the waiting, and one that came to nothing is made again") {
    ProviderStreak streak = after_failures(3);
    auto now = kBegin + 10s;
    for (const auto pause : {20s, 35s, 35s}) {
      REQUIRE(streak.may_begin(&kOne, now).probe);
      streak.ended(&kOne, End::kUnknown, true, now);
      REQUIRE(streak.may_begin(&kOne, now).probe);
      streak.ended(&kOne, End::kFailed, true, now);
      CHECK(streak.may_begin(&kOne, now).wait == pause);
      now += pause;
    }
  }

  TEST_CASE("calls that began before change nothing by failing, and let all go by an answer") {
    ProviderStreak streak = after_failures(3);
    streak.ended(&kOne, End::kFailed, false, kBegin + 9s);
    CHECK(streak.may_begin(&kOne, kBegin + 9s).wait == 1s);
    streak.ended(&kOne, End::kAnswered, false, kBegin + 9s);
    CHECK(streak.may_begin(&kOne, kBegin + 9s).wait == 0ms);
  }

  TEST_CASE("a run whose calls alone fail holds back no other, and an answer of another frees it") {
    ProviderStreak streak = after_failures(5);
    CHECK(streak.may_begin(&kOne, kBegin).wait == 10s);
    CHECK(streak.may_begin(&kOther, kBegin).wait == 0ms);
    CHECK_FALSE(streak.may_begin(&kOther, kBegin).probe);
    streak.ended(&kOther, End::kAnswered, false, kBegin);
    CHECK(streak.may_begin(&kOne, kBegin).wait == 0ms);
  }

  TEST_CASE("where calls of two runs fail in a row, both wait, and a third makes its first call") {
    ProviderStreak streak = after_failures(3);
    streak.ended(&kOther, End::kFailed, false, kBegin + 2s);
    const int third = 3;
    CHECK(streak.may_begin(&kOther, kBegin + 2s).wait == 10s);
    CHECK(streak.may_begin(&kOne, kBegin + 2s).wait == 10s);
    // Two bad methods must not keep it from a provider that would answer it.
    CHECK(streak.may_begin(&third, kBegin + 2s).wait == 0ms);
    CHECK_FALSE(streak.may_begin(&third, kBegin + 2s).probe);
    // Where it fails, too, it waits as they do, and they no longer.
    streak.ended(&third, End::kFailed, false, kBegin + 4s);
    CHECK(streak.may_begin(&third, kBegin + 4s).wait == 8s);
    CHECK(streak.may_begin(&kOne, kBegin + 4s).wait == 8s);
    const int fourth = 4;
    REQUIRE(streak.may_begin(&fourth, kBegin + 4s).wait == 0ms);
    streak.ended(&fourth, End::kAnswered, false, kBegin + 5s);
    CHECK(streak.may_begin(&kOne, kBegin + 5s).wait == 0ms);
    ProviderStreak mixed = after_failures(2);
    mixed.ended(&kOther, End::kFailed, false, kBegin);
    CHECK(mixed.may_begin(&kOther, kBegin).wait == 10s);
    CHECK(mixed.may_begin(&kOne, kBegin).wait == 10s);
  }

  TEST_CASE("who tried in vain lets the others try before it") {
    ProviderStreak streak = after_failures(3);
    streak.ended(&kOther, End::kFailed, false, kBegin);
    REQUIRE(streak.may_begin(&kOne, kBegin + 10s).probe);
    streak.ended(&kOne, End::kFailed, true, kBegin + 10s);
    CHECK(streak.may_begin(&kOther, kBegin + 10s).wait == 20s);
    CHECK(20s < streak.may_begin(&kOne, kBegin + 10s).wait);
    CHECK(0ms < streak.may_begin(&kOne, kBegin + 30s).wait);
    CHECK(streak.may_begin(&kOther, kBegin + 30s).probe);
    streak.ended(&kOther, End::kUnknown, true, kBegin + 30s);
    CHECK(streak.may_begin(&kOne, kBegin + 31s).probe);  // nobody else came
  }
}
