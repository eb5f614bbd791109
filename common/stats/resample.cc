#include "common/stats/resample.h"

#include <algorithm>
#include <array>

#include "common/base/result.h"
#include "common/stats/weighted_sum.h"

namespace proctor {
namespace {

// Of 2^16 values, those below the k-th threshold are drawn at most k - 1 times: Poisson's law of
// mean 1, rounded so that the mean is exactly 1.
constexpr std::array<std::uint16_t, 8> kPoissonThresholds = {24109, 48219, 60273, 64292,
                                                             65296, 65497, 65531, 65535};

// The weight of each of the 2^16 values: a look-up costs less than eight comparisons.
const std::vector<std::int8_t>& poisson_table() {
  static const std::vector<std::int8_t> table = [] {
    std::vector<std::int8_t> out(std::size_t{1} << 16U, 0);
    for (const std::size_t t : kPoissonThresholds)
      for (std::size_t u = t; u < out.size(); ++u) ++out[u];
    return out;
  }();
  return table;
}

void draw_multinomial(std::span<std::int16_t> weights, PhiloxWords& words) {
  std::ranges::fill(weights, std::int16_t{0});
  const std::uint64_t n = weights.size();
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    word = i % 2 == 0 ? words.next() : word >> 32U;
    ++weights[static_cast<std::size_t>(((word & 0xFFFFFFFFU) * n) >> 32U)];
  }
}

void draw_poisson(std::span<std::int16_t> weights, PhiloxWords& words) {
  const std::vector<std::int8_t>& table = poisson_table();
  std::size_t i = 0;
  for (; i + 4 <= weights.size(); i += 4) {
    const std::uint64_t word = words.next();
    weights[i] = table[word & 0xFFFFU];
    weights[i + 1] = table[(word >> 16U) & 0xFFFFU];
    weights[i + 2] = table[(word >> 32U) & 0xFFFFU];
    weights[i + 3] = table[word >> 48U];
  }
  if (i == weights.size()) return;
  for (std::uint64_t word = words.next(); i < weights.size(); ++i, word >>= 16U)
    weights[i] = table[word & 0xFFFFU];
}

// Replicates that are drawn together: their weights stay in the cache while the columns pass once.
constexpr std::size_t kTogether = 8;
// Tasks that are summed before the next column: a block of all columns stays in the cache.
constexpr std::size_t kBlock = 8192;

void sum_block(const ResampleTable& table, std::span<const std::vector<std::int16_t>> weights,
               std::size_t first, std::size_t stratum, std::size_t begin, std::size_t end,
               WeightedSum* dot, ResampledSums& out) {
  for (std::size_t r = 0; r < weights.size(); ++r) {
    const std::span<std::int64_t> cells = out.cells(first + r, stratum);
    const std::int16_t* w = weights[r].data() + begin;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      cells[c] += dot(w, table.columns[c].data() + begin, end - begin);
    for (std::size_t i = 0; i < end - begin; ++i) cells.back() += w[i];
  }
}

void resample_some(const ResampleTable& table, std::span<std::vector<std::int16_t>> weights,
                   std::size_t first, std::uint64_t seed, WeightedSum* dot, ResampledSums& out) {
  for (std::size_t r = 0; r < weights.size(); ++r) draw_weights(weights[r], first + r, seed);
  for (std::size_t s = 0; s < table.strata(); ++s) {
    const std::size_t end = s + 1 < table.strata() ? table.stratum_begin[s + 1] : table.tasks();
    for (std::size_t at = table.stratum_begin[s]; at < end; at += kBlock)
      sum_block(table, weights, first, s, at, std::min(end, at + kBlock), dot, out);
  }
}

}  // namespace

WeightLaw weight_law(std::size_t tasks) {
  return tasks <= kMultinomialTasks ? WeightLaw::kMultinomial : WeightLaw::kPoisson;
}

std::string_view name(WeightLaw law) {
  return law == WeightLaw::kMultinomial ? "multinomial" : "poisson";
}

void draw_weights(std::span<std::int16_t> weights, std::uint64_t replicate, std::uint64_t seed) {
  PROCTOR_ASSERT(!weights.empty() && weights.size() <= kMostTasks);
  PhiloxWords words(seed, Stream::kBootstrap, replicate);
  if (weight_law(weights.size()) == WeightLaw::kMultinomial)
    draw_multinomial(weights, words);
  else
    draw_poisson(weights, words);
}

ResampledSums::ResampledSums(std::size_t draws, std::size_t strata, std::size_t columns)
    : draws_(draws), strata_(strata), columns_(columns), sums_(draws * strata * (columns + 1), 0) {}

std::span<std::int64_t> ResampledSums::cells(std::size_t replicate, std::size_t stratum) {
  return std::span(sums_).subspan(index(replicate, stratum, 0), columns_ + 1);
}

void resample(const ResampleTable& table, std::size_t first, std::size_t count, ResampledSums& out,
              Kernel kernel, std::uint64_t seed) {
  PROCTOR_ASSERT(0 < table.tasks() && 0 < table.strata() && table.stratum_begin.front() == 0);
  PROCTOR_ASSERT(first + count <= out.draws());
  for (const auto& column : table.columns) PROCTOR_ASSERT(column.size() == table.tasks());
  WeightedSum* const dot = kernel == Kernel::kPlain ? &weighted_sum_plain : best_weighted_sum();
  std::vector<std::vector<std::int16_t>> weights(std::min(kTogether, count),
                                                 std::vector<std::int16_t>(table.tasks()));
  for (std::size_t at = 0; at < count; at += kTogether)
    resample_some(table, std::span(weights).first(std::min(kTogether, count - at)), first + at,
                  seed, dot, out);
}

}  // namespace proctor
