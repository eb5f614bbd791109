#include "common/contract/cost_model.h"

#include <doctest/doctest.h>

#include "tests/support/price_table.h"

namespace proctor {

TEST_SUITE("contract") {
  TEST_CASE("a reviewer's minutes cost their row and are rounded up once") {
    const CostModel prices = proctor::testing::price_table("human,minute,0.80,,\n*,*,9,,\n");
    REQUIRE(human_minute_price(prices).ok());
    const std::uint64_t price = *human_minute_price(prices);
    CHECK(review_cost(price, 12'000) == MicroUsd::from_micros(9'600'000));
    CHECK(review_cost(price, 1) == MicroUsd::from_micros(800));
    CHECK(review_cost(1, 1) == MicroUsd::from_micros(1));              // 1e-15 USD
    CHECK(review_cost(1'000'001, 1'000) == MicroUsd::from_micros(2));  // 1.000001 millionths
    CHECK(review_cost(1'000'000, 1'000) == MicroUsd::from_micros(1));
    CHECK(review_cost(0, kReviewMilliMinutesMax) == MicroUsd::zero());
    // A million dollars for each of a million minutes: more than a ledger holds.
    CHECK(review_cost(kPicoUsdMax, kReviewMilliMinutesMax) == kLedgerMax);
  }

  TEST_CASE("people are priced by no default row and by no built-in table") {
    const auto table = human_minute_price(proctor::testing::price_table("*,*,9,,\n"));
    REQUIRE(!table.ok());
    CHECK(table.error().detail == "the price table (pilot_cost_model.csv) has no row human,minute");
    const auto fallback = human_minute_price(fallback_cost_model());
    REQUIRE(!fallback.ok());
    CHECK(fallback.error().detail ==
          "the price table (the built-in fallback-1) has no row human,minute");
  }

  TEST_CASE("minutes are positive decimals with at most three digits after the point") {
    CHECK(*parse_minutes("12") == 12'000);
    CHECK(*parse_minutes("7.5") == 7'500);
    CHECK(*parse_minutes("0.001") == 1);
    CHECK(*parse_minutes("1000000") == kReviewMilliMinutesMax);
    CHECK(format_minutes(7'500) == "7.5");
    for (const char* wrong : {"", "0", "0.000", "-1", "+1", "1e3", "NaN", "0.0001", "1000000.001",
                              " 1", "1 ", ".5", "5.", "1,5", "12m"}) {
      CAPTURE(wrong);
      CHECK(!parse_minutes(wrong).ok());
    }
  }
}

}  // namespace proctor
