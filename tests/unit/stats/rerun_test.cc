#include "common/stats/rerun.h"

#include <numeric>

#include "common/stats/clustered.h"
#include "common/stats/paired.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

// Figures by NumPy and SciPy: fractions and scipy.stats.hypergeom for the gap, the general matrix
// form of Bell and McCaffrey for groups.
TEST_SUITE("stats") {
  TEST_CASE("the floor of noise is what runs of one task vary by") {
    std::vector<Cluster> a;
    for (const std::uint64_t c : kA) a.push_back({4, c});
    const RerunNoise noise = rerun_noise(a);
    CHECK(noise.tasks == 8);
    CHECK(*noise.standard_error == near(0.06505206248331664));
    CHECK(*noise.gap95 == near(0.1803118043549255));
    CHECK(noise.why == Why::kOk);
    // The sixth task has one run: it varies as the others do on average.
    const std::vector<Cluster> b = side_of(unequal_pairs(), &PairedTask::a);
    CHECK(rerun_noise(b).tasks == 5);
    CHECK(*rerun_noise(b).standard_error == near(0.08539125638299665));
    CHECK(*rerun_noise(b, Weighing::kRuns).standard_error == near(0.08695819912499182));
    CHECK(rerun_noise({}).why == Why::kNothing);
    const std::vector<Cluster> single(5, Cluster{1, 1}), alike(5, Cluster{3, 3});
    CHECK(rerun_noise(single).why == Why::kTooFew);
    CHECK_FALSE(rerun_noise(single).gap95.has_value());
    CHECK(rerun_noise(alike).why == Why::kNoVariance);
    CHECK(*rerun_noise(alike).gap95 == 0);
  }

  TEST_CASE("two equal methods differ by what dealing out the runs of each task gives") {
    const auto equal = gap_of_equals(equal_pairs());
    REQUIRE(equal.has_value());
    CHECK(equal->exact);
    CHECK(equal->gap95 == near(3.0 / 16));
    CHECK(equal->p == near(0.12425182215743441));
    const auto unequal = gap_of_equals(unequal_pairs());
    CHECK(unequal->gap95 == near(13.0 / 36));
    CHECK(unequal->p == near(0.2005668934240363));
    const auto runs = gap_of_equals(unequal_pairs(), Weighing::kRuns);
    CHECK(runs->gap95 == near(1.0 / 3));
    CHECK(runs->p == near(0.28616780045351486));
    CHECK_FALSE(gap_of_equals({}).has_value());
    // Nothing that chance could deal out otherwise.
    const std::vector<PairedTask> solved(4, PairedTask{{2, 2}, {3, 3}});
    CHECK(gap_of_equals(solved)->gap95 == 0);
    CHECK(gap_of_equals(solved)->p == 1);
  }

  TEST_CASE("with one run a task it is McNemar's exact test") {
    std::vector<PairedTask> tasks(5, PairedTask{{1, 1}, {1, 1}});
    tasks.insert(tasks.end(), 9, PairedTask{{1, 1}, {1, 0}});
    tasks.insert(tasks.end(), 2, PairedTask{{1, 0}, {1, 1}});
    CHECK(gap_of_equals(tasks)->p == near(mcnemar_exact({5, 9, 2, 0})));
    CHECK(gap_of_equals(tasks)->gap95 == near(7.0 / 16));
  }

  TEST_CASE("numbers of runs without a small common multiple are answered by the normal law") {
    std::vector<PairedTask> many, coprime;
    for (const std::uint64_t runs : {53U, 59U, 61U, 67U, 71U, 73U, 79U, 83U}) {
      many.push_back({{64, 30}, {64, 24}});
      coprime.push_back({{runs, runs / 2}, {64, 24}});
    }
    CHECK(gap_of_equals(many)->exact);
    const auto rough = gap_of_equals(coprime);
    CHECK_FALSE(rough->exact);
    CHECK(rough->gap95 == doctest::Approx(gap_of_equals(many)->gap95).epsilon(0.1));
    CHECK(0 < rough->p);
    CHECK(rough->p < 1);
  }

  TEST_CASE("tasks of one repository are one unit") {
    const std::vector<double> d = {.25, .5, 0, 0, .25, .25, -.25, .5};
    const std::vector<std::uint32_t> of = {1, 1, 1, 2, 2, 3, 3, 4};
    const GroupedMean by = grouped_mean(d, of);
    CHECK(by.groups == 4);
    CHECK(*by.estimate.value == near(0.1875));
    CHECK(*by.estimate.standard_error == near(0.07666796065160589));
    CHECK(*by.estimate.df == near(2.603305785123967));
    check_interval(by.estimate.interval, -0.07893503907853655, 0.45393503907853655);
    CHECK(*by.p == near(0.10503653193937605));
    // A repository for each task is the paired difference itself.
    std::vector<std::uint32_t> each(d.size());
    std::iota(each.begin(), each.end(), 1U);
    const Difference paired = mean_difference(d);
    CHECK(*grouped_mean(d, each).estimate.standard_error ==
          near(*paired.estimate.standard_error, 1e-12));
    CHECK(*grouped_mean(d, each).estimate.df == near(7, 1e-12));
    CHECK(*grouped_mean(d, each).p == near(*paired.p, 1e-12));
    // And successes in groups are the ratio's error over tasks.
    std::vector<double> outcomes;
    std::vector<std::uint32_t> task;
    const std::vector<Cluster> b = side_of(unequal_pairs(), &PairedTask::a);
    for (std::uint32_t i = 0; i < b.size(); ++i)
      for (std::uint64_t r = 0; r < b[i].runs; ++r) {
        outcomes.push_back(r < b[i].successes ? 1 : 0);
        task.push_back(i);
      }
    CHECK(*grouped_mean(outcomes, task).estimate.standard_error == near(0.1714286255));
    CHECK(*grouped_mean(outcomes, task).estimate.df == near(4.237029502));
  }

  TEST_CASE("one repository, equal values and no values are said") {
    const std::vector<double> d = {.1, .3, .2}, same = {.1, .1, .1};
    const std::vector<std::uint32_t> one = {7, 7, 7}, two = {7, 8, 8};
    CHECK(grouped_mean(d, one).estimate.why == Why::kOneTask);
    CHECK(grouped_mean(same, two).estimate.why == Why::kNoVariance);
    CHECK_FALSE(grouped_mean(same, two).p.has_value());
    CHECK(grouped_mean({}, {}).estimate.why == Why::kNothing);
  }
}
