#include "common/stats/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/stats/distributions.h"

namespace proctor {
namespace {

// P(|sum| >= |seen|) by the normal distribution with the exact variance.
Significance approximate(std::span<const std::int64_t> differences, double seen) {
  double squares = 0;
  for (const std::int64_t d : differences)
    squares += static_cast<double>(d) * static_cast<double>(d);
  const double z = std::fabs(seen) / std::sqrt(squares);
  return {seen, std::min(1.0, 2 * normal_cdf(-z)), {}, false};
}

}  // namespace

Significance sign_flip(std::span<const std::int64_t> differences) {
  std::int64_t seen = 0;
  std::uint64_t reach = 0, steps = 0;
  for (const std::int64_t d : differences) {
    seen += d;
    reach += static_cast<std::uint64_t>(std::abs(d));
    steps += d == 0 ? 0 : 1;
  }
  if (reach == 0) return {0, 1, {}, true};
  if (kSignFlipSteps / reach < steps) return approximate(differences, static_cast<double>(seen));
  // With b of the |d| taken as plus, the sum is 2 (sum of those) - reach: the chance of each sum of
  // those, one task after the other.
  std::vector<double> chance(static_cast<std::size_t>(reach) + 1, 0.0);
  chance[0] = 1;
  std::size_t top = 0;
  for (const std::int64_t d : differences) {
    const auto step = static_cast<std::size_t>(std::abs(d));
    if (step == 0) continue;
    top += step;
    for (std::size_t at = top + 1; at-- > 0;) {
      const double stays = at + step <= top ? chance[at] : 0;
      chance[at] = (stays + (step <= at ? chance[at - step] : 0)) / 2;
    }
  }
  const auto far = static_cast<std::uint64_t>(std::abs(seen));
  double p = 0;
  for (std::uint64_t plus = 0; plus <= reach; ++plus) {
    const std::uint64_t sum = 2 * plus < reach ? reach - 2 * plus : 2 * plus - reach;
    if (far <= sum) p += chance[static_cast<std::size_t>(plus)];
  }
  return {static_cast<double>(seen), std::min(1.0, p), {}, true};
}

}  // namespace proctor
