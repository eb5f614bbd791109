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

// The estimate once a look has stopped a comparison.  The plain one is too far from 0, for it was
// stopped because it was far: these are adjusted by the stagewise order (Armitage 1957; Fairbanks &
// Madsen 1982).
struct StoppedEstimate {
  double p = 1;         // two-sided
  double estimate = 0;  // median unbiased
  Interval interval;    // 1 - alpha
};
// Stopped at the last of `fractions`, with this difference and standard error; `bounds` of the
// looks before, one fewer.  Requires: 0 < standard_error.
StoppedEstimate stopped_estimate(std::span<const double> fractions,
                                 std::span<const std::optional<double>> bounds, double difference,
                                 double standard_error, double alpha = 0.05);

// The chance to pass the last bound, given the statistic at this fraction of the information, if
// the statistic at the end were expected to be `drift`.  Requires: 0 < fraction < 1.
double conditional_power(double z, double fraction, double drift, double last_bound);

// A bound of normal statistics as one of Student's t, of the same nominal level.
double bound_by_t(double bound, double df);
}  // namespace proctor
