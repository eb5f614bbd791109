#pragma once
// How many tasks show a difference, and how probably so many tasks show it, before money is spent.
// The observed effect is never put in: its power says nothing which the p-value did not say (Hoenig
// & Heisey 2001).  Pure; thread-safe.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace proctor {
// Assumptions about a paired comparison of two success rates.
struct Design {
  double p_a = 0.5, p_b = 0.4;  // success rates
  double icc = 0.5;             // how alike runs of one task are, within a method
  double correlation = 0.5;     // of the methods' rates over tasks
  double runs = 1;              // per task and method
  double alpha = 0.05;          // two-sided
};

// The variance of one task's difference.  Requires: rates in [0, 1], 0 <= icc <= 1, |correlation|
// <= 1, runs >= 1.
double variance_of_task_difference(const Design& design);

// By a known variance of one task's difference, whatever it came from.
double power_by_variance(double difference, double variance, std::uint64_t tasks, double alpha);
double power_by_variance_t(double difference, double variance, std::uint64_t tasks, double alpha);
// Not rounded.  Requires: the difference is not 0.
double tasks_by_variance(double difference, double variance, double alpha, double power);

double power_of(const Design& design, std::uint64_t tasks);
double power_of_t(const Design& design, std::uint64_t tasks);  // requires: 2 <= tasks

// Two methods on tasks of which a share is settled: each method solves such a task always or never.
// On the others both succeed by chance, run by run.  The model has exactly the rates, the
// likeness of runs and the correlation of a Design, and no distribution has to be guessed.

// Shares of the settled tasks: those that both methods solve, one of them alone, neither.
struct SettledShares {
  double both = 0, only_a = 0, only_b = 0, neither = 0;
};
// nullopt: no two methods with these rates can be that alike (or that unlike).
std::optional<SettledShares> settled_shares(const Design& design);
// The highest correlation that two success rates admit.  Requires: both in (0, 1).
double most_correlation(double p_a, double p_b);

inline constexpr std::uint32_t kMostExactRuns = 400;
// The chances of b more or fewer successes of method a than of method b on one task, from -runs at
// [0] to runs at [2 * runs].  Requires: settled_shares(design); whole runs, at most kMostExactRuns.
std::vector<double> difference_chances(const Design& design);

// Chances of one run of a task under each method: a alone succeeds, b alone.
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
  std::int64_t sum = 0;  // of differences of successes, over all campaigns
};
SimulatedPower simulate_power(const Design& design, std::uint64_t tasks, std::uint64_t campaigns,
                              const std::function<double()>& uniform);

// Whether whole differences with this sum and sum of squares are called a difference: |t| above
// `critical`; all alike and not 0 is beyond every t.
bool t_rejects(double sum, double squares, double tasks, double critical);

// Power without an approximation: every data set that a campaign can have, with its chance.

struct ExactPower {
  double power = 0;
  double total = 1;  // of all chances: how much rounding cost
};

// Sums that exact_power_t() would have to tell apart.
inline constexpr std::uint64_t kMostExactCells = std::uint64_t{1} << 24U;
std::uint64_t exact_cells(std::uint64_t tasks, std::uint32_t runs);
// The power of the paired t test over tasks, by the joint law of the sum of their differences and
// of its squares.  nullopt: more than kMostExactCells sums would have to be told apart.
// `chances`: of difference_chances().  Requires: 2 <= tasks.
std::optional<ExactPower> exact_power_t(std::span<const double> chances, std::uint64_t tasks,
                                        double alpha);

// Tasks for McNemar's test of one run a task (Connor 1987), not rounded.  Requires: the sides
// differ.
double mcnemar_tasks(const Discordance& d, double alpha, double power);
// Power of the exact test and of the mid-p test of so many tasks.
struct McNemarPower {
  double exact = 0, mid_p = 0;
};
McNemarPower mcnemar_power(const Discordance& d, std::uint64_t tasks, double alpha);

// Power of the test that a report's verdict follows: signs of the tasks' differences flipped.
// Exact: every data set that a campaign can have, with its chance.

// The smallest p that so many tasks can come to, both sides counted: all differ, and all one way.
double least_flip_p(std::uint64_t tasks);
// The fewest tasks whose smallest p is at most `level`.  Requires: 0 < level.
std::uint64_t fewest_flip_tasks(double level);

// Beyond so many sums of so many sorts of data sets it is not computed.
inline constexpr std::uint64_t kMostFlipSums = 2'000'000;
bool flip_power_is_short(std::uint64_t tasks, std::uint32_t runs);

// The chance of a p of at most `level`.  `chances`: of difference_chances().  nullopt: it would
// take too long.  Requires: 1 <= tasks.
std::optional<double> exact_power_flips(std::span<const double> chances, std::uint64_t tasks,
                                        double level);
}  // namespace proctor
