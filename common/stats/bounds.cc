#include "common/stats/bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/paired.h"

namespace proctor {
namespace {
// The C with P(Z <= C + width / s) - P(Z <= -C) = 1 - alpha: from the two-sided quantile where the
// width is 0 down to the one-sided one where it is large.
double critical_value(double width, double s, double alpha) {
  double low = -normal_quantile(alpha), high = normal_quantile_two_sided(alpha);
  for (int i = 0; i < 100; ++i) {
    const double c = (low + high) / 2;
    (normal_cdf(c + width / s) - normal_cdf(-c) < 1 - alpha ? low : high) = c;
  }
  return (low + high) / 2;
}

Bounds around(double low, double high, double s_low, double s_high, double alpha) {
  Bounds out;
  out.identified = {low, high};
  const double s = std::max(s_low, s_high);
  if (!(0 < s)) {
    out.interval = out.identified;
    return out;
  }
  const double critical = critical_value(high - low, s, alpha);
  out.interval = Interval{low - critical * s_low, high + critical * s_high};
  return out;
}

// One end: every unknown outcome a failure, or a success.
struct End {
  double value = 0;
  std::optional<double> error;
};

Bounds between(const End& low, const End& high, double alpha) {
  if (!low.error || !high.error) return Bounds{{low.value, high.value}, std::nullopt};
  return around(low.value, high.value, *low.error, *high.error, alpha);
}

Cluster least(const PartlyKnown& t) {
  PROCTOR_ASSERT(t.successes + t.unknown <= t.runs);
  return {t.runs, t.successes};
}

Cluster most(const PartlyKnown& t) {
  return {t.runs, t.successes + t.unknown};
}

End rate_of(std::span<const Cluster> tasks, double alpha, Weighing weighing) {
  if (weighing == Weighing::kRuns) {
    const RatioRate rate = *ratio_rate(tasks, alpha);
    return {rate.ratio, rate.cr2};
  }
  const ClusteredRate rate = *mean_of_task_means(tasks, alpha);
  return {rate.mean, rate.standard_error};
}

End difference_of(std::span<const PairedTask> tasks, double alpha, Weighing weighing,
                  std::span<const std::uint32_t> groups) {
  const Estimate d = paired_difference(tasks, alpha, weighing, groups).estimate;
  return {*d.value, d.standard_error};
}
}  // namespace

// The ends are estimated as the rate and the difference are themselves: where every outcome is
// known, all three are equal to the last bit.
std::optional<Bounds> bounds_of_rate(std::span<const PartlyKnown> tasks, double alpha,
                                     Weighing weighing) {
  std::vector<Cluster> low, high;
  for (const PartlyKnown& t : tasks) {
    if (t.runs == 0) continue;
    low.push_back(least(t));
    high.push_back(most(t));
  }
  if (low.empty()) return std::nullopt;
  return between(rate_of(low, alpha, weighing), rate_of(high, alpha, weighing), alpha);
}

std::optional<Bounds> bounds_of_difference(std::span<const PartlyKnownPair> tasks, double alpha,
                                           Weighing weighing,
                                           std::span<const std::uint32_t> groups) {
  std::vector<PairedTask> low, high;
  for (const auto& [a, b] : tasks) {
    low.push_back({least(a), most(b)});
    high.push_back({most(a), least(b)});
  }
  if (low.empty()) return std::nullopt;
  return between(difference_of(low, alpha, weighing, groups),
                 difference_of(high, alpha, weighing, groups), alpha);
}

Bounds wider(const Bounds& x, const Bounds& y) {
  const auto hull = [](const Interval& i, const Interval& j) {
    return Interval{std::min(i.low, j.low), std::max(i.high, j.high)};
  };
  Bounds out{hull(x.identified, y.identified), std::nullopt};
  if (x.interval && y.interval) out.interval = hull(*x.interval, *y.interval);
  return out;
}
}  // namespace proctor
