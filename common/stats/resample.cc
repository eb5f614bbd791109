#include "common/stats/resample.h"

#include <algorithm>

#include "common/base/result.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace proctor {
namespace {
__extension__ typedef unsigned __int128 Wide;

// The published constants: two odd multipliers, and the Weyl steps of the key (golden ratio and
// sqrt(3) - 1).
constexpr std::uint64_t kMultiply0 = 0xD2E7470EE14C6C93, kMultiply1 = 0xCA5A826395121157;
constexpr std::uint64_t kStep0 = 0x9E3779B97F4A7C15, kStep1 = 0xBB67AE8584CAA73B;
constexpr int kRounds = 10;
}  // namespace

PhiloxBlock philox(const PhiloxBlock& counter, const std::array<std::uint64_t, 2>& key) {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < kRounds; ++round) {
    const Wide p0 = Wide{kMultiply0} * c0, p1 = Wide{kMultiply1} * c2;
    const auto high0 = static_cast<std::uint64_t>(p0 >> 64U);
    const auto high1 = static_cast<std::uint64_t>(p1 >> 64U);
    c0 = high1 ^ c1 ^ k0;
    c1 = static_cast<std::uint64_t>(p1);
    c2 = high0 ^ c3 ^ k1;
    c3 = static_cast<std::uint64_t>(p0);
    k0 += kStep0;
    k1 += kStep1;
  }
  return {c0, c1, c2, c3};
}

PhiloxWords::PhiloxWords(std::uint64_t seed, Stream stream, std::uint64_t replicate)
    : key_{seed, static_cast<std::uint64_t>(stream)}, replicate_(replicate) {}

std::uint64_t PhiloxWords::next() {
  if (at_ == words_.size()) {
    words_ = philox({++block_, replicate_, 0, 0}, key_);
    at_ = 0;
  }
  return words_[at_++];
}

std::int64_t weighted_sum_plain(const std::int16_t* weights, const std::int16_t* values,
                                std::size_t count) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::int64_t{weights[i]} * values[i];
  return sum;
}

#if defined(__x86_64__)
namespace {
// Vectors of 16 products that are added in 32 bits before they are widened.  Each 32-bit lane takes
// two products a vector: of Poisson's weights, at most 8, it holds 512 x 2 x 8 x 32,767 = 2^28; of
// drawn tasks, whose weights sum up to 4,096 in all, 4,096 x 32,767 = 2^27.
constexpr std::size_t kWiden = 512;

__attribute__((target("avx2"))) std::int64_t weighted_sum_avx2(const std::int16_t* weights,
                                                               const std::int16_t* values,
                                                               std::size_t count) {
  const std::size_t vectors = count / 16;
  __m256i wide = _mm256_setzero_si256();
  for (std::size_t v = 0; v < vectors;) {
    const std::size_t end = std::min(vectors, v + kWiden);
    __m256i narrow = _mm256_setzero_si256();
    for (; v < end; ++v) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 16 * v));
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + 16 * v));
      narrow = _mm256_add_epi32(narrow, _mm256_madd_epi16(w, x));
    }
    wide = _mm256_add_epi64(wide, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(narrow)));
    wide = _mm256_add_epi64(wide, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(narrow, 1)));
  }
  alignas(32) std::int64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), wide);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] +
         weighted_sum_plain(weights + 16 * vectors, values + 16 * vectors, count - 16 * vectors);
}
}  // namespace
#endif

WeightedSum* best_weighted_sum() {
#if defined(__x86_64__)
  static const bool vectors = __builtin_cpu_supports("avx2") != 0;
  if (vectors) return &weighted_sum_avx2;
#endif
  return &weighted_sum_plain;
}

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
