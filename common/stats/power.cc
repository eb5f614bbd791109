#include "common/stats/power.h"

#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {

double difference_of(const Design& d) {
  return std::fabs(d.p_a - d.p_b);
}

// Power of Student's t with this non-centrality, both tails.
double power_at(double noncentrality, double df, double alpha) {
  const double t = t_quantile_two_sided(alpha, df);
  return 1 - noncentral_t_cdf(t, df, noncentrality) + noncentral_t_cdf(-t, df, noncentrality);
}

}  // namespace

double variance_of_task_difference(const Design& d) {
  PROCTOR_ASSERT(0 <= d.p_a && d.p_a <= 1 && 0 <= d.p_b && d.p_b <= 1);
  PROCTOR_ASSERT(0 <= d.icc && d.icc <= 1 && std::fabs(d.correlation) <= 1 && 1 <= d.runs);
  const double a = d.p_a * (1 - d.p_a), b = d.p_b * (1 - d.p_b);
  return d.icc * (a + b) - 2 * d.correlation * d.icc * std::sqrt(a * b) +
         (1 - d.icc) * (a + b) / d.runs;
}

double power_by_variance(double difference, double variance, std::uint64_t tasks, double alpha) {
  PROCTOR_ASSERT(0 < tasks && 0 <= variance);
  const double error = std::sqrt(variance / static_cast<double>(tasks));
  if (!(0 < error)) return difference != 0 ? 1 : 0;
  const double z = normal_quantile_two_sided(alpha), off = std::fabs(difference) / error;
  return normal_cdf(off - z) + normal_cdf(-off - z);
}

double power_by_variance_t(double difference, double variance, std::uint64_t tasks, double alpha) {
  PROCTOR_ASSERT(2 <= tasks && 0 <= variance);
  const double n = static_cast<double>(tasks), error = std::sqrt(variance / n);
  if (!(0 < error)) return difference != 0 ? 1 : 0;
  return power_at(std::fabs(difference) / error, n - 1, alpha);
}

double tasks_by_variance(double difference, double variance, double alpha, double power) {
  PROCTOR_ASSERT(difference != 0 && 0 < power && power < 1);
  const double z = normal_quantile_two_sided(alpha) + normal_quantile(power);
  return z * z * variance / (difference * difference);
}

double power_of(const Design& d, std::uint64_t tasks) {
  return power_by_variance(difference_of(d), variance_of_task_difference(d), tasks, d.alpha);
}

double power_of_t(const Design& d, std::uint64_t tasks) {
  return power_by_variance_t(difference_of(d), variance_of_task_difference(d), tasks, d.alpha);
}

}  // namespace proctor
