#include "common/stats/power.h"

#include <cmath>

#include "common/base/assert.h"
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

// The x in [low, high] from which on `holds` is true; requires that it is at `high`.
template <class Holds>
double first_real(double low, double high, const Holds& holds) {
  for (int step = 0; step < 200 && low < high; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || high <= middle) break;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

double variance_of_task_difference(const Design& d) {
  PROCTOR_ASSERT(0 <= d.p_a && d.p_a <= 1 && 0 <= d.p_b && d.p_b <= 1);
  PROCTOR_ASSERT(0 <= d.icc && d.icc <= 1 && std::fabs(d.correlation) <= 1 && 1 <= d.runs);
  const double a = d.p_a * (1 - d.p_a), b = d.p_b * (1 - d.p_b);
  return d.icc * (a + b) - 2 * d.correlation * d.icc * std::sqrt(a * b) +
         (1 - d.icc) * (a + b) / d.runs;
}

std::optional<std::uint64_t> tasks_for_power(const Design& d, double power) {
  PROCTOR_ASSERT(0 < power && power < 1);
  const double delta = difference_of(d);
  if (!(0 < delta)) return std::nullopt;
  const double n =
      std::ceil(tasks_by_variance(delta, variance_of_task_difference(d), d.alpha, power));
  if (static_cast<double>(kMostPlannedTasks) < n) return std::nullopt;
  return static_cast<std::uint64_t>(std::fmax(1, n));
}

std::optional<std::uint64_t> tasks_for_power_t(const Design& d, double power) {
  if (!(0 < difference_of(d))) return std::nullopt;
  std::uint64_t low = 1, high = 2;
  while (power_of_t(d, high) < power) {
    low = high;
    if (kMostPlannedTasks < (high *= 2)) return std::nullopt;
  }
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (power_of_t(d, middle) < power ? low : high) = middle;
  }
  return high;
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

double detectable_difference(const Design& d, std::uint64_t tasks, double power) {
  PROCTOR_ASSERT(0 < tasks && 0 < power && power < 1);
  const double error = std::sqrt(variance_of_task_difference(d) / static_cast<double>(tasks));
  return (normal_quantile_two_sided(d.alpha) + normal_quantile(power)) * error;
}

double detectable_by_error(double standard_error, double df, double power, double alpha) {
  PROCTOR_ASSERT(0.5 < power && power < 1);
  // The t with P(T <= t) = power is that with P(|T| > t) = 2 (1 - power).
  return (t_quantile_two_sided(alpha, df) + t_quantile_two_sided(2 * (1 - power), df)) *
         standard_error;
}

double detectable_by_error_t(double standard_error, double df, double power, double alpha) {
  PROCTOR_ASSERT(0.5 < power && power < 1);
  const auto shows = [&](double off) { return power <= power_at(off, df, alpha); };
  double high = 1;
  while (!shows(high)) high *= 2;
  return first_real(0, high, shows) * standard_error;
}

}  // namespace proctor
