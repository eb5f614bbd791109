#include <array>
#include <cmath>

#include "common/plan/plan.h"
#include "common/stats/paired.h"
#include "common/stats/power.h"
#include "common/stats/power_plan.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Twelve digits were published.
doctest::Approx twelve(double expected) {
  return near(expected, 1e-9);
}

Design design(double icc, double correlation, double runs, double p_b = .4) {
  return {.p_a = p_b + .1, .p_b = p_b, .icc = icc, .correlation = correlation, .runs = runs};
}

double smallest(const Design& d, std::uint64_t tasks) {
  const auto found = smallest_difference(d, tasks, .8);
  REQUIRE(found.has_value());
  return *found;
}

}  // namespace

// Figures by SciPy, or by exact arithmetic of whole numbers.
TEST_SUITE("power") {
  TEST_CASE("variance, tasks and power at five points") {
    struct Row {
      Design d;
      double variance, normal, tasks, power, at_100;
    };
    const Row rows[] = {
        {design(.5, .8, 3), 0.130707487244, 102.590734776, 105, 0.801799417236, 0.782039847507},
        {design(.15, .3, 4), 0.155579592315, 122.11255092, 125, 0.803041710677, 0.709064689778},
        {design(.15, .5, 4), 0.140882653858, 110.577100679, 113, 0.801722045888, 0.751223406877},
        {design(.85, .3, 4), 0.309951023118, 243.276830399, 246, 0.801279820107, 0.428198443417},
        {design(.85, .5, 4), 0.226668371863, 177.909279034, 180, 0.80035457425, 0.547803751992},
    };
    for (const Row& row : rows) {
      CAPTURE(row.variance);
      CHECK(variance_of_task_difference(row.d) == twelve(row.variance));
      CHECK(tasks_by_variance(.1, row.variance, .05, .8) == twelve(row.normal));
      const auto tasks = static_cast<std::uint64_t>(row.tasks);
      CHECK(power_of_t(row.d, tasks - 1) < .8);
      CHECK(power_of_t(row.d, tasks) == twelve(row.power));
      CHECK(power_of_t(row.d, 100) == twelve(row.at_100));
    }
    CHECK(power_of_t(design(.15, .3, 4), 250) == twelve(0.978980682651));
    CHECK(power_of_t(design(.15, .5, 4), 250) == twelve(0.987332244005));
    CHECK(power_of_t(design(.85, .3, 4), 250) == twelve(0.807604475309));
    CHECK(power_of_t(design(.85, .5, 4), 250) == twelve(0.911209989214));
  }

  TEST_CASE("the smallest difference moves the variance with it") {
    struct Row {
      double correlation, runs;
      std::uint64_t tasks;
      double difference;
    };
    const Row rows[] = {
        {.8, 1, 50, 0.21205898194},   {.8, 3, 50, 0.142963963218},   {.8, 1, 100, 0.151500767074},
        {.8, 3, 100, 0.101286784144}, {.8, 5, 100, 0.0877075830448}, {.8, 3, 200, 0.0715598565822},
        {.5, 3, 100, 0.126505002151},
    };
    for (const Row& row : rows) {
      CAPTURE(row.difference);
      CHECK(smallest(design(.5, row.correlation, row.runs), row.tasks) == twelve(row.difference));
    }
    CHECK_FALSE(smallest_difference(design(.5, .5, 1), 2, .8).has_value());
  }

  TEST_CASE("the worst likeness of runs is an end of its range, and which one is known") {
    const double turning[] = {0, 0.500104155818, 0.666805541091, 0.750156233727, 0.800166649309};
    for (int k = 1; k <= 5; ++k)
      CHECK(turning_correlation(design(.5, .5, k)) == twelve(turning[k - 1]));
    for (const double r : {.2, .5, .74, .76}) {
      const double low = power_of_t(design(.3, r, 4), 100),
                   high = power_of_t(design(.7, r, 4), 100);
      CHECK((high < low) == (r < turning_correlation(design(.5, r, 4))));
    }
    CHECK(most_correlation(.5, .4) == twelve(0.816496580928));
    CHECK(most_correlation(.45, .35) == twelve(0.811245744593));
    CHECK(most_correlation(.3, .6) == twelve(0.534522483825));
    CHECK_FALSE(settled_shares(design(.5, .82, 1)).has_value());
    CHECK(settled_shares(design(.5, most_correlation(.5, .4), 1)).has_value());
  }

  TEST_CASE("power rises with tasks, runs, difference and correlation") {
    for (std::uint64_t n = 10; n < 300; n += 29)
      CHECK(power_of_t(design(.5, .5, 3), n) < power_of_t(design(.5, .5, 3), n + 29));
    for (int k = 1; k < 12; ++k)
      CHECK(power_of_t(design(.5, .5, k), 90) < power_of_t(design(.5, .5, k + 1), 90));
    for (double r = 0; r < .75; r += .05)
      CHECK(power_of_t(design(.5, r, 3), 90) < power_of_t(design(.5, r + .05, 3), 90));
    double before = 0;
    for (double p = .42; p < .95; p += .04) {
      const double now =
          power_of_t({.p_a = p, .p_b = .4, .icc = .5, .correlation = .3, .runs = 3}, 90);
      CHECK(before <= now);
      before = now;
    }
  }

  TEST_CASE("one run a task is McNemar's test") {
    const Discordance d = discordance(design(.5, .8, 1));
    CHECK(d.only_a == twelve(0.202020410289));
    CHECK(d.only_b == twelve(0.102020410289));
    CHECK(d.sum() == twelve(0.304040820577));
    CHECK(variance_of_task_difference(design(.5, .8, 1)) == twelve(d.sum() - .01));
    CHECK(mcnemar_tasks(d, .05, .8) == twelve(236.266318614));
    CHECK(mcnemar_power(d, 100, .05).exact == twelve(0.368861203318));
    CHECK(mcnemar_power(d, 200, .05).exact == twelve(0.697268910581));
    CHECK(mcnemar_power(d, 231, .05).exact == twelve(0.763909104331));
    CHECK(mcnemar_power(d, 252, .05).exact == twelve(0.800480161709));
    CHECK(mcnemar_power(d, 231, .05).mid_p == twelve(0.795868746684));
    const Discordance other{.2, .1};
    CHECK(mcnemar_tasks(other, .05, .8) == twelve(233.094538205));
    const double exact[] = {0.373077084302, 0.703403532706, 0.873566801068};
    const double mid[] = {0.43452604001, 0.742489253256, 0.8927456487};
    for (std::uint64_t i = 0; i < 3; ++i) {
      CHECK(mcnemar_power(other, 100 * (i + 1), .05).exact == twelve(exact[i]));
      CHECK(mcnemar_power(other, 100 * (i + 1), .05).mid_p == twelve(mid[i]));
    }
    for (std::uint64_t n = 1; n < 60; ++n) {
      const McNemarPower p = mcnemar_power(d, n, .05);
      CHECK(p.exact <= p.mid_p);
    }
    CHECK(mcnemar_power({0, 0}, 10, .05).exact == 0);
    CHECK(mcnemar_power({1, 0}, 10, .05).exact == near(1));
  }

  TEST_CASE("one task's difference has the rates and the variance that were asked for") {
    const std::vector<double> p = difference_chances(design(.5, .8, 3));
    const double expected[] = {0.00602041028867, 0.03,   0.093,          0.598459179423,
                               0.1395,           0.0675, 0.0655204102887};
    REQUIRE(p.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) CHECK(p[i] == twelve(expected[i]));
    for (const Design& d :
         {design(.5, .8, 3), design(.85, .3, 4), design(0, 0, 7), design(1, .2, 2)}) {
      const std::vector<double> chances = difference_chances(d);
      double total = 0, mean = 0, squares = 0;
      for (std::size_t i = 0; i < chances.size(); ++i) {
        const double x = (static_cast<double>(i) - d.runs) / d.runs;
        total += chances[i];
        mean += x * chances[i];
        squares += x * x * chances[i];
      }
      CHECK(total == near(1, 1e-12));
      CHECK(mean == near(.1, 1e-12));
      CHECK(squares - mean * mean == near(variance_of_task_difference(d), 1e-12));
    }
  }

  TEST_CASE("the exact power of the paired t test") {
    const auto power = [](const Design& d, std::uint64_t n) {
      const auto found = exact_power_t(difference_chances(d), n, .05);
      REQUIRE(found.has_value());
      CHECK(found->total == near(1, 1e-12));
      return found->power;
    };
    CHECK(power(design(.5, .8, 3), 20) == twelve(0.191434299665));
    CHECK(power(design(.5, .8, 3), 50) == twelve(0.483063537677));
    CHECK(power(design(.5, .8, 3), 100) == twelve(0.798933436519));
    CHECK(power(design(.5, .8, 1), 30) == twelve(0.146857240158));
    CHECK(power(design(.5, .8, 1), 60) == twelve(0.293971455931));
    CHECK(power(design(.5, .8, 2), 40) == twelve(0.314592181542));
    CHECK(power(design(.5, .8, 3), 40) == twelve(0.390565284363));
    const Design none{.p_a = .45, .p_b = .45, .icc = .5, .correlation = .8, .runs = 3};
    CHECK(power(none, 50) == twelve(0.0490200202298));
    const Design half{.p_a = .5, .p_b = .5, .icc = .5, .correlation = .8, .runs = 3};
    CHECK(power(half, 20) == twelve(0.0468561874034));
    // The three ways agree where there are enough tasks.
    for (const double icc : {.15, .5, .85}) {
      const Design d = design(icc, .3, 4);
      CHECK(std::fabs(power(d, 60) - power_of_t(d, 60)) < .03);
      CHECK(std::fabs(power_of(d, 60) - power_of_t(d, 60)) < .03);
    }
    CHECK_FALSE(exact_power_t(difference_chances(design(.5, .8, 3)), 5000, .05).has_value());
    CHECK(kMostExactCells < exact_cells(1'000'000, 1000));
  }

  TEST_CASE("the exact power of sign flips") {
    const auto power = [](const Design& d, std::uint64_t n, double level = .05) {
      const auto found = exact_power_flips(difference_chances(d), n, level);
      REQUIRE(found.has_value());
      return *found;
    };
    CHECK(least_flip_p(5) == 0.0625);
    CHECK(fewest_flip_tasks(.05) == 6);
    CHECK(fewest_flip_tasks(.05 / 3) == 7);
    CHECK(fewest_flip_tasks(.0625) == 5);
    // Of one run a task it is McNemar's test.
    for (const std::uint64_t n : {1U, 5U, 6U, 20U, 100U, 231U}) {
      const Design d = design(.5, .8, 1);
      CHECK(power(d, n) == twelve(mcnemar_power(discordance(d), n, .05).exact));
      CHECK(power(d, n, .01) == twelve(mcnemar_power(discordance(d), n, .01).exact));
    }
    // However large the difference: five tasks have no p below 1 in 16, and six have one.
    const Design sure{.p_a = .9, .p_b = .1, .icc = .5, .correlation = .1, .runs = 4};
    CHECK(power(sure, 5) == 0);
    const auto chances = difference_chances(sure);
    double up = 0, down = 0;
    for (std::size_t i = 0; i < 4; ++i) down += chances[i], up += chances[i + 5];
    CHECK(power(sure, 6) == twelve(std::pow(up, 6) + std::pow(down, 6)));
    // Every data set there can be, one by one, and what a report says of it.
    const Design two = design(.5, .3, 2, .2);
    const auto of_task = difference_chances(two);
    double rejected = 0;
    for (std::size_t code = 0; code < 15'625; ++code) {  // 5^6
      std::vector<std::int64_t> data;
      double chance = 1;
      for (std::size_t rest = code; data.size() < 6; rest /= 5) {
        data.push_back(static_cast<std::int64_t>(rest % 5) - 2);
        chance *= of_task[rest % 5];
      }
      if (sign_flip(data).p <= .15) rejected += chance;
    }
    CHECK(power(two, 6, .15) == twelve(rejected));
    // A test of that level.
    const Design none{.p_a = .45, .p_b = .45, .icc = .5, .correlation = .8, .runs = 3};
    CHECK(power(none, 12) <= .05);
    CHECK(.02 < power(none, 20));
    CHECK_FALSE(exact_power_flips(difference_chances(none), 100, .05).has_value());
    CHECK_FALSE(flip_power_is_short(1'000'000, 400));
  }

  TEST_CASE("data sets that are drawn are rejected as often as was said") {
    const auto simulated = [](std::uint64_t tasks) {
      NumpyRandom r(20260307);
      return simulate_power(design(.5, .8, 3), tasks, 2000, [&] { return r.random_sample(); });
    };
    const SimulatedPower twenty = simulated(20);
    CHECK(twenty.rejected == 391);
    CHECK(twenty.sum == 11878);
    const SimulatedPower fifty = simulated(50);
    CHECK(fifty.rejected == 952);
    CHECK(fifty.sum == 30208);
  }

  TEST_CASE("an earlier stage gives an upper limit of the variance, whichever method is which") {
    const auto found = pilot_variance(equal_pairs());
    REQUIRE(found.has_value());
    CHECK(found->between == twelve(0.0669642857143));
    CHECK(found->within_a == twelve(0.135416666667));
    CHECK(found->within_b == twelve(0.197916666667));
    CHECK(found->upper == twelve(0.122634883014));
    CHECK(pilot_variance(equal_pairs(), .95)->upper == twelve(0.216277952161));
    CHECK(found->upper_at(2) == twelve(0.205968216348));
    CHECK(found->upper_at(4) == twelve(found->upper));
    CHECK(found->upper_at(6) == twelve(0.0948571052362));
    CHECK(found->upper_at(8) == twelve(0.0809682163472));
    CHECK(tasks_by_variance(.1, found->upper, .05, .8) == twelve(96.2546448011));
    CHECK(power_by_variance_t(.1, found->upper, 99, .05) == twelve(0.803267294826));
    CHECK(power_by_variance_t(.1, found->upper, 98, .05) == twelve(0.799214512625));
    std::vector<PairedTask> turned = equal_pairs();
    for (PairedTask& t : turned) std::swap(t.a, t.b);
    CHECK(pilot_variance(turned)->upper == found->upper);
    CHECK_FALSE(pilot_variance(unequal_pairs()).has_value());
    CHECK_FALSE(pilot_variance({}).has_value());
  }

  TEST_CASE("looks cost some power, by the fractions of information that are true") {
    const double v = 0.122634883014;
    CHECK(power_by_variance(.1, v, 120, .05) == twelve(0.878628562788));
    CHECK(power_by_variance_t(.1, v, 120, .05) == twelve(0.873442502531));
    const PlannedLooks thirds{{1, 2, 3}};
    CHECK(sequential_power(thirds.bounds(.05), std::array{v * 3, v * 1.5, v}, .1, 120) ==
          twelve(0.874798420927));
    const PlannedLooks late{{2, 3, 4}};
    const auto with_looks = [&](double icc, std::uint64_t n) {
      return sequential_power(late.bounds(.05), variances_at(late, design(icc, .3, 4)), .1, n);
    };
    CHECK(with_looks(.85, 100) == twelve(0.413903573546));
    CHECK(with_looks(.15, 100) == twelve(0.706668686975));
    CHECK(with_looks(.85, 252) == twelve(0.798837714999));
    CHECK(.8 <= with_looks(.85, 253));
    CHECK(sequential_power(thirds.bounds(.05), variances_at(thirds, design(.5, .8, 3)), .1, 105) ==
          twelve(0.803039682912));
    // Where tasks are settled every look has all information, and the last adds none.
    CHECK(sequential_power(thirds.bounds(.05), std::array{v, v, v}, .1, 120) < .87);
  }

  TEST_CASE("a budget is best spent on so many tasks of so many runs") {
    const RunCosts costs{400'000, 1'200'000, 900'000};
    const Design d = design(.5, .5, 1);
    struct Row {
      std::int64_t usd;
      std::uint64_t tasks;
      std::uint32_t runs;
      std::int64_t cost;
      double difference, half_width;
    };
    const Row rows[] = {
        {100, 40, 1, 100'000'000, 0.261332235754, 0.188677104778},
        {200, 80, 1, 200'000'000, 0.188364712257, 0.133828176229},
        {400, 86, 2, 395'600'000, 0.14916820389, 0.105863892314},
        {800, 119, 3, 797'300'000, 0.116020374212, 0.0820079315433},
    };
    for (const Row& row : rows) {
      CAPTURE(row.usd);
      const auto best = best_for_budget(d, costs, row.usd * 1'000'000, 120, .8);
      REQUIRE(best.has_value());
      CHECK(best->tasks == row.tasks);
      CHECK(best->runs == row.runs);
      CHECK(best->cost == row.cost);
      CHECK(best->difference == twelve(row.difference));
      CHECK(best->half_width == twelve(row.half_width));
    }
    CHECK(plan_at(d, costs, 120, 1, .8)->difference == twelve(0.15456999039));
    CHECK(plan_at(d, costs, 59, 3, .8)->difference == twelve(0.164115600916));
    CHECK(plan_at(d, costs, 45, 4, .8)->difference == twelve(0.177913338331));
    CHECK_FALSE(best_for_budget(d, costs, 4'000'000, 120, .8).has_value());
    CHECK_FALSE(best_for_budget(d, costs, -1, 120, .8).has_value());
  }
}
