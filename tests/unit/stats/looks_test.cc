#include <cmath>
#include <vector>

#include "common/stats/distributions.h"
#include "common/stats/power_plan.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::vector<double> sums_of(const std::vector<LookChance>& chances) {
  std::vector<double> out;
  for (const LookChance& c : chances) out.push_back(c.low + c.high);
  return out;
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

std::vector<LookBounds> both_sides(const std::vector<std::optional<double>>& bounds) {
  std::vector<LookBounds> out;
  for (const auto& z : bounds) out.push_back(z ? LookBounds{-*z, *z} : LookBounds{});
  return out;
}

std::vector<double> equal_looks(int looks) {
  std::vector<double> out;
  for (int k = 1; k <= looks; ++k) out.push_back(static_cast<double>(k) / looks);
  return out;
}

}  // namespace

// Figures by SciPy: quadrature with 400 nodes and root finding.
TEST_SUITE("looks") {
  TEST_CASE("bounds spend the level as their rule says") {
    struct Row {
      Spending rule;
      double alpha;  // of both sides
      std::vector<double> fractions, bounds;
    };
    const Row rows[] = {
        {Spending::kObrienFleming, .05, {.5, .75, 1}, {2.96258804273, 2.35901770724, 2.0140836682}},
        {Spending::kObrienFleming,
         .05,
         {.25, .5, .75, 1},
         {4.33263364605, 2.96313159768, 2.3590442853, 2.01409014393}},
        {Spending::kObrienFleming, .05, {.4, .8, 1}, {3.35686935609, 2.25464260609, 2.02581534722}},
        {Spending::kPocock, .05, {.5, 1}, {2.15699921834, 2.20097695521}},
        {Spending::kPocock,
         .05,
         {.25, .5, .75, 1},
         {2.36832770352, 2.36752429466, 2.35816773499, 2.35002953729}},
        {Spending::kPocock,
         .05,
         {.2, .4, .6, .8, 1},
         {2.43797668805, 2.42681385815, 2.41019384027, 2.39664540065, 2.38598457162}},
        {Spending::kObrienFleming,
         .025,
         {1.0 / 3, 2.0 / 3, 1},
         {4.17084488063, 2.84581418934, 2.2637239709}},
        {Spending::kObrienFleming,
         .05 / 3,
         {1.0 / 3, 2.0 / 3, 1},
         {4.42212866387, 3.02798399038, 2.41181192816}},
    };
    for (const Row& row : rows) {
      const auto bounds = lan_demets_bounds(row.fractions, row.rule, row.alpha);
      REQUIRE(bounds.size() == row.bounds.size());
      for (std::size_t k = 0; k < bounds.size(); ++k) {
        REQUIRE(bounds[k].has_value());
        CHECK(*bounds[k] == near(row.bounds[k], 1e-9));
      }
    }
    CHECK(spent(Spending::kObrienFleming, .5, .025) == near(0.00152532275799, 1e-9));
    CHECK(spent(Spending::kObrienFleming, .75, .025) == near(0.00964932495351, 1e-9));
    CHECK(spent(Spending::kObrienFleming, 1, .025) == near(0.025, 1e-12));
  }

  TEST_CASE("looks that nobody planned cost the level") {
    const double sizes[] = {0.0831178033545, 0.10725637464, 0.141689332591};
    const int looks[] = {2, 3, 5};
    const double z = normal_quantile_two_sided(.05);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto at = equal_looks(looks[i]);
      const std::vector<LookBounds> each(at.size(), {-z, z});
      CHECK(total(sums_of(look_chances(at, each))) == near(sizes[i], 1e-9));
    }
  }

  TEST_CASE("bounds by fractions of rounds hold the level whatever the variances are") {
    struct Row {
      double icc, correlation, size;
    };
    // Of two methods that do not differ the statistic has no drift, and variances are as given.
    const Row rows[] = {{.5, .8, 0.0485881761563},
                        {.5, .5, 0.0475418661921},
                        {.85, .3, 0.0462702992243},
                        {.15, .8, 0.0496778075336}};
    const PlannedLooks looks{{1, 2, 3}};
    for (const Row& row : rows) {
      const Design d{.p_a = .5, .p_b = .4, .icc = row.icc, .correlation = row.correlation};
      CHECK(sequential_power(looks.bounds(.05), variances_at(looks, d), 0, 100) ==
            near(row.size, 1e-9));
    }
    for (double icc = 0; icc < .96; icc += .19)
      for (double r = 0; r < .81; r += .2)
        for (const Spending rule : {Spending::kObrienFleming, Spending::kPocock}) {
          const PlannedLooks these{{1, 2, 4, 5}, rule};
          const Design d{.p_a = .5, .p_b = .4, .icc = icc, .correlation = r};
          CHECK(sequential_power(these.bounds(.05), variances_at(these, d), 0, 100) <= .05 + 1e-9);
        }
  }

  TEST_CASE("fractions from variances that were only assumed break the level") {
    const auto size = [](const Design& assumed, const Design& truth) {
      const PlannedLooks looks{{1, 2, 3}};
      const auto fractions = [&](const Design& d) {
        const auto v = variances_at(looks, d);
        return std::vector<double>{v[2] / v[0], v[2] / v[1], 1};
      };
      const auto bounds = both_sides(lan_demets_bounds(fractions(assumed)));
      return total(sums_of(look_chances(fractions(truth), bounds)));
    };
    const auto at = [](double icc, double r) {
      return Design{.p_a = .5, .p_b = .4, .icc = icc, .correlation = r};
    };
    CHECK(size(at(.5, .5), at(.5, .8)) == near(0.0529319913886, 1e-9));
    CHECK(size(at(.9, .5), at(.1, .5)) == near(0.0753060161817, 1e-9));
  }

  TEST_CASE("twenty looks spend the level to the last digits under both rules") {
    for (const Spending rule : {Spending::kObrienFleming, Spending::kPocock}) {
      const auto at = equal_looks(20);
      const auto bounds = lan_demets_bounds(at, rule);
      const auto chances = sums_of(look_chances(at, both_sides(bounds)));
      double sum = 0;
      for (std::size_t k = 0; k < at.size(); ++k) {
        sum += chances[k];
        CHECK(sum == near(2 * spent(rule, at[k], .025), 1e-9));
      }
    }
  }
}
