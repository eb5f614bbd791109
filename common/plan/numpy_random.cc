#include "common/plan/numpy_random.h"

#include <bit>
#include <numeric>

namespace proctor {

double NumpyRandom::random_sample() {
  // The order of the two draws matters, so they are two statements.
  const std::uint32_t high = next_u32() >> 5;
  const std::uint32_t low = next_u32() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::uint32_t NumpyRandom::interval(std::uint32_t max) {
  if (max == 0) return 0;
  const std::uint32_t mask = ~std::uint32_t{0} >> std::countl_zero(max);
  for (;;) {
    const std::uint32_t value = next_u32() & mask;
    if (value <= max) return value;
  }
}

void NumpyRandom::permutation_into(std::span<std::uint32_t> out) {
  std::iota(out.begin(), out.end(), 0U);
  shuffle(out);
}

std::vector<std::uint32_t> NumpyRandom::permutation(std::uint32_t n) {
  std::vector<std::uint32_t> out(n);
  permutation_into(out);
  return out;
}

}  // namespace proctor
