#include "common/stats/clustered.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/result.h"
#include "common/stats/distributions.h"

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
  double squares = 0, squares2 = 0, w2 = 0, q1 = 0, q2 = 0;
  for (const Cluster& c : tasks) {
    // Whole numbers first, so that tasks that are all alike have residuals of exactly 0.
    const double e =
        (static_cast<double>(c.successes) * runs - static_cast<double>(c.runs) * successes) / runs;
    const double w = static_cast<double>(c.runs) / runs, rest = 1 - w;
    squares += e * e;
    if (!(0 < rest)) continue;
    squares2 += e * e / rest;
    const double q = w * w / rest;
    w2 += w * w;
    q1 += q;
    q2 += q * q;
  }
  if (with_runs < 2) return out;
  out.cr1 = std::sqrt(squares) / runs * std::sqrt(with_runs / (with_runs - 1));
  out.cr2 = std::sqrt(squares2) / runs;
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

GroupedMean grouped_mean(std::span<const double> values, std::span<const std::uint32_t> group,
                         double alpha) {
  PROCTOR_ASSERT(values.size() == group.size());
  GroupedMean out;
  if (values.empty()) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  const double n = static_cast<double>(values.size()), mean = mean_of(values);
  out.estimate.value = mean;
  struct Group {
    double size = 0, residual = 0;
  };
  std::map<std::uint32_t, Group> groups;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Group& g = groups[group[i]];
    g.size += 1;
    g.residual += values[i] - mean;
  }
  out.groups = groups.size();
  if (out.groups < 2) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  double squares = 0, weights = 0, shrunk = 0, shrunk_squares = 0;
  for (const auto& [name, g] : groups) {
    const double w = g.size / n, q = w * w / (1 - w);
    squares += square(g.residual) / (1 - w);
    weights += w * w;
    shrunk += q;
    shrunk_squares += q * q;
  }
  out.estimate.standard_error = std::sqrt(squares) / n;
  out.estimate.df = 1 / (weights + square(shrunk) - shrunk_squares);
  // Residuals of equal values are not 0 to the last bit.
  constexpr double kNone = 1e-14;
  if (*out.estimate.standard_error <= kNone) {
    out.estimate.standard_error = 0;
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  const double reach = t_quantile_two_sided(alpha, *out.estimate.df) * *out.estimate.standard_error;
  out.estimate.interval = Interval{mean - reach, mean + reach};
  out.p = t_two_sided(mean / *out.estimate.standard_error, *out.estimate.df);
  return out;
}

std::optional<NearEnds> ratio_ends(std::span<const Cluster> tasks, double alpha) {
  const std::optional<RatioRate> rate = ratio_rate(tasks, alpha);
  if (!rate) return std::nullopt;
  double runs = 0, with_runs = 0;
  for (const Cluster& c : tasks) {
    runs += static_cast<double>(c.runs);
    with_runs += 0 < c.runs ? 1 : 0;
  }
  const double error = rate->df ? rate->cr2.value_or(0) : 0;
  return ends_of({rate->ratio, error, rate->df.value_or(0), with_runs, runs}, alpha);
}

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

double effective_tasks(std::span<const double> task_weights) {
  double sum = 0, squares = 0;
  for (const double w : task_weights) {
    PROCTOR_ASSERT(0 <= w);
    sum += w;
    squares += w * w;
  }
  PROCTOR_ASSERT(0 < squares);
  return sum * sum / squares;
}

IntraclassCorrelation intraclass_correlation(std::span<const Cluster> tasks, double alpha) {
  IntraclassCorrelation out;
  double n = 0, runs = 0, won = 0, squares = 0, within = 0, most = 0, least = 0;
  for (const Cluster& c : tasks) {
    PROCTOR_ASSERT(c.successes <= c.runs);
    if (c.runs == 0) continue;
    const double k = static_cast<double>(c.runs), x = static_cast<double>(c.successes);
    least = n == 0 ? k : std::min(least, k);
    most = std::max(most, k);
    n += 1;
    runs += k;
    won += x;
    squares += k * k;
    within += x * (k - x) / k;
  }
  const auto missing = [&](Why why) {
    out.rho.why = why;
    return out;
  };
  if (n == 0) return missing(Why::kNothing);
  if (n < 2) return missing(Why::kOneTask);
  if (!(n < runs)) return missing(Why::kTooFew);
  const double p = won / runs;
  double between = 0;
  for (const Cluster& c : tasks) {
    if (c.runs == 0) continue;
    const double k = static_cast<double>(c.runs), off = static_cast<double>(c.successes) / k - p;
    between += k * off * off;
  }
  // k0, of analysis of variance with unequal numbers.
  const double runs_per_task = (runs - squares / runs) / (n - 1);
  between /= n - 1;
  within /= runs - n;
  const double total = between + (runs_per_task - 1) * within;
  if (!(0 < total) || p <= 0 || 1 <= p) return missing(Why::kNoVariance);
  out.rho.value = (between - within) / total;
  out.design_effect = 1 + (runs_per_task - 1) * *out.rho.value;
  if (least == most && 0 < within) {
    const double f = between / within, df1 = n - 1, df2 = runs - n;
    const double low = f / f_quantile(1 - alpha / 2, df1, df2);
    const double high = f / f_quantile(alpha / 2, df1, df2);
    out.rho.interval = Interval{(low - 1) / (low + most - 1), (high - 1) / (high + most - 1)};
  }
  return out;
}
}  // namespace proctor
