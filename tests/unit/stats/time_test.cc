#include <array>

#include "common/stats/amounts.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr Ending kS = Ending::kSuccess, kF = Ending::kFailure, kC = Ending::kCensored;

std::vector<CostPair> cost_pairs() {
  const std::array<double, 8> a = {3.2, 2.5, 4.8, 3.9, 2.1, 4.4, 5, 3};
  const std::array<double, 8> b = {2.0, 1.1, 2.2, 1.9, 1.5, 1.2, 2.6, 1.4};
  std::vector<CostPair> out;
  for (std::size_t i = 0; i < a.size(); ++i)
    out.push_back({{a[i], static_cast<double>(kA[i])}, {b[i], static_cast<double>(kA1[i])}});
  return out;
}

}  // namespace

// Figures by NumPy, SciPy and lifelines.
TEST_SUITE("stats") {
  TEST_CASE("one more success costs what both differences say, or no ratio is given") {
    const std::vector<CostPair> tasks = cost_pairs();
    const IncrementalCost c = incremental_cost(tasks);
    CHECK(*c.cost.value == near(1.875));
    CHECK(*c.success.value == near(0.75));
    CHECK(*c.ratio.estimate.value == near(2.5));
    CHECK(c.ratio.estimate.why == Why::kUnbounded);
    std::vector<CostPair> turned = tasks;
    for (CostPair& t : turned) std::swap(t.a, t.b);
    CHECK(incremental_cost(turned).ratio.estimate.why == Why::kNotDefined);
    CHECK(incremental_cost({}).ratio.estimate.why == Why::kNotPaired);
  }

  TEST_CASE("a quantile over tasks has Woodruff's interval") {
    const std::vector<std::vector<double>> tasks = {{10, 12, 30}, {8, 9, 11},   {40, 44, 60},
                                                    {15, 15, 18}, {22, 25, 70}, {5, 6, 9}};
    const QuantileEstimate median = quantile_over_tasks(tasks, .5);
    CHECK(*median.estimate.value == near(15));
    CHECK(*median.estimate.standard_error == near(0.1859244503));
    check_interval(median.shares, 0.02206598515, 0.9779340148);
    check_interval(median.estimate.interval, 5.375121748, 66.24878252);
    const QuantileEstimate upper = quantile_over_tasks(tasks, .75);
    CHECK(*upper.estimate.value == near(28.75));
    check_interval(upper.estimate.interval, 10.79791975, 70);
    std::vector<std::vector<double>> one(1);
    for (const auto& task : tasks) one[0].insert(one[0].end(), task.begin(), task.end());
    const QuantileEstimate ranks = quantile_over_tasks(one, .5);
    check_interval(ranks.estimate.interval, 9, 30);
    CHECK(quantile_over_tasks(std::vector<std::vector<double>>{{1, 2}}, .5).estimate.why ==
          Why::kTooFew);
    CHECK(quantile_over_tasks({}, .5).estimate.why == Why::kNothing);
  }

  TEST_CASE("a run that failed competes, and is not censored") {
    const std::vector<Lifetime> runs = {{.4, kS},  {.9, kF},  {1.1, kS}, {1.1, kC}, {2, kS},
                                        {2.6, kF}, {3.5, kC}, {4.2, kS}, {5, kC},   {5, kC}};
    const std::vector<CurvePoint> curve = cumulative_incidence(runs);
    const std::array<std::array<double, 3>, 4> expected = {{{.4, 0.1, 0.09486832981},
                                                            {1.1, 0.2, 0.1264911064},
                                                            {2, 0.3166666667, 0.1525098661},
                                                            {4.2, 0.4722222222, 0.1781246616}}};
    for (const auto& [time, value, error] : expected) {
      const CurvePoint* point = at(curve, time);
      REQUIRE(point != nullptr);
      CHECK(point->value == near(value));
      CHECK(point->standard_error == near(error));
    }
    // Without failures it is 1 - survival by Kaplan and Meier; without censoring, the plain share.
    std::vector<Lifetime> all = runs;
    for (Lifetime& run : all)
      if (run.ending == kF) run.ending = kS;
    const auto incidence = cumulative_incidence(all);
    const CurvePoint* last = at(incidence, 4.9);
    REQUIRE(last != nullptr);
    CHECK(last->value == near(1 - 0.3111111111));
    CHECK(last->standard_error == near(0.1683617504));
    CHECK(last->at_risk == 3);
    CHECK(at(incidence, 0.1) == nullptr);
    const std::vector<Lifetime> share = {{1, kS}, {2, kF}, {3, kS}, {4, kF}};
    CHECK(cumulative_incidence(share).back().value == near(.5));
    CHECK(cumulative_incidence(share).back().standard_error == near(.25));
  }
}
