#include "common/stats/stopped.h"

#include <cmath>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/sequential.h"

namespace proctor {
namespace {

// The chance of an outcome as far up as this one or further, in the stagewise order: stopping above
// at an earlier look is further.
double chance_beyond(std::span<const double> fractions,
                     std::span<const std::optional<double>> bounds, double z, double drift) {
  std::vector<LookBounds> within;
  for (const auto& b : bounds) within.push_back(b ? LookBounds{-*b, *b} : LookBounds{});
  within.push_back({std::nullopt, z});
  double sum = 0;
  for (const LookChance& c : look_chances(fractions, within, drift)) sum += c.high;
  return sum;
}

}  // namespace

StoppedEstimate stopped_estimate(std::span<const double> fractions,
                                 std::span<const std::optional<double>> bounds, double difference,
                                 double standard_error, double alpha) {
  PROCTOR_ASSERT(!fractions.empty() && bounds.size() + 1 == fractions.size());
  PROCTOR_ASSERT(0 < standard_error && 0 < alpha && alpha < 1);
  // Downward is upward in a mirror: the order is symmetric.
  const double sign = difference < 0 ? -1 : 1, z = std::fabs(difference) / standard_error;
  const double unit = standard_error * std::sqrt(fractions.back());
  const auto drift_at = [&](double chance) {
    double low = -1, high = 1;
    while (chance < chance_beyond(fractions, bounds, z, low)) low *= 2;
    while (chance_beyond(fractions, bounds, z, high) < chance) high *= 2;
    for (int step = 0; step < 100; ++step) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || high <= middle) break;
      (chance_beyond(fractions, bounds, z, middle) < chance ? low : high) = middle;
    }
    return low + (high - low) / 2;
  };
  StoppedEstimate out;
  const double beyond = chance_beyond(fractions, bounds, z, 0);
  out.p = std::fmin(1, 2 * std::fmin(beyond, 1 - beyond));
  out.estimate = sign * unit * drift_at(0.5);
  const double near = sign * unit * drift_at(alpha / 2),
               far = sign * unit * drift_at(1 - alpha / 2);
  out.interval = {std::fmin(near, far), std::fmax(near, far)};
  return out;
}

double conditional_power(double z, double fraction, double drift, double last_bound) {
  PROCTOR_ASSERT(0 < fraction && fraction < 1);
  return normal_cdf((z * std::sqrt(fraction) + drift * (1 - fraction) - last_bound) /
                    std::sqrt(1 - fraction));
}

double bound_by_t(double bound, double df) {
  PROCTOR_ASSERT(0 < bound);
  return t_quantile_two_sided(2 * normal_cdf(-bound), df);
}

}  // namespace proctor
