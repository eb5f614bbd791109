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
  out.critical = critical_value(high - low, s, alpha);
  out.interval = Interval{low - out.critical * s_low, high + out.critical * s_high};
  return out;
}

// One end: every unknown outcome a failure, or a success.
struct End {
  double value = 0;
  std::optional<double> error;
};

Bounds between(const End& low, const End& high, double alpha) {
  if (!low.error || !high.error) return Bounds{{low.value, high.value}, std::nullopt, 0};
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
  Bounds out{hull(x.identified, y.identified), std::nullopt, std::max(x.critical, y.critical)};
  if (x.interval && y.interval) out.interval = hull(*x.interval, *y.interval);
  return out;
}

Agreement agreement(std::span<const std::uint64_t> counts, std::size_t categories, double alpha) {
  PROCTOR_ASSERT(2 <= categories && counts.size() == categories * categories);
  Agreement out;
  double n = 0;
  for (const std::uint64_t c : counts) n += static_cast<double>(c);
  if (!(0 < n)) {
    out.kappa.why = Why::kNothing;
    return out;
  }
  const auto p = [&](std::size_t i, std::size_t j) {
    return static_cast<double>(counts[i * categories + j]) / n;
  };
  std::vector<double> row(categories, 0.0), column(categories, 0.0);
  double agree = 0;
  for (std::size_t i = 0; i < categories; ++i)
    for (std::size_t j = 0; j < categories; ++j) {
      row[i] += p(i, j);
      column[j] += p(i, j);
      agree += i == j ? p(i, j) : 0;
    }
  double chance = 0, chance1 = 0;
  for (std::size_t i = 0; i < categories; ++i) {
    chance += row[i] * column[i];
    const double both = (row[i] + column[i]) / 2;
    chance1 += both * (1 - both);
  }
  chance1 /= static_cast<double>(categories - 1);
  out.observed = agree;
  out.ac1 = (agree - chance1) / (1 - chance1);
  if (!(chance < 1)) {
    out.kappa.why = Why::kNotDefined;
    return out;
  }
  const double kappa = (agree - chance) / (1 - chance);
  out.kappa.value = kappa;
  double sum = 0;
  for (std::size_t i = 0; i < categories; ++i)
    for (std::size_t j = 0; j < categories; ++j)
      sum += i == j ? p(i, i) * square(1 - chance - (row[i] + column[i]) * (1 - agree))
                    : square(1 - agree) * p(i, j) * square(column[i] + row[j]);
  sum -= square(agree * chance - 2 * chance + agree);
  const double error = std::sqrt(std::fmax(0, sum) / n) / square(1 - chance);
  out.kappa.standard_error = error;
  const double half = normal_quantile_two_sided(alpha) * error;
  out.kappa.interval = Interval{kappa - half, kappa + half};
  return out;
}

// Errors of checks, and rates without them.

namespace {
double share(Count c) {
  PROCTOR_ASSERT(0 < c.of && c.seen <= c.of);
  return static_cast<double>(c.seen) / static_cast<double>(c.of);
}

// Variance of a share of n.
double binomial_variance(double p, double n) {
  return p * (1 - p) / n;
}

Estimate missing(Why why) {
  Estimate out;
  out.why = why;
  return out;
}

// Lang and Reiczigel: every count moved towards the middle, the centre by what that costs.
Interval lang_reiczigel(double q, double n, const KnownGrader& g, double z) {
  const double n1 = static_cast<double>(g.sensitivity.of) + 2;
  const double n0 = static_cast<double>(g.specificity.of) + 2;
  const double se = (static_cast<double>(g.sensitivity.seen) + 1) / n1;
  const double sp = (static_cast<double>(g.specificity.seen) + 1) / n0;
  const double seen = (q * n + z * z / 2) / (n + z * z), j = se + sp - 1;
  const double p = (seen + sp - 1) / j;
  const double v1 = binomial_variance(se, n1), v0 = binomial_variance(sp, n0);
  const double centre = p + 2 * z * z * (p * v1 - (1 - p) * v0);
  const double variance = binomial_variance(seen, n + z * z) + square(p) * v1 + square(1 - p) * v0;
  const double half = z * std::sqrt(variance) / j;
  return {centre - half, centre + half};
}

Estimate rogan_gladen(double q, double n, const KnownGrader& g, double alpha) {
  const double se = share(g.sensitivity), sp = share(g.specificity), j = se + sp - 1;
  if (j <= 0) return missing(Why::kNotDefined);
  Estimate out;
  const double p = (q + sp - 1) / j;
  out.value = p;
  const double v1 = binomial_variance(se, static_cast<double>(g.sensitivity.of));
  const double v0 = binomial_variance(sp, static_cast<double>(g.specificity.of));
  out.standard_error = std::sqrt(binomial_variance(q, n) + square(p) * v1 + square(1 - p) * v0) / j;
  out.interval = lang_reiczigel(q, n, g, normal_quantile_two_sided(alpha));
  return out;
}
}  // namespace

