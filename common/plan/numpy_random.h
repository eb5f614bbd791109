#pragma once
// NumPy's legacy generator `numpy.random.RandomState(seed)`, bit for bit, as far as plans need it.
// A plan drawn here can be drawn again by anyone with Python: NEP 19 freezes these streams.
// The bits are those of std::mt19937 (init_genrand by an integer); what NumPy adds is how a bounded
// number is made of them: masked rejection, one 32-bit draw per try.
// Pure; not thread-safe; cannot fail.  Oracles: STATISTICS E11 and the real NumPy in tests.
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace proctor {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : bits_(seed) {}

  // randint(0, 2**32, dtype="uint32"): one draw, all 32 bits.
  std::uint32_t next_u32() { return static_cast<std::uint32_t>(bits_()); }
  // random_sample(): two draws, 53 bits, in [0, 1).
  double random_sample();
  // A number in [0, max]; nothing is drawn when max is 0.
  std::uint32_t interval(std::uint32_t max);
  // permutation(n): a shuffled 0..n-1.
  std::vector<std::uint32_t> permutation(std::uint32_t n);
  // permutation(n) into storage that a caller with a million blocks reuses.
  void permutation_into(std::span<std::uint32_t> out);

  // shuffle(x) of a sequence.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); 1 < i; --i)
      std::swap(items[i - 1], items[interval(static_cast<std::uint32_t>(i - 1))]);
  }

 private:
  std::mt19937 bits_;
};

}  // namespace proctor
