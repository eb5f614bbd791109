#include "common/stats/clustered.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"

namespace proctor {

std::optional<ClusteredRate> mean_of_task_means(std::span<const Cluster> tasks, double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  ClusteredRate out;
  double sum = 0;
  std::optional<double> first;
  bool alike = true;
  for (const Cluster& c : tasks) {
    const std::optional<double> r = rate(c.successes, c.runs);
    if (!r) continue;
    if (!first) first = r;
    alike = alike && *r == *first;
    sum += *r;
    ++out.tasks;
  }
  if (!first) return std::nullopt;
  const double n = static_cast<double>(out.tasks);
  // Twelve times 3/5 does not sum to 36/5: what rounding leaves would pass for a spread, and the
  // interval would have no width.
  out.mean = alike ? *first : sum / n;
  if (out.tasks < 2) return out;
  double squares = 0;
  for (const Cluster& c : tasks)
    if (const std::optional<double> r = rate(c.successes, c.runs))
      squares += (*r - out.mean) * (*r - out.mean);
  const double se = std::sqrt(squares / (n - 1) / n);
  out.standard_error = se;
  if (squares == 0) {
    out.interval = wilson_at(out.mean, n, alpha);
    return out;
  }
  const double t = t_quantile_two_sided(alpha, n - 1);
  out.interval = Interval{out.mean - t * se, out.mean + t * se};
  return out;
}

std::optional<RatioRate> ratio_rate(std::span<const Cluster> tasks, double alpha) {
  double runs = 0, successes = 0, with_runs = 0;
  for (const Cluster& c : tasks) {
    PROCTOR_ASSERT(c.successes <= c.runs);
    runs += static_cast<double>(c.runs);
    successes += static_cast<double>(c.successes);
    with_runs += 0 < c.runs ? 1 : 0;
  }
  if (!(0 < runs)) return std::nullopt;
  RatioRate out;
  out.ratio = successes / runs;
  // Of residuals e and leverages w = runs of the task / all runs; q = w^2 / (1 - w).
  double squares = 0, squares2 = 0, squares3 = 0, w2 = 0, q1 = 0, q2 = 0;
  for (const Cluster& c : tasks) {
    // Whole numbers first, so that tasks that are all alike have residuals of exactly 0.
    const double e =
        (static_cast<double>(c.successes) * runs - static_cast<double>(c.runs) * successes) / runs;
    const double w = static_cast<double>(c.runs) / runs, rest = 1 - w;
    squares += e * e;
    if (!(0 < rest)) continue;
    squares2 += e * e / rest;
    squares3 += e * e / (rest * rest);
    const double q = w * w / rest;
    w2 += w * w;
    q1 += q;
    q2 += q * q;
  }
  out.cr0 = std::sqrt(squares) / runs;
  if (with_runs < 2) return out;
  out.cr1 = out.cr0 * std::sqrt(with_runs / (with_runs - 1));
  out.cr2 = std::sqrt(squares2) / runs;
  out.cr3 = std::sqrt(squares3) / runs;
  out.df = 1 / (w2 + q1 * q1 - q2);
  if (0 < *out.cr2) {
    const double half = t_quantile_two_sided(alpha, *out.df) * *out.cr2;
    out.interval = Interval{out.ratio - half, out.ratio + half};
  }
  return out;
}

NearEnds ends_of(const RateSpread& spread, double alpha) {
  const double p = spread.rate, se = spread.error;
  if (!(0 < se) || p <= 0 || 1 <= p) {
    const Interval over_tasks = *wilson_at(p, spread.tasks, alpha);
    // Rounding would leave 1e-17 beyond a rate of exactly 0 or 1.
    const Interval exact{p <= 0 ? 0 : over_tasks.low, 1 <= p ? 1 : over_tasks.high};
    return NearEnds{std::nullopt, exact, exact};
  }
  const double effective = p * (1 - p) / (se * se);
  const double t_ratio = t_quantile_two_sided(alpha, std::max(1.0, spread.runs - 1)) /
                         t_quantile_two_sided(alpha, spread.df);
  const double shrunk = effective * t_ratio * t_ratio;
  return NearEnds{effective, *wilson_at(p, effective, alpha),
                  clopper_pearson_at(p * shrunk, shrunk, alpha)};
}

std::optional<NearEnds> near_ends(std::span<const Cluster> tasks, double alpha) {
  const std::optional<ClusteredRate> rate = mean_of_task_means(tasks, alpha);
  if (!rate) return std::nullopt;
  double runs = 0;
  for (const Cluster& c : tasks) runs += static_cast<double>(c.runs);
  const double n = static_cast<double>(rate->tasks);
  return ends_of({rate->mean, rate->standard_error.value_or(0), n - 1, n, runs}, alpha);
}

}  // namespace proctor