GraderError grader_error(Count errors, double alpha) {
  GraderError out;
  if (errors.of == 0) {
    out.rate.why = Why::kNothing;
    return out;
  }
  out.rate.value = share(errors);
  out.rate.interval = wilson(errors.seen, errors.of, alpha);
  out.upper_bound = clopper_pearson_upper(errors.seen, errors.of, alpha);
  return out;
}

Estimate corrected_rate(Count accepted, const KnownGrader& grader, double alpha) {
  if (accepted.of == 0) return missing(Why::kNothing);
  return rogan_gladen(share(accepted), static_cast<double>(accepted.of), grader, alpha);
}

Estimate corrected_rate(double rate, double standard_error, const KnownGrader& grader,
                        double alpha) {
  if (rate <= 0 || 1 <= rate || !(0 < standard_error)) return missing(Why::kNoVariance);
  return rogan_gladen(rate, rate * (1 - rate) / square(standard_error), grader, alpha);
}

Estimate corrected_difference(double difference, double standard_error, const KnownGrader& g,
                              double alpha) {
  const double se = share(g.sensitivity), sp = share(g.specificity), j = se + sp - 1;
  if (j <= 0) return missing(Why::kNotDefined);
  Estimate out;
  const double value = difference / j;
  const double variance_j = binomial_variance(se, static_cast<double>(g.sensitivity.of)) +
                            binomial_variance(sp, static_cast<double>(g.specificity.of));
  const double error = std::sqrt(square(standard_error) + square(value) * variance_j) / j;
  out.value = value;
  out.standard_error = error;
  const double half = normal_quantile_two_sided(alpha) * error;
  out.interval = Interval{value - half, value + half};
  return out;
}

DoubleSampled double_sampled_rate(const Reviewed& r, double alpha) {
  DoubleSampled out;
  if (r.accepted.of == 0 || r.accepted_correct.of == 0 || r.rejected_correct.of == 0) {
    out.rate.why = Why::kNothing;
    return out;
  }
  const double q = share(r.accepted), positive = share(r.accepted_correct);
  const double omitted = share(r.rejected_correct);
  const double p = q * positive + (1 - q) * omitted;
  const double variance =
      square(q) * binomial_variance(positive, static_cast<double>(r.accepted_correct.of)) +
      square(1 - q) * binomial_variance(omitted, static_cast<double>(r.rejected_correct.of)) +
      square(positive - omitted) * binomial_variance(q, static_cast<double>(r.accepted.of));
  out.rate.value = p;
  out.rate.standard_error = std::sqrt(variance);
  if (0 < p) out.false_positive = (1 - q) * omitted / p;
  if (p < 1) out.false_negative = q * (1 - positive) / (1 - p);
  if (p <= 0 || 1 <= p || !(0 < variance)) {
    out.rate.why = Why::kNoVariance;
    return out;
  }
  const double logit = std::log(p / (1 - p));
  const double half = normal_quantile_two_sided(alpha) * std::sqrt(variance) / (p * (1 - p));
  const auto back = [](double x) { return 1 / (1 + std::exp(-x)); };
  out.rate.interval = Interval{back(logit - half), back(logit + half)};
  return out;
}
}  // namespace proctor
