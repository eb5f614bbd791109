#include "common/stats/binomial.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"

namespace proctor {
std::optional<double> rate(std::uint64_t x, std::uint64_t n) {
  PROCTOR_ASSERT(x <= n);
  if (n == 0) return std::nullopt;
  return static_cast<double>(x) / static_cast<double>(n);
}

std::optional<Interval> wilson_at(double p, double n, double alpha) {
  if (!(0 < n)) return std::nullopt;
  const double z = normal_quantile_two_sided(alpha);
  const double shrink = 1 + z * z / n;
  const double centre = (p + z * z / (2 * n)) / shrink;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink;
  return Interval{std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

std::optional<Interval> wilson(std::uint64_t x, std::uint64_t n, double alpha) {
  const std::optional<double> p = rate(x, n);
  if (!p) return std::nullopt;
  auto interval = wilson_at(*p, static_cast<double>(n), alpha);
  // At the ends the bound is exactly the end; rounding would print 1e-17.
  if (x == 0) interval->low = 0;
  if (x == n) interval->high = 1;
  return interval;
}

Interval clopper_pearson_at(double x, double n, double alpha) {
  PROCTOR_ASSERT(0 <= x && x <= n && 0 < n && 0 < alpha && alpha < 1);
  Interval out{0, 1};
  if (0 < x) out.low = beta_quantile(alpha / 2, x, n - x + 1);
  if (x < n) out.high = beta_quantile_upper(alpha / 2, x + 1, n - x);
  return out;
}

std::optional<Interval> clopper_pearson(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n);
  if (n == 0) return std::nullopt;
  return clopper_pearson_at(static_cast<double>(x), static_cast<double>(n), alpha);
}

std::optional<double> clopper_pearson_upper(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n && 0 < alpha && alpha < 1);
  if (n == 0) return std::nullopt;
  if (x == n) return 1.0;
  return beta_quantile_upper(alpha, static_cast<double>(x) + 1, static_cast<double>(n - x));
}

}  // namespace proctor
