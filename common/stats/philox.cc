#include "common/stats/philox.h"

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

}  // namespace proctor
