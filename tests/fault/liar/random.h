#pragma once
// Choices of a seed.  They are the same for the same seed; which message meets which state depends
// on the machine's timing as well.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace proctor::liar {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t any() { return engine_(); }
  // 0 .. n-1.  Requires: 0 < n.
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::string bytes(std::size_t n) {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(engine_());
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace proctor::liar
