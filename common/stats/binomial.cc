#include "common/stats/binomial.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "common/base/assert.h"

namespace proctor {

std::optional<double> rate(std::uint64_t x, std::uint64_t n) {
  PROCTOR_ASSERT(x <= n);
  if (n == 0) return std::nullopt;
  return static_cast<double>(x) / static_cast<double>(n);
}

double normal_quantile_two_sided(double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  return boost::math::quantile(boost::math::complement(boost::math::normal(), alpha / 2));
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

std::optional<Interval> clopper_pearson(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n && 0 < alpha && alpha < 1);
  if (n == 0) return std::nullopt;
  using boost::math::beta_distribution;
  const double passed = static_cast<double>(x);
  const double failed = static_cast<double>(n - x);
  Interval out{0, 1};
  if (0 < x) out.low = boost::math::quantile(beta_distribution<>(passed, failed + 1), alpha / 2);
  if (x < n)
    out.high = boost::math::quantile(
        boost::math::complement(beta_distribution<>(passed + 1, failed), alpha / 2));
  return out;
}

}  // namespace proctor
