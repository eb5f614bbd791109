#include "common/stats/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/stats/bootstrap.h"
#include "common/stats/quantile.h"
#include "common/stats/weighted_sum.h"
#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Indices that a replicate draws, as how often each.
std::vector<std::int16_t> counts(std::initializer_list<int> indices, std::size_t n) {
  std::vector<std::int16_t> out(n, 0);
  for (const int i : indices) ++out[static_cast<std::size_t>(i)];
  return out;
}

template <std::size_t N>
std::vector<double> without_each(const std::array<std::uint64_t, N>& c, double runs) {
  std::vector<double> out;
  double sum = 0;
  for (const std::uint64_t x : c) sum += static_cast<double>(x);
  for (const std::uint64_t x : c)
    out.push_back((sum - static_cast<double>(x)) / (runs * static_cast<double>(N - 1)));
  return out;
}

// All resamples of four tasks, each as its own replicate.
template <class Statistic>
void for_all_resamples(const Statistic& statistic) {
  for (std::size_t r = 0; r < 256; ++r)
    statistic(std::array<std::size_t, 4>{r & 3U, r >> 2U & 3U, r >> 4U & 3U, r >> 6U});
}

ResampleTable table_of(std::initializer_list<std::span<const std::uint64_t>> columns) {
  ResampleTable out;
  out.stratum_begin = {0};
  for (const auto& column : columns) {
    out.columns.emplace_back();
    for (const std::uint64_t x : column) out.columns.back().push_back(static_cast<std::int16_t>(x));
  }
  return out;
}

}  // namespace

