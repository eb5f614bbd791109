#pragma once
// Looks at a campaign before its end that keep the level: bounds of group-sequential tests by the
// recursion of Armitage, McPherson and Rowe (1969) over independent increments.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
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

// Bounds of two-sided tests with equally spaced looks: O'Brien and Fleming's fall with the square
// root of the information, Pocock's are all alike.  Requires: 1 <= looks <= kMostLooks.
std::vector<double> obrien_fleming_bounds(std::size_t looks, double alpha = 0.05);
std::vector<double> pocock_bounds(std::size_t looks, double alpha = 0.05);

// How much of the level may be spent until each fraction of the information (Lan & DeMets 1983).
enum class Spending : std::uint8_t { kObrienFleming, kPocock };
// Of one side: `alpha` is the level of that side.
double spent(Spending rule, double fraction, double alpha);
// Two-sided symmetric bounds that spend alpha / 2 on each side.  A look that adds no information
// gets no bound.  Requires: fractions ascending in (0, 1], at most kMostLooks.
std::vector<std::optional<double>> lan_demets_bounds(std::span<const double> fractions,
                                                     Spending rule = Spending::kObrienFleming,
                                                     double alpha = 0.05);

// What looks at these fractions cost a test with this power, and what they save: how many more
// tasks than without looks, and the information it ends with on average, of a test without looks.
struct SequentialCost {
  double drift = 0;         // expected statistic at the end
  double inflation = 1;     // of the number of tasks
  double under_effect = 1;  // expected information
  double under_none = 1;
};
// Requires: fractions end with 1.
SequentialCost sequential_cost(std::span<const double> fractions, Spending rule, double alpha,
                               double power);

// What a look decides: `estimate` -+ bound x standard error excludes 0, or lies within the minimum
// effect, or neither.
enum class LookDecision : std::uint8_t { kContinue, kDifference, kNoneThatMatters };
struct Look {
  Interval repeated;
  LookDecision decision = LookDecision::kContinue;
};
Look look_at(double estimate, double standard_error, double bound, double min_effect);

}  // namespace proctor
