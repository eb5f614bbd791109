#include "common/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/assert.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

// Type 7 over sorted values that `unbounded` infinite ones follow.
std::optional<double> sorted_quantile(std::span<const double> sorted, std::size_t unbounded,
                                      double q) {
  const double at = q * static_cast<double>(sorted.size() + unbounded - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const double part = at - static_cast<double>(below);
  if (sorted.size() <= below) return std::nullopt;
  if (part <= 0) return sorted[below];
  if (sorted.size() <= below + 1) return std::nullopt;
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

std::optional<OpenInterval> ends(std::span<const double> sorted, std::size_t unbounded, double low,
                                 double high) {
  const std::optional<double> from = sorted_quantile(sorted, unbounded, low);
  if (!from) return std::nullopt;
  return OpenInterval{*from, sorted_quantile(sorted, unbounded, high)};
}

// Nothing where the tasks' influences are all alike.
std::optional<double> acceleration_of(std::span<const double> jackknife) {
  if (jackknife.empty()) return std::nullopt;
  const double mean = mean_of(jackknife);
  double squares = 0, cubes = 0;
  for (const double value : jackknife) {
    const double d = mean - value;
    squares += d * d;
    cubes += d * d * d;
  }
  if (!(0 < squares)) return std::nullopt;
  return cubes / (6 * std::pow(squares, 1.5));
}

}  // namespace

Bootstrapped bootstrap_intervals(double observed, std::span<const double> replicates,
                                 std::size_t unbounded, std::span<const double> jackknife,
                                 double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  Bootstrapped out;
  if (replicates.empty()) return out;
  std::vector<double> sorted(replicates.begin(), replicates.end());
  std::ranges::sort(sorted);
  if (unbounded == 0) {
    out.mean = mean_of(replicates);
    if (1 < replicates.size()) out.deviation = std::sqrt(variance_of(replicates));
  }
  out.percentile = ends(sorted, unbounded, alpha / 2, 1 - alpha / 2);

  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), observed);
  const double below = static_cast<double>(first - sorted.begin());
  const double share = (below + static_cast<double>(last - first) / 2) /
                       static_cast<double>(sorted.size() + unbounded);
  out.acceleration = acceleration_of(jackknife);
  if (share <= 0 || 1 <= share) return out;
  const double z0 = normal_quantile(share);
  out.bias = z0;
  if (!out.acceleration) return out;
  const auto shifted = [&](double z) {
    return normal_cdf(z0 + (z0 + z) / (1 - *out.acceleration * (z0 + z)));
  };
  const double z = normal_quantile_two_sided(alpha);
  out.bca = ends(sorted, unbounded, shifted(-z), shifted(z));
  return out;
}

}  // namespace proctor
