#pragma once
// Quantiles of whole numbers: durations in milliseconds, amounts in micro-dollars.
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <vector>

namespace proctor {

// Type 7 (the default of NumPy and R): linear between order statistics.  Nothing of nothing.
// Requires: 0 <= q <= 1.
std::optional<double> quantile(std::vector<std::uint64_t> values, double q);
inline std::optional<double> median(std::vector<std::uint64_t> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace proctor
