#include "common/stats/stratified.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {

Stratified stratified_mean(std::span<const Stratum> strata, double alpha) {
  Stratified out;
  double value = 0, variance = 0, degrees = 0, within = 0, between = 0, tasks = 0;
  bool single = false, any = false;
  for (const Stratum& s : strata) {
    PROCTOR_ASSERT(0 <= s.weight);
    if (!(0 < s.weight)) continue;
    if (s.values.empty()) {
      out.estimate.why = Why::kNothing;
      return out;
    }
    any = true;
    const double n = static_cast<double>(s.values.size());
    tasks += n;
    value += s.weight * mean_of(s.values);
    if (n < 2) {
      single = true;
      continue;
    }
    // What rounding leaves of values that are all alike is no spread.
    const auto [low, high] = std::minmax_element(s.values.begin(), s.values.end());
    const double spread = *low < *high ? variance_of(s.values) : 0;
    const double part = s.weight * s.weight * spread / n;
    variance += part;
    degrees += part * part / (n - 1);
    within += s.weight * spread;
    between += (1 - s.weight) * spread;
  }
  if (!any) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  out.estimate.value = value;
  if (single) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  out.estimate.standard_error = std::sqrt(variance);
  out.post_stratified_error = std::sqrt(within / tasks + between / (tasks * tasks));
  if (!(0 < variance)) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  out.estimate.df = variance * variance / degrees;
  const double half = t_quantile_two_sided(alpha, *out.estimate.df) * std::sqrt(variance);
  out.estimate.interval = Interval{value - half, value + half};
  return out;
}

Kish kish(std::span<const double> task_weights) {
  double sum = 0, squares = 0;
  for (const double w : task_weights) {
    PROCTOR_ASSERT(0 <= w);
    sum += w;
    squares += w * w;
  }
  PROCTOR_ASSERT(0 < squares);
  const double effective = sum * sum / squares;
  return {effective, static_cast<double>(task_weights.size()) / effective};
}

}  // namespace proctor
