#include "common/stats/clustered.h"

#include <doctest/doctest.h>

#include <vector>

using namespace proctor;

namespace {
doctest::Approx near(double expected) {
  return doctest::Approx(expected).epsilon(1e-9);
}
// Fixtures A and B of STATISTICS E1.
const std::vector<Cluster> kEqual = {{4, 4}, {4, 3}, {4, 0}, {4, 2},
                                     {4, 4}, {4, 1}, {4, 0}, {4, 3}};
const std::vector<Cluster> kUnequal = {{4, 4}, {4, 1}, {3, 3}, {2, 0}, {4, 2}, {1, 1}};
}  // namespace

// Oracles: STATISTICS E1.
TEST_SUITE("stats") {
  TEST_CASE("the clustered interval of eight tasks with four runs each is the published one") {
    const auto r = mean_of_task_means(kEqual);
    REQUIRE(r.has_value());
    CHECK(r->mean == near(0.53125));
    CHECK(*r->standard_error == near(0.1451407876));
    CHECK(r->interval->low == near(0.1880465739));
    CHECK(r->interval->high == near(0.8744534261));
  }

  TEST_CASE("with equal runs per task CR1 equals the standard error of task means") {
    const auto ratio = ratio_rate(kEqual);
    REQUIRE(ratio.has_value());
    CHECK(*ratio->cr1 == near(*mean_of_task_means(kEqual)->standard_error));
  }

  TEST_CASE("with unequal runs the two estimands differ and both are right") {
    const auto ratio = ratio_rate(kUnequal);
    REQUIRE(ratio.has_value());
    CHECK(ratio->ratio == near(0.6111111111));
    CHECK(*ratio->cr1 == near(0.1689825385));
    const auto means = mean_of_task_means(kUnequal);
    CHECK(means->mean == near(0.625));
    CHECK(*means->standard_error == near(0.1796988221));
  }

  TEST_CASE("one task has a rate but no standard error and none has nothing") {
    const std::vector<Cluster> one = {{4, 3}, {0, 0}};
    CHECK(mean_of_task_means(one)->mean == 0.75);
    CHECK(mean_of_task_means(one)->tasks == 1);
    CHECK(!mean_of_task_means(one)->standard_error);
    CHECK(!ratio_rate(one)->cr1);
    CHECK(!mean_of_task_means({}));
    CHECK(!ratio_rate({}));
  }

  TEST_CASE("intervals of a rate over runs hold near 0 and 1 as those over tasks do") {
    // With as many runs of each task the two rates are one, and so are their errors.
    const std::vector<Cluster> even = {{4, 4}, {4, 1}, {4, 0}, {4, 3}, {4, 4}};
    const auto over_tasks = near_ends(even), over_runs = ratio_ends(even);
    REQUIRE(over_runs.has_value());
    CHECK(*over_runs->effective_n == near(*over_tasks->effective_n));
    CHECK(over_runs->wilson.low == near(over_tasks->wilson.low));
    CHECK(over_runs->korn_graubard.low == near(over_tasks->korn_graubard.low));
    CHECK(over_runs->korn_graubard.high == near(over_tasks->korn_graubard.high));
    const auto uneven = ratio_ends(std::vector<Cluster>{{1, 1}, {9, 8}, {2, 2}, {3, 3}, {2, 1}});
    CHECK(uneven->korn_graubard.high < 1);
    CHECK(uneven->wilson.high < 1);
    CHECK(ratio_ends(std::vector<Cluster>{{2, 2}, {3, 3}})->wilson.high == 1);
    CHECK(ratio_ends(std::vector<Cluster>{{7, 3}})->wilson.low < 3. / 7);
    CHECK_FALSE(ratio_ends({}).has_value());
  }

  TEST_CASE("tasks that all have the same rate get an interval over the tasks and not a point") {
    const std::vector<Cluster> same = {{2, 2}, {3, 3}, {1, 1}, {2, 2}};
    const auto r = mean_of_task_means(same);
    REQUIRE(r.has_value());
    CHECK(*r->standard_error == 0);
    CHECK(r->interval->low == near(wilson(4, 4)->low));
    CHECK(r->interval->high == near(1));
  }

  TEST_CASE("tasks that are alike in rates that no binary fraction has show no spread") {
    // SciPy's Wilson interval of 3/5 over 12 tasks; what rounding left gave [0.6, 0.6].
    const std::vector<Cluster> alike(12, Cluster{5, 3});
    const auto rate = mean_of_task_means(alike);
    CHECK(rate->mean == 0.6);
    CHECK(*rate->standard_error == 0);
    CHECK(rate->interval->low == near(0.333291128432853));
    CHECK(rate->interval->high == near(0.8182100702360988));
    CHECK_FALSE(near_ends(alike)->effective_n.has_value());
    CHECK(near_ends(alike)->korn_graubard.low == near(0.333291128432853));
    CHECK(*ratio_rate(alike)->cr2 == 0);
    CHECK_FALSE(ratio_rate(alike)->interval.has_value());
  }
}
