#include "common/stats/interval.h"

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

namespace {
// P(X >= x) of n trials.
double at_least(std::uint64_t x, std::uint64_t n, double p) {
  // The lower tail of failures: no digits are lost where it is small.
  return binomial_cdf(static_cast<double>(n - x), static_cast<double>(n), 1 - p);
}

double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}
}  // namespace

double flake_upper_limit(std::uint64_t agreeing, std::uint64_t repeats, double alpha) {
  PROCTOR_ASSERT(0 < repeats && agreeing <= repeats && 0 < alpha && alpha < 1);
  constexpr double kHalf = 0.5;
  if (2 * agreeing <= repeats) return kHalf;
  const auto chance = [&](double f) {
    return at_least(agreeing, repeats, 1 - f) + at_least(agreeing, repeats, f);
  };
  if (alpha < chance(kHalf)) return kHalf;
  double low = 0, high = kHalf;
  for (int step = 0; step < 100; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || high <= middle) break;
    (alpha < chance(middle) ? low : high) = middle;
  }
  return high;
}

double fisher_greater(std::uint64_t x, std::uint64_t n, std::uint64_t y, std::uint64_t m) {
  PROCTOR_ASSERT(x <= n && y <= m);
  const std::uint64_t both = x + y;
  const auto real = [](std::uint64_t v) { return static_cast<double>(v); };
  const double all = log_choose(real(n + m), real(both));
  double sum = 0;
  for (std::uint64_t k = y; k <= std::min(both, m); ++k) {
    if (n < both - k) continue;
    sum += std::exp(log_choose(real(m), real(k)) + log_choose(real(n), real(both - k)) - all);
  }
  return std::min(1.0, sum);
}

double lower_limit(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n && 0 < n);
  if (x == 0) return 0;
  return beta_quantile(alpha, static_cast<double>(x), static_cast<double>(n - x) + 1);
}
}  // namespace proctor
