#include "common/stats/binomial.h"

#include <algorithm>
#include <cmath>

#include "common/base/assert.h"

namespace proctor {
namespace {

// The p at which `excess`, which grows with p, passes 0: bisected to the last bit that matters.
template <class F>
double root(F excess) {
  double low = 0, high = 1;
  while (1e-15 < high - low) {
    const double middle = (low + high) / 2;
    if (middle <= low || high <= middle) break;
    (excess(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

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

std::optional<Interval> clopper_pearson_mid_p(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n && 0 < alpha && alpha < 1);
  if (n == 0) return std::nullopt;
  const double seen = static_cast<double>(x), trials = static_cast<double>(n);
  // P(X < x) and P(X <= x) at rate p.
  const auto below = [&](double p) { return x == 0 ? 0.0 : binomial_cdf(seen - 1, trials, p); };
  const auto up_to = [&](double p) { return binomial_cdf(seen, trials, p); };
  Interval out{0, 1};
  if (0 < x) out.low = root([&](double p) { return 1 - (below(p) + up_to(p)) / 2 - alpha / 2; });
  if (x < n) out.high = root([&](double p) { return alpha / 2 - (below(p) + up_to(p)) / 2; });
  return out;
}

std::optional<Interval> agresti_coull(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n);
  if (n == 0) return std::nullopt;
  const double z = normal_quantile_two_sided(alpha);
  const double trials = static_cast<double>(n) + z * z;
  const double p = (static_cast<double>(x) + z * z / 2) / trials;
  const double half = z * std::sqrt(p * (1 - p) / trials);
  return Interval{std::max(0.0, p - half), std::min(1.0, p + half)};
}

std::optional<Interval> jeffreys(std::uint64_t x, std::uint64_t n, double alpha) {
  PROCTOR_ASSERT(x <= n && 0 < alpha && alpha < 1);
  if (n == 0) return std::nullopt;
  const double a = static_cast<double>(x) + 0.5, b = static_cast<double>(n - x) + 0.5;
  // At the ends the raw quantile would exclude the rate that was seen.
  return Interval{x == 0 ? 0.0 : beta_quantile(alpha / 2, a, b),
                  x == n ? 1.0 : beta_quantile_upper(alpha / 2, a, b)};
}

}  // namespace proctor
