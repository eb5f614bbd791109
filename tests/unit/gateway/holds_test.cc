// Providers without room, and how long calls of this worker wait for them.
#include <doctest/doctest.h>

#include <set>

#include "worker/gateway/provider_connection.h"

using namespace proctor;
using namespace std::chrono_literals;

namespace {

const ProviderHolds::Time kNow{};
const std::string kUrl = "https://api.example/v1", kOther = "https://other.example/v1";

ProviderHolds::Millis first(ProviderHolds& holds, const std::string& url, ProviderHolds::Time now) {
  std::uint32_t place = 0;
  return holds.left(url, place, now);
}

}  // namespace

TEST_SUITE("gateway holds") {
  TEST_CASE("a provider without room is left alone as long as it says, or longer each time") {
    ProviderHolds said;
    CHECK(first(said, kUrl, kNow) == 0ms);
    said.no_room(kUrl, 2s, kNow);
    CHECK(2s <= first(said, kUrl, kNow));
    CHECK(first(said, kUrl, kNow) <= 3s);
    CHECK(first(said, kOther, kNow) == 0ms);
    CHECK(first(said, kUrl, kNow + 2s) == 0ms);  // a later call has no place in the line
    said.no_room(kUrl, 0ms, kNow + 2s);
    CHECK(first(said, kUrl, kNow + 2s) == 0ms);
    said.no_room(kUrl, 1h, kNow);
    CHECK(first(said, kUrl, kNow) <= 61s);
    ProviderHolds silent;
    auto now = kNow;
    for (const auto wait : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
      silent.no_room(kUrl, std::nullopt, now);
      CHECK(silent.own(now).at(0).ms == std::chrono::milliseconds(wait).count());
      now += wait;
    }
    for (int i = 0; i < 9; ++i) silent.no_room(kOther, std::nullopt, kNow);  // at one moment
    CHECK(first(silent, kOther, kNow) <= 2s);
    silent.answered(kUrl);
    silent.no_room(kUrl, std::nullopt, now);
    CHECK(silent.own(now).at(0).ms == 1'000);
  }

  TEST_CASE("calls behind a hold begin one after the other, within a second") {
    ProviderHolds holds;
    holds.no_room(kUrl, 5s, kNow);
    std::set<std::chrono::milliseconds> begins;
    for (int i = 0; i < 20; ++i) {
      std::uint32_t place = 0;
      const auto left = holds.left(kUrl, place, kNow + 1s);
      CHECK(4s <= left);
      CHECK(left < 5s);
      CHECK(holds.left(kUrl, place, kNow + 2s) == left - 1s);
      CHECK(holds.left(kUrl, place, kNow + 1s + left) == 0ms);
      begins.insert(left);
    }
    CHECK(begins.size() == 20);
  }

  TEST_CASE("what one worker hears holds for another, by a name, and is not said back") {
    ProviderHolds one, other;
    one.no_room(kUrl, 7s, kNow);
    const std::vector<ProviderHold> told = one.own(kNow + 1s);
    REQUIRE(told.size() == 1);
    CHECK(told[0].provider == ProviderHolds::name_of(kUrl));
    CHECK(told[0].provider.find("example") == std::string::npos);
    CHECK(told[0].ms == 6'000);
    CHECK(first(other, kUrl, kNow) == 0ms);
    CHECK(first(other, kOther, kNow) == 0ms);
    other.take(told, kNow);
    CHECK(6s <= first(other, kUrl, kNow));
    CHECK(first(other, kOther, kNow) == 0ms);
    CHECK(other.own(kNow).empty());
    other.take({{ProviderHolds::name_of(kUrl), 1}}, kNow);  // a shorter one ends no longer one
    CHECK(6s <= first(other, kUrl, kNow));
    for (int i = 0; i < 30; ++i) one.no_room("https://" + std::to_string(i), 9s, kNow);
    CHECK(one.own(kNow).size() == kHoldsMax);
  }
}
