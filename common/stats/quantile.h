#pragma once
// Quantiles of durations and amounts, and their intervals where several runs share a task.
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {

// Type 7 (the default of NumPy and R): linear between order statistics.  Nothing of nothing.
// Requires everywhere: 0 <= q <= 1.
std::optional<double> quantile(std::vector<std::uint64_t> values, double q);
std::optional<double> real_quantile(std::vector<double> values, double q);
inline std::optional<double> median(std::vector<std::uint64_t> values) {
  return quantile(std::move(values), 0.5);
}

// Type 7 over all runs, with Woodruff's interval (1952): the share of runs up to the quantile, with
// its error over tasks, turned back into values.  Of one task: order statistics, as for
// independent runs.  `standard_error` is that of the share.  kNothing: no run.  A share of exactly
// 0 or 1 has no error: kNoVariance.
struct QuantileEstimate {
  Estimate estimate;
  std::optional<Interval> shares;  // what the interval's ends are quantiles of
  std::optional<double> coverage;  // of order statistics: exact, at least 1 - alpha where it can be
};
QuantileEstimate quantile_over_tasks(std::span<const std::vector<double>> tasks, double q,
                                     double alpha = 0.05);

}  // namespace proctor
