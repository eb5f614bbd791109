#include "common/stats/grader.h"

#include <cmath>

#include "common/base/result.h"
#include "common/stats/binomial.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {
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
