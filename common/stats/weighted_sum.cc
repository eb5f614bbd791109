#include "common/stats/weighted_sum.h"

#include <algorithm>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace proctor {

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

}  // namespace proctor
