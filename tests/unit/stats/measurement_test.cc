#include <array>
#include <cmath>

#include "common/stats/bounds.h"
#include "common/stats/sequential.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

// Figures by NumPy, SciPy and statsmodels.
TEST_SUITE("stats") {
  TEST_CASE("errors of checks have an interval and an upper bound") {
    const GraderError two = grader_error({2, 40});
    check_interval(two.rate.interval, 0.01382066739, 0.1650387737);
    CHECK(*two.upper_bound == near(0.1491519613));
    CHECK(*grader_error({0, 25}).upper_bound == near(0.112928145));
    CHECK(grader_error({0, 0}).rate.why == Why::kNothing);
  }

  TEST_CASE("a rate is corrected for checks that err") {
    const KnownGrader grader{{95, 100}, {92, 100}};
    const Estimate p = corrected_rate({150, 300}, grader);
    CHECK(*p.value == near(0.4827586207));
    CHECK(*p.standard_error == near(0.03882511785));
    check_interval(p.interval, 0.4033637517, 0.5599111535);
    // The same from a rate and the error of 300 independent runs.
    const Estimate same = corrected_rate(.5, std::sqrt(.25 / 300), grader);
    CHECK(*same.standard_error == near(*p.standard_error));
    const Estimate below = corrected_rate({10, 200}, {{48, 50}, {90, 100}});
    CHECK(*below.value == near(-0.05813953488));
    CHECK(below.interval->high == near(0.0184140733));
    const Estimate d = corrected_difference(.1, .04, grader);
    CHECK(*d.value == near(0.1149425287));
    CHECK(*d.standard_error == near(0.04620631714));
    CHECK(corrected_rate({1, 2}, {{1, 2}, {1, 2}}).why == Why::kNotDefined);
    CHECK(corrected_rate({0, 0}, grader).why == Why::kNothing);
    CHECK(corrected_rate(0, 0, grader).why == Why::kNoVariance);
  }

  TEST_CASE("reviewed runs of the campaign correct its rate") {
    const DoubleSampled d = double_sampled_rate({{150, 300}, {38, 40}, {5, 60}});
    CHECK(*d.rate.value == near(0.5166666667));
    CHECK(*d.rate.standard_error == near(0.03522907837));
    check_interval(d.rate.interval, 0.4477398759, 0.5849650805);
    CHECK(*d.false_positive == near(0.08064516129));
    CHECK(*d.false_negative == near(0.05172413793));
    CHECK(double_sampled_rate({{150, 300}, {0, 0}, {5, 60}}).rate.why == Why::kNothing);
    CHECK(double_sampled_rate({{3, 3}, {2, 2}, {1, 1}}).rate.why == Why::kNoVariance);
  }

  TEST_CASE("raters agree beyond chance, or kappa does not say") {
    const std::array<std::uint64_t, 4> counts = {20, 5, 10, 15};
    const Agreement a = agreement(counts, 2);
    CHECK(*a.kappa.value == near(0.4));
    CHECK(*a.kappa.standard_error == near(0.1269960629));
    check_interval(a.kappa.interval, 0.1510922905, 0.6489077095);
    CHECK(*a.ac1 == near(0.4059405941));
    CHECK(*a.observed == near(0.7));
    const std::array<std::uint64_t, 4> one_kind = {9, 0, 0, 0};
    const Agreement same = agreement(one_kind, 2);
    CHECK(same.kappa.why == Why::kNotDefined);
    CHECK(*same.ac1 == near(1));
    CHECK(agreement(std::array<std::uint64_t, 4>{}, 2).kappa.why == Why::kNothing);
  }

  TEST_CASE("looks keep the level") {
    const std::array<double, 3> thirds = {1.0 / 3, 2.0 / 3, 1}, uneven = {.3, .75, 1};
    const auto equal = lan_demets_bounds(thirds);
    CHECK(*equal[0] == near(3.710302873));
    CHECK(*equal[1] == near(2.511427481));
    CHECK(*equal[2] == near(1.993047478));
    const auto other = lan_demets_bounds(uneven);
    CHECK(*other[0] == near(3.928572543));
    CHECK(*other[1] == near(2.34030228));
    CHECK(*other[2] == near(2.011866142));
    // Twenty looks spend the level to the last digits.
    std::vector<double> many;
    std::vector<LookBounds> bounds;
    for (int k = 1; k <= 20; ++k) many.push_back(k / 20.0);
    for (const auto& z : lan_demets_bounds(many, Spending::kPocock))
      bounds.push_back({-z.value(), z.value()});
    double sum = 0;
    for (const LookChance& c : look_chances(many, bounds)) sum += c.low + c.high;
    CHECK(sum == near(0.05));
  }

  TEST_CASE("a look that adds nothing gets no bound, and one that is too early spends nothing") {
    const std::array<double, 3> twice = {.5, .5, 1};
    const auto bounds = lan_demets_bounds(twice);
    CHECK(bounds[0].has_value());
    CHECK_FALSE(bounds[1].has_value());
    CHECK(bounds[2].has_value());
    const std::array<double, 2> early = {.001, 1};
    const auto late = lan_demets_bounds(early);
    CHECK_FALSE(late[0].has_value());
    CHECK(*late[1] == near(1.959963984540054));
  }

  TEST_CASE("chances of a test with a drift are its power") {
    const std::array<double, 1> end = {1};
    const std::vector<LookBounds> one = {{-1.959963984540054, 1.959963984540054}};
    CHECK(look_chances(end, one, 0)[0].high == near(.025));
    CHECK(look_chances(end, one, 2.801585)[0].high == near(.8, 1e-6));
    // A second look sees those that went on at the first only.
    const std::array<double, 2> two = {.5, 1};
    const std::vector<LookBounds> open = {{}, one[0]};
    CHECK(look_chances(two, open, 1.5)[1].high == near(look_chances(end, one, 1.5)[0].high));
  }
}
