#include <array>

#include "common/stats/power_plan.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

// Figures by NumPy, SciPy and statsmodels.
TEST_SUITE("stats") {
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