// Figures by NumPy and SciPy.
TEST_SUITE("stats") {
  TEST_CASE("random words are NumPy's, bit for bit") {
    CHECK(philox({1, 0, 0, 0}, {20260307, 0}) ==
          PhiloxBlock{9918014471142450725U, 5231554592228595944U, 1448010537390760288U,
                      11647161239127679036U});
    PhiloxWords words(kResampleSeed, Stream::kBootstrap, 3),
        again(kResampleSeed, Stream::kBootstrap, 3);
    PhiloxWords other(kResampleSeed, Stream::kPermutation, 3);
    bool differs = false;
    for (int i = 0; i < 9; ++i) {
      const std::uint64_t word = words.next();
      CHECK(word == again.next());
      differs = differs || word != other.next();
    }
    CHECK(differs);
  }

  TEST_CASE("few tasks are drawn with replacement") {
    std::vector<std::int16_t> w(8);
    draw_weights(w, 0);
    CHECK(w == counts({0, 5, 6, 0, 5, 3, 5, 7}, 8));
    draw_weights(w, 1);
    CHECK(w == counts({7, 7, 4, 1, 0, 5, 1, 1}, 8));
    draw_weights(w, 2);
    CHECK(w == counts({2, 5, 6, 5, 5, 6, 5, 5}, 8));
    CHECK(weight_law(4096) == WeightLaw::kMultinomial);
    std::vector<std::int16_t> one(1);
    draw_weights(one, 7);
    CHECK(one[0] == 1);
  }

  TEST_CASE("many tasks are drawn by Poisson's law") {
    std::vector<std::int16_t> w(4097);
    CHECK(weight_law(w.size()) == WeightLaw::kPoisson);
    draw_weights(w, 0);
    const std::vector<std::int16_t> first = {0, 0, 1, 1, 1, 2, 1, 0, 1, 1, 4, 1, 0, 1, 1, 3};
    CHECK(std::equal(first.begin(), first.end(), w.begin()));
  }

  TEST_CASE("sums are the same for any kernel and in any order") {
    ResampleTable table;
    const std::size_t tasks = 9001;
    table.stratum_begin = {0, 17, 4000, 4001};
    PhiloxWords words(1, Stream::kExamples, 0);
    for (int c = 0; c < 3; ++c) {
      table.columns.emplace_back();
      for (std::size_t i = 0; i < tasks; ++i)
        table.columns.back().push_back(static_cast<std::int16_t>(words.next() & 0x7FFFU));
    }
    ResampledSums plain(21, 4, 3), best(21, 4, 3);
    resample(table, 0, 21, plain, Kernel::kPlain);
    for (const std::size_t first : {14U, 0U, 7U}) resample(table, first, 7, best, Kernel::kBest);
    CHECK(std::ranges::equal(plain.all(), best.all()));
    std::vector<std::int16_t> w(tasks);
    draw_weights(w, 20);
    std::int64_t sum = 0, weight = 0;
    for (std::size_t i = 17; i < 4000; ++i) {
      sum += std::int64_t{w[i]} * table.columns[2][i];
      weight += w[i];
    }
    CHECK(plain.sum(20, 1, 2) == sum);
    CHECK(plain.weight(20, 1) == weight);
  }

  TEST_CASE("the largest weights and values do not overflow a lane") {
    // All of 4,096 draws on one task, and Poisson's largest weight on every task.
    std::vector<std::int16_t> weights(4096, 0), values(4096, 32767);
    weights[5] = 4096;
    CHECK(best_weighted_sum()(weights.data(), values.data(), 4096) == 4096LL * 32767);
    weights.assign(100003, 8);
    values.assign(100003, 32767);
    CHECK(best_weighted_sum()(weights.data(), values.data(), 100003) == 100003LL * 8 * 32767);
  }

  TEST_CASE("all resamples of four tasks have the published mean and BCa interval") {
    const std::array<double, 4> y = {1, .75, 0, .5};
    std::vector<double> means;
    for_all_resamples([&](const auto& at) {
      double sum = 0;
      for (const std::size_t i : at) sum += y[i];
      means.push_back(sum / 4);
    });
    std::vector<double> jackknife;
    for (const double x : y) jackknife.push_back((2.25 - x) / 3);
    const Bootstrapped b = bootstrap_intervals(0.5625, means, 0, jackknife);
    CHECK(*b.mean == near(0.5625));
    CHECK(*b.deviation * std::sqrt(255.0 / 256) == near(0.1848774932));
    CHECK(b.percentile->low == near(0.1875));
    CHECK(*b.percentile->high == near(0.875));
    CHECK(*b.bias == near(-0.0391760855));
    CHECK(*b.acceleration == near(-0.03622089663));
    CHECK(b.bca->low == near(0.125));
    CHECK(*b.bca->high == near(0.875));
  }

  TEST_CASE("a ratio of sums is resampled as a ratio") {
    const std::array<double, 4> cost = {3.2, 2.5, 4.8, 3.9}, won = {4, 3, 1, 2};
    std::vector<double> ratios;
    for_all_resamples([&](const auto& at) {
      double c = 0, s = 0;
      for (const std::size_t i : at) {
        c += cost[i] * 10;
        s += won[i];
      }
      ratios.push_back(std::round(c) / s / 10);
    });
    std::vector<double> jackknife;
    for (std::size_t i = 0; i < 4; ++i) jackknife.push_back((14.4 - cost[i]) / (10 - won[i]));
    const Bootstrapped b = bootstrap_intervals(144.0 / 10 / 10, ratios, 0, jackknife);
    CHECK(*b.mean == near(1.562320267));
    CHECK(*b.deviation * std::sqrt(255.0 / 256) == near(0.5968167208));
    CHECK(b.percentile->low == near(0.8142857143));
    CHECK(*b.percentile->high == near(2.9));
    // 116 of 256 below and 24 equal: half of them each. Sums in floating point lose two of the
    // ties.
    CHECK(*b.bias == near(0));
    CHECK(*b.acceleration == near(0.009702352044));
  }

  TEST_CASE("drawn replicates of a rate and of a difference are the published ones") {
    const ResampleTable table = table_of({kA, kA1});
    for (const std::uint32_t draws : {2000U, 10000U}) {
      ResampledSums sums(draws, 1, 2);
      resample(table, 0, draws, sums);
      std::vector<double> rates, differences;
      for (std::size_t b = 0; b < draws; ++b) {
        CHECK(sums.weight(b, 0) == 8);
        rates.push_back(static_cast<double>(sums.sum(b, 0, 0)) / 32);
        differences.push_back(static_cast<double>(sums.sum(b, 0, 0) - sums.sum(b, 0, 1)) / 32);
      }
      const auto jackknife = without_each(kA, 4);
      const Bootstrapped rate = bootstrap_intervals(0.53125, rates, 0, jackknife);
      if (draws == 10000) {
        CHECK(*rate.deviation == near(0.1357657974));
        continue;
      }
      CHECK(*rate.mean == near(0.528890625));
      CHECK(*rate.deviation == near(0.1333862943));
      CHECK(rate.percentile->low == near(0.25));
      CHECK(*rate.percentile->high == near(0.78125));
      CHECK(*rate.bias == near(0.02130795263));
      CHECK(*rate.acceleration == near(-0.01238519766));
      CHECK(rate.bca->low == near(0.25));
      CHECK(*rate.bca->high == near(0.78125));
      std::vector<double> without = jackknife;
      const auto other = without_each(kA1, 4);
      for (std::size_t i = 0; i < without.size(); ++i) without[i] -= other[i];
      const Bootstrapped d = bootstrap_intervals(0.1875, differences, 0, without);
      CHECK(*d.mean == near(0.187046875));
      CHECK(*d.deviation == near(0.08369445563));
      CHECK(d.percentile->low == near(0.03125));
      CHECK(*d.percentile->high == near(0.34375));
      CHECK(*d.bias == near(-0.005013277549));
      CHECK(*d.acceleration == near(-0.01825741858));
      CHECK(d.bca->low == near(0));
      CHECK(*d.bca->high == near(0.34375));
    }
  }

  TEST_CASE("an interval of what some replicates do not have is open") {
    const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<double> jackknife = {1, 2, 4};
    const Bootstrapped open = bootstrap_intervals(4, values, 3, jackknife);
    CHECK_FALSE(open.mean.has_value());
    CHECK(open.percentile->low == near(1.275));
    CHECK_FALSE(open.percentile->high.has_value());
    CHECK_FALSE(bootstrap_intervals(1, {}, 4, jackknife).percentile.has_value());
    // All on one side: no bias can be told.
    const Bootstrapped one_side = bootstrap_intervals(20, values, 0, jackknife);
    CHECK(one_side.percentile.has_value());
    CHECK_FALSE(one_side.bias.has_value());
    CHECK_FALSE(one_side.bca.has_value());
    const std::vector<double> same = {2, 2};
    CHECK_FALSE(bootstrap_intervals(4, values, 0, same).bca.has_value());
  }
}
