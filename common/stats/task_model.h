#pragma once
// Two methods on tasks of which a share is settled: each method solves such a task always or never.
// On the others both succeed by chance, run by run.  The model has exactly the rates, the
// likeness of runs and the correlation of a Design, and no distribution has to be guessed.  Pure;
// thread-safe.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/stats/power.h"

namespace proctor {

// Of the settled tasks: those that both methods solve, one of them alone, neither.
struct SettledShares {
  double both = 0, only_a = 0, only_b = 0, neither = 0;
};
// Nothing: no two methods with these rates can be that alike (or that unlike).
std::optional<SettledShares> settled_shares(const Design& design);
// The highest correlation that two success rates admit.  Requires: both in (0, 1).
double most_correlation(double p_a, double p_b);

// The chances of b more or fewer successes of method a than of method b on one task, from -runs at
// [0] to runs at [2 * runs].  Requires: settled_shares(design); whole runs, at most kMostExactRuns.
inline constexpr std::uint32_t kMostExactRuns = 400;
std::vector<double> difference_chances(const Design& design);

// What one run of a task under each method shows: a alone succeeds, b alone.
struct Discordance {
  double only_a = 0, only_b = 0;
  double sum() const { return only_a + only_b; }
};
Discordance discordance(const Design& design);

// Campaigns drawn from the model, and how many of them a paired t test would call a difference.
// `uniform` gives numbers in [0, 1): one a task, for a settled one another that picks its kind,
// else for each run first method a's and then b's.
struct SimulatedPower {
  std::uint64_t rejected = 0;
  std::int64_t first_sum = 0, first_squares = 0;  // of differences of successes, first campaign
  std::int64_t sum = 0;                           // of them, over all campaigns
};
SimulatedPower simulate_power(const Design& design, std::uint64_t tasks, std::uint64_t campaigns,
                              const std::function<double()>& uniform);

// Whether whole differences with this sum and sum of squares are called a difference: |t| above
// `critical`; all alike and not 0 is beyond every t.
bool t_rejects(double sum, double squares, double tasks, double critical);

}  // namespace proctor
