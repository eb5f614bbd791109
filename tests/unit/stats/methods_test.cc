#include <array>
#include <cmath>

#include "common/stats/amounts.h"
#include "common/stats/heterogeneity.h"
#include "common/stats/power.h"
#include "common/stats/rerun.h"
#include "common/stats/simultaneous.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr std::array<std::uint64_t, 8> kA2 = {4, 3, 1, 1, 2, 0, 0, 2};

std::vector<std::int64_t> minus(const std::array<std::uint64_t, 8>& a,
                                const std::array<std::uint64_t, 8>& b) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < a.size(); ++i)
    out.push_back(static_cast<std::int64_t>(a[i]) - static_cast<std::int64_t>(b[i]));
  return out;
}

// Replicates of the means of some columns over all 256 resamples of four tasks.
template <std::size_t N>
std::vector<double> all_resampled(const std::array<std::array<double, 4>, N>& columns) {
  std::vector<double> out;
  for (std::size_t r = 0; r < 256; ++r)
    for (const auto& column : columns) {
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i) sum += column[r >> (2 * i) & 3U];
      out.push_back(sum / 4);
    }
  return out;
}

}  // namespace

// Figures by NumPy, SciPy and statsmodels.
TEST_SUITE("stats") {
  TEST_CASE("contrasts hold together by the largest deviation of joint replicates") {
    const std::array<std::array<double, 4>, 3> contrasts = {
        {{.5, .25, 0, .25}, {.25, .5, -.25, .25}, {0, .25, -.25, .5}}};
    std::vector<double> estimates, errors;
    for (const auto& c : contrasts) {
      const Difference d = mean_difference(c);
      estimates.push_back(*d.estimate.value);
      errors.push_back(*d.estimate.standard_error);
    }
    const std::vector<double> replicates = all_resampled(contrasts);
    const MaxT t = max_t(estimates, errors, replicates, 4);
    CHECK(t.critical == near(1.936491673 * std::sqrt(4.0 / 3)));
    CHECK(t.intervals[1]->high == near(estimates[1] + t.critical * errors[1]));
    // A contrast without an error is named, not in the family.
    errors[0] = 0;
    const MaxT two = max_t(estimates, errors, replicates, 4);
    CHECK_FALSE(two.intervals[0].has_value());
    CHECK(two.intervals[2].has_value());
    CHECK(two.critical <= t.critical);
    const std::vector<double> none(3, 0.0);
    CHECK(max_t(estimates, none, replicates, 4).critical == 0);
  }

  TEST_CASE("sign flips that all contrasts share adjust their p-values") {
    const std::vector<std::vector<std::int64_t>> contrasts = {minus(kA, kA1), minus(kA, kA2),
                                                              minus(kA2, kA1)};
    CHECK(westfall_young(contrasts) == std::vector<double>{0.2578125, 0.3828125, 0.765625});
    // The order of contrasts changes nothing, and one of zeros says nothing.
    const std::vector<std::vector<std::int64_t>> turned = {
        contrasts[2], std::vector<std::int64_t>(8, 0), contrasts[0], contrasts[1]};
    CHECK(westfall_young(turned) == std::vector<double>{0.765625, 1, 0.2578125, 0.3828125});
    CHECK(westfall_young({}).empty());
    CHECK(westfall_young(std::vector<std::vector<std::int64_t>>{{}})[0] == 1);
  }

  TEST_CASE("more tasks than can be enumerated draw their flips") {
    std::vector<std::int64_t> strong(30, 1), weak(30, 0);
    for (std::size_t i = 0; i < weak.size(); ++i) weak[i] = i % 2 == 0 ? 1 : -1;
    const std::vector<std::vector<std::int64_t>> contrasts = {strong, weak};
    CHECK(westfall_young(contrasts) == std::vector<double>{1.0 / 10000, 1});
  }

  TEST_CASE("several tries: at least one, and every one") {
    const std::vector<Cluster> a = side_of(equal_pairs(), &PairedTask::a);
    const std::array<double, 4> at = {0.53125, 0.6666666667, 0.71875, 0.75};
    const std::array<double, 4> all = {0.53125, 0.3958333333, 0.3125, 0.25};
    for (std::uint64_t k = 1; k <= 4; ++k) {
      const PassEstimate e = pass_k(a, k);
      CHECK(*e.at_least_one.value == near(at[k - 1]));
      CHECK(*e.all.value == near(all[k - 1]));
    }
    const PassEstimate two = pass_k(a, 2);
    CHECK(*two.at_least_one.standard_error == near(0.1574851971));
    check_interval(two.at_least_one.interval, 0.2942733504, 1.039059983);
    const PassEstimate b = pass_k(side_of(unequal_pairs(), &PairedTask::a), 2);
    CHECK(b.tasks == 5);
    CHECK(b.too_few == 1);
    CHECK(*b.at_least_one.value == near(0.6666666667));
    CHECK(*b.at_least_one.standard_error == near(0.1900292375));
    const std::vector<Cluster> scripted = {{2, 0}, {2, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 1}, {2, 0}};
    CHECK(*pass_k(scripted, 2).at_least_one.value == near(0.3333333333));
    CHECK(*pass_k(scripted, 2).all.value == near(0.1666666667));
    CHECK(pass_k(a, 5).at_least_one.why == Why::kNothing);
    CHECK(*pass_at_k({5, 2}, 2) == near(0.7));
    CHECK(*pass_all_k({5, 2}, 2) == near(0.1));
    CHECK(*pass_at_k({5, 4}, 2) == 1.0);
    CHECK(*pass_at_k({5, 0}, 2) == 0.0);
    CHECK_FALSE(pass_at_k({1, 1}, 2).has_value());
    const Reliability r = reliability(a);
    CHECK(r.always == 2);
    CHECK(r.sometimes == 4);
    CHECK(r.never == 2);
  }

  TEST_CASE("nobody beats a method on the frontier in both") {
    const std::vector<CostQuality> methods = {
        {{32, 10}, {3, 4}}, {{2, 1}, {1, 2}}, {{11, 10}, {5, 10}}};
    CHECK(frontier(methods) == std::vector<bool>{true, false, true});
    const std::vector<CostQuality> equal = {{{1, 1}, {1, 2}}, {{1, 1}, {1, 2}}};
    CHECK(frontier(equal) == std::vector<bool>{true, true});
    const std::vector<CostQuality> replicates = {
        {{1, 1}, {1, 2}}, {{2, 1}, {2, 5}}, {{1, 1}, {1, 2}}, {{2, 1}, {3, 5}}};
    CHECK(frontier_shares(replicates, 2) == std::vector<double>{1, .5});
  }

  TEST_CASE("power is known before money is spent") {
    Design d{.p_a = .5, .p_b = .4, .icc = .5, .correlation = .8, .runs = 1};
    CHECK(variance_of_task_difference(d) == near(0.2940408206));
    CHECK(power_of(d, 230) < .8);
    CHECK(.8 <= power_of(d, 231));
    d.runs = 5;
    CHECK(variance_of_task_difference(d) == near(0.09804082058));
    CHECK(power_of(d, 76) < .8);
    CHECK(.8 <= power_of(d, 77));
    d.runs = 3;
    CHECK(variance_of_task_difference(d) == near(0.1307074872));
    CHECK(power_of(d, 102) < .8);
    CHECK(.8 <= power_of(d, 103));
    CHECK(power_of_t(d, 104) < .8);
    CHECK(power_of_t(d, 105) == near(0.8017994, 1e-7));
    CHECK(power_of(d, 100) == near(0.7898856812));
    d.p_b = d.p_a;
    CHECK(power_of(d, 100) == near(0.05));
  }

  TEST_CASE("strata differ, or their few tasks do not show it") {
    const std::vector<std::vector<double>> strata = {
        {1, .75, .5, .25, 1}, {.5, 0, .25}, {.75, .25, 0, .5}};
    const auto differ = heterogeneity(strata);
    REQUIRE(differ.has_value());
    CHECK(differ->p == 4548.0 / 27720);
    CHECK(differ->exact);
    CHECK(heterogeneity(std::vector<std::vector<double>>{{1, 1}, {0, 1}})->p == 1);
    CHECK_FALSE(heterogeneity(std::vector<std::vector<double>>{{1, 0}, {}}).has_value());
    CHECK_FALSE(heterogeneity(std::vector<std::vector<double>>{{1, 1}, {1}}).has_value());
    std::vector<std::vector<double>> many(2);
    for (int i = 0; i < 40; ++i) many[i < 20 ? 0 : 1].push_back(i < 20 ? i % 4 : 10 + i % 4);
    const auto drawn = heterogeneity(many);
    CHECK_FALSE(drawn->exact);
    CHECK(drawn->p == 1.0 / 10000);
  }

  TEST_CASE("ranks are sets") {
    const std::vector<double> estimates = {.62, .60, .55, .40};
    std::vector<std::optional<Interval>> differences;
    for (const double a : estimates)
      for (const double b : estimates)
        differences.push_back(Interval{a - b - 2.6 * .02, a - b + 2.6 * .02});
    CHECK(rank_sets(differences, 4) == std::vector<RankSet>{{1, 2}, {1, 3}, {2, 3}, {4, 4}});
    differences.assign(16, std::nullopt);
    CHECK(rank_sets(differences, 4) == std::vector<RankSet>(4, RankSet{1, 4}));
  }
}
