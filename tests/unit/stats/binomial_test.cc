#include "common/stats/interval.h"

#include <doctest/doctest.h>

#include "common/stats/amounts.h"

using namespace proctor;

namespace {
doctest::Approx near(double expected) {
  return doctest::Approx(expected).epsilon(1e-9);
}
struct Row {
  std::uint64_t x, n;
  double low, high;
};
}  // namespace

// Oracles: STATISTICS E6, computed with statsmodels.
TEST_SUITE("stats") {
  TEST_CASE("the normal quantile of 95 percent is the one that everybody knows") {
    CHECK(normal_quantile_two_sided(0.05) == near(1.959963984540054));
  }

  TEST_CASE("Wilson intervals equal the published ones") {
    const Row rows[] = {{17, 32, 0.3644951712, 0.6913061289},
                        {0, 10, 0, 0.2775327999},
                        {10, 10, 0.7224672001, 1},
                        {1, 30, 0.005908590382, 0.1667039099}};
    for (const Row& row : rows) {
      CAPTURE(row.x);
      const auto interval = wilson(row.x, row.n);
      REQUIRE(interval.has_value());
      CHECK(interval->low == near(row.low));
      CHECK(interval->high == near(row.high));
    }
  }

  TEST_CASE("the ends of an interval at no or only successes are exact") {
    CHECK(wilson(0, 7)->low == 0);
    CHECK(wilson(7, 7)->high == 1);
    CHECK(clopper_pearson(0, 7)->low == 0);
    CHECK(clopper_pearson(7, 7)->high == 1);
  }

  TEST_CASE("Clopper-Pearson intervals equal the published ones") {
    const Row rows[] = {{17, 32, 0.3474368093, 0.7090601771},
                        {0, 10, 0, 0.3084971078},
                        {1, 30, 0.0008435709266, 0.1721694556}};
    for (const Row& row : rows) {
      CAPTURE(row.x);
      const auto interval = clopper_pearson(row.x, row.n);
      REQUIRE(interval.has_value());
      CHECK(interval->low == near(row.low));
      CHECK(interval->high == near(row.high));
    }
  }

  TEST_CASE("a Wilson interval may use an effective number of runs") {
    const auto interval = wilson_at(0.53125, 11.82119205);
    REQUIRE(interval.has_value());
    CHECK(interval->low == doctest::Approx(0.276330983).epsilon(1e-8));
    CHECK(interval->high == doctest::Approx(0.7708401191).epsilon(1e-8));
  }

  TEST_CASE("nothing out of nothing has no rate and no interval") {
    CHECK(!rate(0, 0));
    CHECK(!wilson(0, 0));
    CHECK(!clopper_pearson(0, 0));
    CHECK(!wilson_at(0.5, 0));
    CHECK(!median({}));
    CHECK(rate(0, 3) == 0.0);
  }

  TEST_CASE("quantiles interpolate between order statistics") {
    CHECK(median({5}) == 5.0);
    CHECK(median({9, 1, 3}) == 3.0);
    CHECK(median({4, 1, 3, 2}) == 2.5);
    CHECK(quantile({10, 20, 30, 40, 50}, 0.9) == doctest::Approx(46.0));
    CHECK(quantile({10, 20}, 1) == 20.0);
    CHECK(quantile({10, 20}, 0) == 10.0);
  }
}
