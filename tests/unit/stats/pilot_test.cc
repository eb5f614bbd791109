#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/stats/always_valid.h"
#include "common/stats/screen.h"
#include "common/stats/sequential.h"
#include "common/stats/stopped.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx nine(double expected) {
  return near(expected, 1e-9);
}

std::vector<double> differences() {
  std::vector<double> out;
  for (std::size_t i = 0; i < kA.size(); ++i)
    out.push_back((static_cast<double>(kA[i]) - static_cast<double>(kA1[i])) / 4);
  return out;
}

}  // namespace

// Figures by SciPy, or by exact arithmetic of whole numbers.
TEST_SUITE("pilot") {
  TEST_CASE("a test that holds at every moment") {
    const std::vector<double> once = differences();
    const AlwaysValid eight = always_valid(once);
    CHECK(eight.up == nine(2.00214429904));
    CHECK(eight.down == nine(0.462744294339));
    CHECK(eight.now.low == nine(-0.397489684923));
    CHECK(eight.now.high == nine(0.595822884053));
    std::vector<double> five;
    for (int i = 0; i < 5; ++i) five.insert(five.end(), once.begin(), once.end());
    const AlwaysValid forty = always_valid(five);
    CHECK(forty.up == nine(65.5557044979));
    CHECK(forty.down == nine(0.093356191763));
    CHECK(forty.p == nine(0.0305084052611));
    CHECK(forty.now.low == nine(0.015818151164));
    CHECK(forty.now.high == nine(0.317751364357));
    // An earlier moment had ruled out more above than this one does.
    CHECK(forty.sequence.low == forty.now.low);
    CHECK(forty.sequence.high < forty.now.high);
    CHECK(always_valid({}).p == 1);
    CHECK(always_valid({}).sequence == Interval{-1, 1});
  }

  TEST_CASE("mostly nothing, and as much one way as the other") {
    std::vector<double> few(30, 0.0);
    few.insert(few.end(), 5, .25);
    few.insert(few.end(), 5, -.25);
    const AlwaysValid v = always_valid(few);
    CHECK(v.now.low == nine(-0.134469489739));
    CHECK(v.now.high == nine(0.134469489739));
    double before = 2;
    for (std::size_t n = 1; n <= few.size(); ++n) {
      const AlwaysValid now = always_valid(std::span(few).first(n));
      CHECK(now.sequence.high - now.sequence.low <= before);
      before = now.sequence.high - now.sequence.low;
    }
  }

  TEST_CASE("the product is worth 1 on average where nothing differs") {
    // All 3^6 sequences of -1, 0, 1, each outcome with a third.
    double sum = 0;
    std::array<double, 6> d{};
    for (int code = 0; code < 729; ++code) {
      int rest = code;
      for (double& x : d) {
        x = rest % 3 - 1;
        rest /= 3;
      }
      sum += always_valid(d).up / 729;
    }
    CHECK(sum == near(1, 1e-12));
  }

  TEST_CASE("evidence of pairs that disagree") {
    CHECK(mcnemar_evidence(11, 9) == nine(3.10303030303));
    CHECK(mcnemar_evidence(5, 5) == nine(5.33333333333));
    CHECK(mcnemar_evidence(9, 8) == nine(5.68888888889));
    CHECK(mcnemar_evidence(28, 20) == nine(2.9781474675));
    CHECK(mcnemar_evidence(40, 30) == nine(31.6369063902));
    CHECK(1 / mcnemar_evidence(10, 9) == nine(0.107421875));
    CHECK(mcnemar_evidence(0, 0) == nine(1));
    CHECK(mcnemar_evidence(10, 9) == nine(mcnemar_evidence(10, 1)));
  }

  TEST_CASE("after a stop the estimate is nearer to nothing than it looks") {
    const std::array<double, 3> thirds = {1.0 / 3, 2.0 / 3, 1};
    const auto bounds = lan_demets_bounds(thirds);
    const auto at = std::span(thirds).first(2);
    const auto before = std::span(bounds).first(1);
    const StoppedEstimate up = stopped_estimate(at, before, 2.8 * .04, .04);
    CHECK(up.p == nine(0.00521479283744));
    CHECK(up.estimate == nine(0.111912442637));
    CHECK(up.interval.low == nine(0.0334295411555));
    CHECK(up.interval.high == nine(0.190341877303));
    const StoppedEstimate down = stopped_estimate(at, before, -2.8 * .04, .04);
    CHECK(down.p == nine(up.p));
    CHECK(down.estimate == nine(-up.estimate));
    CHECK(down.interval.low == nine(-up.interval.high));
    const Look repeated = look_at(2.8 * .04, .04, bounds[1].value(), .1);
    CHECK(repeated.repeated.low == nine(0.0115429007492));
    CHECK(repeated.repeated.high == nine(0.212457099251));
    // The first look has nothing before it.
    const StoppedEstimate first = stopped_estimate(std::span(thirds).first(1), {}, .2, .05);
    CHECK(first.estimate == nine(.2));
  }

  TEST_CASE("conditional power, and bounds of few tasks") {
    CHECK(conditional_power(.5, 2.0 / 3, 2.8015852181, 1.99304747761) == nine(0.129774712158));
    CHECK(conditional_power(1, 1.0 / 3, 2.8015852181, 1.99304747761) == nine(0.710079456247));
    CHECK(conditional_power(-.2, 2.0 / 3, 2.8015852181, 1.99304747761) == nine(0.0171126931385));
    CHECK(bound_by_t(3.71030287326, 99) == nine(3.85339059211));
    CHECK(bound_by_t(2.51142748127, 99) == nine(2.5585892811));
    CHECK(bound_by_t(2.51142748127, 29) == nine(2.67949511944));
    CHECK(bound_by_t(1.99304747761, 99) == nine(2.01838350115));
  }

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
    CHECK(chance_of_discrepancy(.05, 20) == nine(0.641514077591));
    CHECK(chance_of_discrepancy(.05, 60) == nine(0.953930201013));
    CHECK(chance_of_discrepancy(.1, 10) == nine(0.6513215598));
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
