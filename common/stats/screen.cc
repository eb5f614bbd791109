#include "common/stats/screen.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
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
