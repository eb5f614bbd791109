#pragma once
// Looks at a campaign before its end that keep the level: bounds of group-sequential tests by the
// recursion of Armitage, McPherson and Rowe (1969) over independent increments.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {
inline constexpr std::size_t kMostLooks = 50;

// Bounds of the standardized statistic at one look: beyond either the test stops.  A bound that is
// missing is not there.
struct LookBounds {
  std::optional<double> low, high;
};
// How probable it is to stop at each look, at which bound.
struct LookChance {
  double low = 0, high = 0;
};
// `fractions`: of the information at each look, ascending in (0, 1].  `drift`: the expected
// statistic at full information; 0 under "no difference".
std::vector<LookChance> look_chances(std::span<const double> fractions,
                                     std::span<const LookBounds> bounds, double drift = 0);

// How much of the level may be spent until each fraction of the information (Lan & DeMets 1983).
enum class Spending : std::uint8_t { kObrienFleming, kPocock };
// On one side: `alpha` is the level of that side.
double spent(Spending rule, double fraction, double alpha);
// Two-sided symmetric bounds that spend alpha / 2 on each side.  A look that adds no information
// gets no bound.  Requires: fractions ascending in (0, 1], at most kMostLooks.
std::vector<std::optional<double>> lan_demets_bounds(std::span<const double> fractions,
                                                     Spending rule = Spending::kObrienFleming,
                                                     double alpha = 0.05);
}  // namespace proctor
