#include "common/stats/ratio_ends.h"

#include <algorithm>

#include "common/stats/binomial.h"
#include "common/stats/distributions.h"

namespace proctor {

std::optional<NearEnds> ratio_ends(std::span<const Cluster> tasks, double alpha) {
  const std::optional<RatioRate> rate = ratio_rate(tasks, alpha);
  if (!rate) return std::nullopt;
  double runs = 0, with_runs = 0;
  for (const Cluster& c : tasks) {
    runs += static_cast<double>(c.runs);
    with_runs += 0 < c.runs ? 1 : 0;
  }
  const double p = rate->ratio, se = rate->cr2.value_or(0);
  if (!(0 < se) || !rate->df || p <= 0 || 1 <= p) {
    const Interval over_tasks = *wilson_at(p, with_runs, alpha);
    // Rounding would leave 1e-17 beyond a rate of exactly 0 or 1.
    const Interval exact{p <= 0 ? 0 : over_tasks.low, 1 <= p ? 1 : over_tasks.high};
    return NearEnds{std::nullopt, exact, exact};
  }
  const double effective = p * (1 - p) / (se * se);
  const double t_ratio =
      t_quantile_two_sided(alpha, std::max(1.0, runs - 1)) / t_quantile_two_sided(alpha, *rate->df);
  const double shrunk = effective * t_ratio * t_ratio;
  return NearEnds{effective, *wilson_at(p, effective, alpha),
                  clopper_pearson_at(p * shrunk, shrunk, alpha)};
}

}  // namespace proctor
