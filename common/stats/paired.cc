#include "common/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/result.h"
#include "common/stats/grouped.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

// A value with this standard error over n tasks.
Difference with_t(double value, double se, double df, double alpha) {
  Difference out;
  out.estimate.value = value;
  out.estimate.standard_error = se;
  if (!(0 < se)) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  out.estimate.df = df;
  const double half = t_quantile_two_sided(alpha, df) * se;
  out.estimate.interval = Interval{value - half, value + half};
  out.p = t_two_sided(value / se, df);
  return out;
}

Difference missing(Why why) {
  Difference out;
  out.estimate.why = why;
  return out;
}

}  // namespace

Difference mean_difference(std::span<const double> differences, double alpha,
                           std::span<const std::uint32_t> groups) {
  if (differences.empty()) return missing(Why::kNotPaired);
  if (!groups.empty()) {
    GroupedMean mean = grouped_mean(differences, groups, alpha);
    if (mean.estimate.why == Why::kOneTask) mean.estimate.why = Why::kOneGroup;
    return {mean.estimate, mean.p};
  }
  const double n = static_cast<double>(differences.size()), mean = mean_of(differences);
  if (n < 2) {
    Difference out = missing(Why::kOneTask);
    out.estimate.value = mean;
    return out;
  }
  const bool equal =
      std::ranges::all_of(differences, [&](double d) { return d == differences[0]; });
  const double se = equal ? 0 : std::sqrt(variance_of(differences) / n);
  return with_t(equal ? differences[0] : mean, se, n - 1, alpha);
}

double rate_difference(const PairedTask& t) {
  PROCTOR_ASSERT(0 < t.a.runs && 0 < t.b.runs);
  const double a = static_cast<double>(t.a.runs), b = static_cast<double>(t.b.runs);
  return (static_cast<double>(t.a.successes) * b - static_cast<double>(t.b.successes) * a) /
         (a * b);
}

std::vector<double> task_values(std::span<const PairedTask> tasks, Weighing weighing) {
  std::vector<double> out;
  if (weighing == Weighing::kTasks) {
    for (const PairedTask& t : tasks) out.push_back(rate_difference(t));
    return out;
  }
  double runs_a = 0, runs_b = 0, won_a = 0, won_b = 0;
  for (const PairedTask& t : tasks) {
    PROCTOR_ASSERT(0 < t.a.runs && 0 < t.b.runs);
    runs_a += static_cast<double>(t.a.runs);
    runs_b += static_cast<double>(t.b.runs);
    won_a += static_cast<double>(t.a.successes);
    won_b += static_cast<double>(t.b.successes);
  }
  const double n = static_cast<double>(tasks.size()), a2 = runs_a * runs_a, b2 = runs_b * runs_b;
  const double difference = (won_a * runs_b - won_b * runs_a) / (runs_a * runs_b);
  // Whole numbers first, so that tasks that differ alike have residuals of exactly 0.
  const auto excess = [](const Cluster& c, double won, double runs) {
    return static_cast<double>(c.successes) * runs - static_cast<double>(c.runs) * won;
  };
  for (const PairedTask& t : tasks)
    out.push_back(difference +
                  n * (excess(t.a, won_a, runs_a) * b2 - excess(t.b, won_b, runs_b) * a2) /
                      (a2 * b2));
  return out;
}

Difference paired_difference(std::span<const PairedTask> tasks, double alpha, Weighing weighing,
                             std::span<const std::uint32_t> groups) {
  return mean_difference(task_values(tasks, weighing), alpha, groups);
}

std::optional<Equivalence> equivalence(std::span<const double> differences, double margin,
                                       double alpha, std::span<const std::uint32_t> groups) {
  PROCTOR_ASSERT(0 < margin && 0 < alpha && alpha < 0.5);
  const Difference d = mean_difference(differences, 2 * alpha, groups);
  if (!d.estimate.interval) return std::nullopt;
  const double se = *d.estimate.standard_error, df = *d.estimate.df, value = *d.estimate.value;
  Equivalence out;
  out.p_non_inferior = t_upper_tail((value + margin) / se, df);
  out.p_equivalent = std::max(out.p_non_inferior, t_upper_tail((margin - value) / se, df));
  out.interval = *d.estimate.interval;
  return out;
}

double mcnemar_exact(const PairCounts& n) {
  const double all = static_cast<double>(n.only_a + n.only_b);
  if (!(0 < all)) return 1;
  const double fewer = static_cast<double>(std::min(n.only_a, n.only_b));
  return std::min(1.0, 2 * binomial_cdf(fewer, all, 0.5));
}

}  // namespace proctor
