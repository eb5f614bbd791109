#pragma once
// Philox4x64-10 (Salmon et al. 2011), the counter-based generator that NumPy offers under this
// name: an auditor repeats every draw with
//   np.random.Philox(key=[seed, stream], counter=[0, replicate, 0, 0]).random_raw(count)
// A replicate depends on its number alone, so neither threads nor their order change a byte.
// Pure; thread-safe.
#include <array>
#include <cstdint>

namespace proctor {

using PhiloxBlock = std::array<std::uint64_t, 4>;

// The block of one key and one counter.
PhiloxBlock philox(const PhiloxBlock& counter, const std::array<std::uint64_t, 2>& key);

// What a campaign draws for, apart from its plan: each has a stream of its own.
enum class Stream : std::uint64_t { kBootstrap = 1, kPermutation = 2, kExamples = 3 };

// The words of one replicate, in order.
class PhiloxWords {
 public:
  PhiloxWords(std::uint64_t seed, Stream stream, std::uint64_t replicate);
  std::uint64_t next();

 private:
  std::array<std::uint64_t, 2> key_;
  std::uint64_t replicate_;
  std::uint64_t block_ = 0;
  std::size_t at_ = 4;
  PhiloxBlock words_{};
};

}  // namespace proctor
