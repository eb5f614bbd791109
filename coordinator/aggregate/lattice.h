#pragma once
// Shares of tasks as whole numbers of one unit.  Private to the room.
#include <cmath>
#include <cstdint>
#include <numeric>

namespace proctor::aggregate {

// Exact while the numbers of runs have a small common multiple, and to 2^-30 beyond.
class Lattice {
 public:
  void add(std::uint64_t runs) {
    if (runs != 0 && unit_ <= kExact) unit_ = std::lcm(unit_, runs);
  }
  bool is_exact() const { return unit_ <= kExact; }
  std::int64_t unit() const { return is_exact() ? static_cast<std::int64_t>(unit_) : kFine; }
  std::int64_t of(std::uint64_t part, std::uint64_t runs) const {
    if (is_exact()) return static_cast<std::int64_t>(unit_ / runs * part);
    return std::llround(static_cast<double>(part) / static_cast<double>(runs) *
                        static_cast<double>(kFine));
  }

 private:
  static constexpr std::uint64_t kExact = (std::uint64_t{1} << 15U) - 1;
  static constexpr std::int64_t kFine = std::int64_t{1} << 30U;
  std::uint64_t unit_ = 1;
};

}  // namespace proctor::aggregate
