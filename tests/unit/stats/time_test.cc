#include <array>

#include "common/stats/forecast.h"
#include "common/stats/incremental.h"
#include "common/stats/quantile.h"
#include "common/stats/survival.h"
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
    CHECK(c.ratio.g == near(1.331297107));
    CHECK(c.ratio.estimate.why == Why::kUnbounded);
    std::vector<CostPair> turned = tasks;
    for (CostPair& t : turned) std::swap(t.a, t.b);
    CHECK(incremental_cost(turned).ratio.estimate.why == Why::kNotDefined);
    CHECK(incremental_cost({}).ratio.estimate.why == Why::kNotPaired);
    const std::array<std::array<double, 4>, 5> net = {{{0.5, -1.5, 0.4114434521, 0.0001333316982},
                                                       {1, -1.125, 0.5630751028, 0.02286064598},
                                                       {2, -0.375, 0.9019324492, 0.3387877182},
                                                       {4, 1.125, 1.615521809, 0.7569012485},
                                                       {8, 4.125, 3.068721814, 0.9105594106}}};
    for (const auto& [value, mean, error, probability] : net) {
      const NetBenefit b = net_benefit(tasks, value);
      CHECK(*b.estimate.value == near(mean));
      CHECK(*b.estimate.standard_error == near(error));
      CHECK(*b.probability == near(probability));
    }
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
    CHECK(*ranks.coverage == near(0.9691162109));
    check_interval(ranks.estimate.interval, 9, 30);
    CHECK(quantile_over_tasks(std::vector<std::vector<double>>{{1, 2}}, .5).estimate.why ==
          Why::kTooFew);
    CHECK(quantile_over_tasks({}, .5).estimate.why == Why::kNothing);
    CHECK(*nearest_rank({30, 10, 20, 40}, .5) == 20);
    CHECK(*nearest_rank({30, 10, 20, 40}, 0) == 10);
    CHECK(*nearest_rank({30, 10, 20, 40}, 1) == 40);
    CHECK_FALSE(nearest_rank({}, 1).has_value());
  }

  TEST_CASE("survival with what was censored") {
    const std::vector<Lifetime> runs = {{.40, kS},  {.90, kS},  {1.10, kS}, {1.10, kC}, {2.00, kS},
                                        {2.60, kS}, {3.50, kC}, {4.20, kS}, {5.00, kC}, {5.00, kC}};
    const std::vector<CurvePoint> curve = kaplan_meier(runs);
    const CurvePoint* point = at(curve, 4.9);
    REQUIRE(point != nullptr);
    CHECK(point->value == near(0.3111111111));
    CHECK(point->standard_error == near(0.1683617504));
    CHECK(point->at_risk == 3);
    check_interval(point->interval, 0.05523890488, 0.6245404875);
    CHECK(at(curve, 0.1) == nullptr);
    const SurvivalQuantile median = survival_quantile(curve, .5);
    CHECK(*median.value == 2.6);
    CHECK(*median.low == 0.4);
    CHECK_FALSE(median.high.has_value());
    const SurvivalQuantile quarter = survival_quantile(curve, .25);
    CHECK(*quarter.value == 1.1);
    CHECK(*quarter.low == 0.4);
    CHECK(*quarter.high == 2.6);
    const RestrictedMean mean = restricted_mean(runs, 5);
    CHECK(mean.value == near(2.985555556));
    CHECK(mean.standard_error == near(0.5723156342));
    const std::vector<Lifetime> others = {{.5, kS},  {.7, kS},  {.9, kS},  {1.2, kS}, {1.6, kS},
                                          {2.1, kS}, {2.2, kC}, {3.0, kS}, {4.5, kS}, {5.0, kC}};
    const auto test = log_rank(runs, others);
    CHECK(test->observed == near(6));
    CHECK(test->expected == near(7.369262652));
    CHECK(test->variance == near(3.431051949));
    CHECK(test->test.statistic == near(0.5464447164));
    CHECK(test->test.p == near(0.4597740309));
    CHECK_FALSE(log_rank(runs, {}).has_value());
    CHECK(kaplan_meier({}).empty());
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
    // Without failures it is 1 - survival; without censoring, the plain share.
    std::vector<Lifetime> all = runs;
    for (Lifetime& run : all)
      if (run.ending == kF) run.ending = kS;
    const auto survival = kaplan_meier(all);
    const auto incidence = cumulative_incidence(all);
    REQUIRE(survival.size() == incidence.size());
    for (std::size_t i = 0; i < survival.size(); ++i) {
      CHECK(incidence[i].value == near(1 - survival[i].value));
      CHECK(incidence[i].standard_error == near(survival[i].standard_error));
    }
    const std::vector<Lifetime> share = {{1, kS}, {2, kF}, {3, kS}, {4, kF}};
    CHECK(cumulative_incidence(share).back().value == near(.5));
    CHECK(cumulative_incidence(share).back().standard_error == near(.25));
  }

  TEST_CASE("what is left costs about what ended runs say, and how sure that is") {
    const std::vector<RunsLeft> known = {{400, 90, 60, {}}};
    const Estimate sure = forecast(known, 8);
    CHECK(*sure.value == near(4500));
    check_interval(sure.interval, 4307.767265, 4692.232735);
    const std::vector<RunsLeft> estimated = {{400, 90, 60, 100.0}, {0, 0, 0, {}}};
    check_interval(forecast(estimated, 8).interval, 4070.154537, 4929.845463);
    CHECK(*forecast({}).value == 0);
  }
}
