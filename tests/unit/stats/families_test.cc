// Families of tests, outcomes that are not known, money, and intervals of independent trials.
#include <vector>

#include "common/stats/amounts.h"
#include "common/stats/clustered.h"
#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/simultaneous.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("stats") {
  TEST_CASE("the other intervals of independent trials are the published ones") {
    check_interval(clopper_pearson(3, 1000), 0.0006190999316, 0.008742023238);
    check_interval(clopper_pearson(500'000, 1'000'000), 0.4990195192, 0.5009804808);
  }

  TEST_CASE("p-values are adjusted for the size of their family") {
    const std::vector<double> p = {.001, .008, .039, .041, .042, .06, .074, .205};
    const std::vector<double> holm = adjust_holm(p);
    CHECK(holm[0] == near(.008));
    CHECK(holm[1] == near(.056));
    for (std::size_t i = 2; i < p.size(); ++i) CHECK(holm[i] == near(.234));
    CHECK(adjust_holm(std::vector<double>{.9, .01})[0] == near(.9));
    CHECK(adjust_holm({}).empty());
  }

  TEST_CASE("bounds hold whatever the unknown outcomes are") {
    CHECK_FALSE(bounds_of_rate({}).has_value());
    const std::vector<PartlyKnown> tasks = {{2, 2, 0}, {2, 1, 1}, {2, 0, 1}, {2, 0, 0},
                                            {2, 1, 0}, {2, 0, 2}, {2, 2, 0}, {2, 1, 0}};
    const auto clustered = bounds_of_rate(tasks);
    CHECK(clustered->identified.low == near(0.4375));
    CHECK(clustered->identified.high == near(0.6875));
    check_interval(clustered->interval, 0.194250664, 0.9043703632);
  }

  TEST_CASE("bounds of a difference take each side's unknowns against it") {
    const std::vector<std::uint64_t> a = {2, 1, 0, 2, 1, 0}, a_unknown = {0, 1, 0, 0, 0, 1};
    const std::vector<std::uint64_t> b = {1, 1, 0, 1, 0, 0}, b_unknown = {0, 0, 1, 0, 1, 0};
    std::vector<PartlyKnownPair> tasks;
    for (std::size_t i = 0; i < a.size(); ++i)
      tasks.push_back({{2, a[i], a_unknown[i]}, {2, b[i], b_unknown[i]}});
    const auto d = bounds_of_difference(tasks);
    CHECK(d->identified.low == near(0.08333333333));
    CHECK(d->identified.high == near(0.4166666667));
    check_interval(d->interval, -0.1695149295, 0.5537928902);
    CHECK_FALSE(bounds_of_difference({}).has_value());
  }

  TEST_CASE("cost per success has Fieller's interval, or says that there is none") {
    const std::vector<double> costs = {3.2, 2.5, 4.8, 3.9, 2.1, 4.4, 5, 3};
    std::vector<CostOfTask> tasks;
    for (std::size_t i = 0; i < costs.size(); ++i)
      tasks.push_back({costs[i], static_cast<double>(kA[i])});
    const CostPerSuccess r = cost_per_success(tasks);
    CHECK(*r.estimate.value == near(1.7));
    check_interval(r.estimate.interval, 0.7853629227, 5.923895213);
    const std::vector<double> rare = {1, 0, 0, 0, 0, 0, 0, 2};
    for (std::size_t i = 0; i < rare.size(); ++i) tasks[i].successes = rare[i];
    const CostPerSuccess unbounded = cost_per_success(tasks);
    CHECK(*unbounded.estimate.value == near(9.633333333));
    CHECK(unbounded.estimate.why == Why::kUnbounded);
    CHECK(*unbounded.low == near(3.200472581));
    // Where the ratio lies below the smaller root (1128), nothing bounds it from below.
    const CostPerSuccess below = cost_per_success(std::vector<CostOfTask>{{2114, 2}, {3263, 3}});
    CHECK(*below.estimate.value == near(1075.4));
    CHECK(below.estimate.why == Why::kUnbounded);
    CHECK_FALSE(below.low.has_value());
    for (CostOfTask& t : tasks) t.successes = 0;
    CHECK(cost_per_success(tasks).estimate.why == Why::kNoSuccess);
  }

  TEST_CASE("strata count by their registered weights, and none is left out in silence") {
    std::vector<Stratum> strata = {
        {.5, {1, .75, .5, .25, 1}}, {.3, {.5, 0, .25}}, {.2, {.75, .25, 0, .5}}};
    const Stratified s = stratified_mean(strata);
    CHECK(*s.estimate.value == near(0.5));
    CHECK(*s.estimate.standard_error == near(0.0907147544));
    CHECK(*s.estimate.df == near(7.380703656));
    check_interval(s.estimate.interval, 0.2877164035, 0.7122835965);
    CHECK(*s.post_stratified_error == near(0.09474777677));
    const Stratified d = stratified_mean(
        std::vector<Stratum>{{.5, {.25, .5, 0}}, {.3, {0, .25}}, {.2, {.25, -.25, .5}}});
    CHECK(*d.estimate.value == near(0.1958333333));
    CHECK(*d.estimate.standard_error == near(0.0925150138));
    CHECK(*d.estimate.df == near(4.202600591));
    check_interval(d.estimate.interval, -0.05621886944, 0.4478855361);
    // Three times 0.6 have a mean that is not 0.6: that is rounding, and no spread.
    const Stratified alike = stratified_mean(std::vector<Stratum>{{1, {.6, .6, .6}}});
    CHECK(alike.estimate.why == Why::kNoVariance);
    CHECK(*alike.estimate.standard_error == 0);
    CHECK_FALSE(alike.estimate.interval.has_value());
    strata[1].values = {.5};
    CHECK(stratified_mean(strata).estimate.why == Why::kOneTask);
    CHECK(stratified_mean(strata).estimate.value.has_value());
    strata[1].values.clear();
    CHECK(stratified_mean(strata).estimate.why == Why::kNothing);
    CHECK_FALSE(stratified_mean(strata).estimate.value.has_value());
    CHECK(effective_tasks(std::vector<double>(5, 2.0)) == near(5));
  }

  TEST_CASE("runs of one task are as alike as their intraclass correlation says") {
    const auto a = intraclass_correlation(side_of(equal_pairs(), &PairedTask::a));
    CHECK(*a.rho.value == near(0.4986225895));
    check_interval(a.rho.interval, 0.1547278989, 0.8398588348);
    CHECK(*a.design_effect == near(2.495867769));
    const auto b = intraclass_correlation(side_of(unequal_pairs(), &PairedTask::a));
    CHECK(*b.rho.value == near(0.458677686));
    CHECK_FALSE(b.rho.interval.has_value());
    CHECK(intraclass_correlation(std::vector<Cluster>(3, {2, 2})).rho.why == Why::kNoVariance);
    CHECK(intraclass_correlation(std::vector<Cluster>{{1, 1}, {1, 0}}).rho.why == Why::kTooFew);
    CHECK(intraclass_correlation(std::vector<Cluster>{{4, 1}}).rho.why == Why::kOneTask);
  }

  TEST_CASE("every reason has words") {
    for (int i = 1; i <= static_cast<int>(Why::kNotDefined); ++i)
      CHECK_FALSE(word_of(static_cast<Why>(i)).empty());
  }
}
