#include "common/stats/quantile.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/clustered.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {

template <class T>
std::optional<double> type7(std::vector<T> values, double q) {
  PROCTOR_ASSERT(0 <= q && q <= 1);
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double low = static_cast<double>(values[below]);
  return low + (at - static_cast<double>(below)) * (static_cast<double>(values[above]) - low);
}

// Ranks l < u such that fewer than l, or at least u, of n values lie below the quantile with at
// most alpha / 2 each.
QuantileEstimate by_order_statistics(std::vector<double> values, double q, double alpha) {
  QuantileEstimate out;
  out.estimate.value = real_quantile(values, q);
  std::ranges::sort(values);
  const double n = static_cast<double>(values.size());
  double low = 0;
  while (low < n && binomial_cdf(low, n, q) <= alpha / 2) low += 1;
  double high = n;
  while (0 < high && 1 - binomial_cdf(high - 1, n, q) <= alpha / 2) high -= 1;
  // Ranks count from 1: `low` values may lie below, `high` + 1 is the first rank that is too high.
  if (low < 1 || n < high + 1) {
    out.estimate.why = Why::kTooFew;
    return out;
  }
  out.coverage = binomial_cdf(high, n, q) - binomial_cdf(low - 1, n, q);
  out.estimate.interval =
      Interval{values[static_cast<std::size_t>(low) - 1], values[static_cast<std::size_t>(high)]};
  return out;
}

}  // namespace

std::optional<double> quantile(std::vector<std::uint64_t> values, double q) {
  return type7(std::move(values), q);
}

std::optional<double> real_quantile(std::vector<double> values, double q) {
  return type7(std::move(values), q);
}

QuantileEstimate quantile_over_tasks(std::span<const std::vector<double>> tasks, double q,
                                     double alpha) {
  QuantileEstimate out;
  std::vector<double> all;
  std::size_t with_runs = 0;
  for (const std::vector<double>& task : tasks) {
    all.insert(all.end(), task.begin(), task.end());
    with_runs += task.empty() ? 0 : 1;
  }
  if (all.empty()) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  if (with_runs == 1) return by_order_statistics(std::move(all), q, alpha);
  out.estimate.value = real_quantile(all, q);
  std::vector<Cluster> up_to;
  for (const std::vector<double>& task : tasks) {
    Cluster c{task.size(), 0};
    for (const double value : task) c.successes += value <= *out.estimate.value ? 1 : 0;
    up_to.push_back(c);
  }
  const std::optional<RatioRate> share = ratio_rate(up_to, alpha);
  if (!share || !(0 < share->cr1.value_or(0))) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  out.estimate.standard_error = share->cr1;
  out.estimate.df = static_cast<double>(with_runs - 1);
  const double half = t_quantile_two_sided(alpha, *out.estimate.df) * *share->cr1;
  out.shares = Interval{std::max(0.0, q - half), std::min(1.0, q + half)};
  out.estimate.interval =
      Interval{*real_quantile(all, out.shares->low), *real_quantile(all, out.shares->high)};
  return out;
}

}  // namespace proctor
