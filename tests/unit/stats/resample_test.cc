#include "common/stats/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/stats/amounts.h"
#include "common/stats/interval.h"
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
      const double deviation = std::sqrt(variance_of(rates));
      if (draws == 10000) {
        CHECK(deviation == near(0.1357657974));
        continue;
      }
      CHECK(mean_of(rates) == near(0.528890625));
      CHECK(deviation == near(0.1333862943));
      CHECK(real_quantile(rates, 0.025) == near(0.25));
      CHECK(real_quantile(rates, 0.975) == near(0.78125));
      CHECK(mean_of(differences) == near(0.187046875));
      CHECK(std::sqrt(variance_of(differences)) == near(0.08369445563));
      CHECK(real_quantile(differences, 0.025) == near(0.03125));
      CHECK(real_quantile(differences, 0.975) == near(0.34375));
    }
  }
}
