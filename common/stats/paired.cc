#include "common/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"

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

namespace {
// What is known of differences before their signs are flipped.
struct Totals {
  std::int64_t seen = 0;
  std::uint64_t reach = 0, steps = 0;  // sum of the absolute ones, and how many are not 0
  double squares = 0;
  bool is_too_large() const { return 0 < reach && kSignFlipSteps / reach < steps; }
};
Totals totals_of(std::span<const std::int64_t> differences) {
  Totals out;
  for (const std::int64_t d : differences) {
    out.seen += d;
    out.reach += static_cast<std::uint64_t>(std::abs(d));
    out.steps += d == 0 ? 0 : 1;
    out.squares += static_cast<double>(d) * static_cast<double>(d);
  }
  return out;
}

// P(|sum| >= |seen|) by the normal distribution with the exact variance.
Significance approximate(const Totals& of) {
  const auto seen = static_cast<double>(of.seen);
  const double z = std::fabs(seen) / std::sqrt(of.squares);
  return {seen, std::min(1.0, 2 * normal_cdf(-z)), {}, false};
}

// With b of the |d| taken as plus, the sum is 2 (sum of those) - reach: the chance of each sum of
// those, one task after the other.
void convolve(std::vector<double>& chance, std::span<const std::int64_t> differences) {
  std::size_t top = chance.size() - 1;
  chance.resize(top + 1 + static_cast<std::size_t>(totals_of(differences).reach), 0.0);
  for (const std::int64_t d : differences) {
    const auto step = static_cast<std::size_t>(std::abs(d));
    if (step == 0) continue;
    top += step;
    for (std::size_t at = top + 1; at-- > 0;) {
      const double stays = at + step <= top ? chance[at] : 0;
      chance[at] = (stays + (step <= at ? chance[at - step] : 0)) / 2;
    }
  }
}
}  // namespace

Significance sign_flip(std::span<const std::int64_t> differences) {
  const Totals of = totals_of(differences);
  if (of.reach == 0) return {0, 1, {}, true};
  if (of.is_too_large()) return approximate(of);
  std::vector<double> chance{1.0};
  convolve(chance, differences);
  const auto far = static_cast<std::uint64_t>(std::abs(of.seen));
  double p = 0;
  for (std::uint64_t plus = 0; plus <= of.reach; ++plus) {
    const std::uint64_t sum = 2 * plus < of.reach ? of.reach - 2 * plus : 2 * plus - of.reach;
    if (far <= sum) p += chance[static_cast<std::size_t>(plus)];
  }
  return {static_cast<double>(of.seen), std::min(1.0, p), {}, true};
}

void SignFlips::add(std::span<const std::int64_t> differences) {
  const Totals of = totals_of(differences);
  seen_ += of.seen;
  reach_ += of.reach;
  steps_ += of.steps;
  squares_ += of.squares;
  is_exact_ = is_exact_ && !Totals{seen_, reach_, steps_, squares_}.is_too_large();
  if (!is_exact_) return;
  convolve(chance_, differences);
  at_least_ = chance_;
  for (std::size_t at = at_least_.size() - 1; at-- > 0;) at_least_[at] += at_least_[at + 1];
}

Significance SignFlips::with(std::span<const std::int64_t> others) const {
  Totals of = totals_of(others);
  of.seen += seen_;
  of.reach += reach_;
  of.steps += steps_;
  of.squares += squares_;
  if (of.reach == 0) return {0, 1, {}, true};
  if (!is_exact_ || of.is_too_large()) return approximate(of);
  const auto far = static_cast<std::uint64_t>(std::abs(of.seen));
  if (far == 0) return {0, 1, {}, true};
  std::vector<double> chance{1.0};
  convolve(chance, others);
  // The sum is 2 plus - reach, and its law is symmetric: twice the chance that it is at least
  // `far`, which takes `least` of plus.
  const auto least = static_cast<std::size_t>((of.reach + far + 1) / 2);
  double p = 0;
  for (std::size_t plus = 0; plus < chance.size(); ++plus) {
    const std::size_t missing = least <= plus ? 0 : least - plus;
    if (missing < at_least_.size()) p += chance[plus] * at_least_[missing];
  }
  return {static_cast<double>(of.seen), std::min(1.0, 2 * p), {}, true};
}

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
