#include <algorithm>
#include <cmath>
#include <vector>

#include "common/stats/interval.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx nine(double expected) {
  return near(expected, 1e-9);
}

}  // namespace

// Figures by SciPy, or by exact arithmetic of whole numbers.
TEST_SUITE("pilot") {
  TEST_CASE("a clean screen still allows this much") {
    struct Row {
      std::uint64_t agreeing, repeats;
      double limit;
    };
    const Row rows[] = {
        {5, 5, .5},
        {6, 6, 0.401876423829},
        {10, 10, 0.25886755402},
        {9, 10, 0.396621129657},
        {20, 20, 0.139108340668},
        {19, 20, 0.21610616421},
        {18, 20, 0.282618538871},
        {30, 30, 0.0950338528553},
        {29, 30, 0.148596068659},
        {60, 60, 0.0487029133101},
        {59, 60, 0.0766399949345},
        {58, 60, 0.101235894924},
        {57, 60, 0.124187210477},
        {299, 299, 0.0099691467929},
        {5, 10, .5},
    };
    for (const Row& row : rows) {
      CAPTURE(row.repeats);
      CHECK(flake_upper_limit(row.agreeing, row.repeats) == nine(row.limit));
    }
    CHECK(flake_upper_limit(29, 29) < .10);
    CHECK(.10 < flake_upper_limit(28, 28));
  }

  TEST_CASE("the limit of a screen covers, whatever the rate") {
    for (const std::uint64_t n : {5, 6, 20, 60})
      for (int i = 1; i <= 100; ++i) {
        const double f = i / 200.0, real_n = static_cast<double>(n);
        double covered = 0;
        for (std::uint64_t x = 0; x <= n; ++x) {
          const std::uint64_t agreeing = std::max(x, n - x);
          const double k = static_cast<double>(x);
          const double chance =
              std::exp(std::lgamma(real_n + 1) - std::lgamma(k + 1) - std::lgamma(real_n - k + 1) +
                       k * std::log(f) + (real_n - k) * std::log1p(-f));
          if (f <= flake_upper_limit(agreeing, n)) covered += chance;
        }
        CAPTURE(n);
        CAPTURE(f);
        CHECK(.95 - 1e-9 <= covered);
      }
  }

  TEST_CASE("load that makes a check flicker, and mutants that die") {
    CHECK(fisher_greater(0, 20, 3, 20) == nine(0.115384615385));
    CHECK(fisher_greater(0, 30, 5, 30) == nine(0.0260927743087));
    CHECK(fisher_greater(1, 20, 6, 20) == nine(0.045738045738));
    CHECK(fisher_greater(0, 60, 2, 60) == nine(0.247899159664));
    CHECK(fisher_greater(0, 5, 0, 5) == nine(1));
    CHECK(lower_limit(20, 20) == nine(0.860891659332));
    CHECK(lower_limit(18, 20) == nine(0.717381475114));
    CHECK(lower_limit(10, 10) == nine(0.741134449107));
    CHECK(lower_limit(9, 10) == nine(0.605836697563));
    CHECK(lower_limit(18, 19) == nine(0.773625750728));
    CHECK(lower_limit(0, 9) == 0);
  }
}
