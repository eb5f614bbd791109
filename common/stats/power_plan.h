#pragma once
// Plans by their power: with a pilot's variance, with looks on the way, for a budget.
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/power.h"

namespace proctor {
// Looks at a campaign before its end that keep the level: bounds of group-sequential tests by the
// recursion of Armitage, McPherson and Rowe (1969) over independent increments.

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

// The variance of a later stage as an earlier one shows it, without a look at the difference:
// exchanging the two methods changes nothing here.
struct PilotVariance {
  std::uint64_t tasks = 0;            // with a run of both methods
  std::uint32_t runs = 0;             // of each method on each task
  double between = 0;                 // variance of task differences
  double within_a = 0, within_b = 0;  // mean variance between runs of a task
  double upper = 0;                   // of `between`, 80 % one-sided
  // The same upper limit had there been `other` runs per task and method.
  double upper_at(std::uint32_t other) const;
};
// nullopt: below two such tasks, unequal numbers of runs, or one run a task.
std::optional<PilotVariance> pilot_variance(std::span<const PairedTask> tasks,
                                            double confidence = 0.8);

// The smallest difference that a campaign's plan can show, with looks on the way, for a budget.
// Every variance from here on moves with the difference: two rates that lie apart vary otherwise
// than two alike.

inline constexpr std::uint64_t kMostTasksAsked = 1'000'000;

// The smallest d that p_b + d against p_b shows with this power, by the normal distribution; p_a of
// the design is not read.  nullopt: not even 1 - p_b does.  Requires: 2 <= tasks.
std::optional<double> smallest_difference(const Design& design, std::uint64_t tasks, double power);

// Below this correlation power falls as runs of a task are more alike; above it rises.
double turning_correlation(const Design& design);

// Looks after so many of `last` rounds, each of one run per task and method.
struct PlannedLooks {
  std::vector<std::uint32_t> after;  // ascending; the last one is the last round
  Spending spend = Spending::kObrienFleming;
  std::vector<double> fractions() const;
  std::vector<std::optional<double>> bounds(double alpha) const;
};
// The chance to stop for a difference at any look.  Bounds go by fractions of rounds, which hold
// the level whatever the variances are; the statistic moves by the true ones.  `bounds`: of the
// looks; `variances`: of one task's difference at each.
double sequential_power(std::span<const std::optional<double>> bounds,
                        std::span<const double> variances, double difference, std::uint64_t tasks);

// Amounts in millionths.
struct RunCosts {
  std::int64_t task = 0, a = 0, b = 0;
};
struct BudgetPoint {
  std::int64_t budget = 0, cost = 0;
  std::uint64_t tasks = 0;
  std::uint32_t runs = 0;
  double difference = 0;  // smallest, by the normal distribution
  double half_width = 0;  // of the interval of that difference, by Student's t
};
// At these numbers of tasks and runs; nothing: no difference is shown.
std::optional<BudgetPoint> plan_at(const Design& design, const RunCosts& costs, std::uint64_t tasks,
                                   std::uint32_t runs, double power);
// The best of 1 .. 20 runs a task for this budget; fewer runs where two are alike.  Requires: costs
// of 0 or more, at least one above it.  nullopt: two tasks cannot be paid, or show nothing.
std::optional<BudgetPoint> best_for_budget(const Design& design, const RunCosts& costs,
                                           std::int64_t budget, std::uint64_t tasks_max,
                                           double power);
}  // namespace proctor
