#pragma once
// Differences between two methods.  The unit is the task: each task that both methods tried gives
// one pair, and runs of one task are never counted as independent.  Where `groups` are given, one
// of each task, tasks of one group are alike and the groups are the units (clustered.h).  Pure;
// thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {
// One task under both methods.  Requires everywhere: runs > 0 on both sides.
struct PairedTask {
  Cluster a, b;
};

// Mean of the tasks' differences a - b, with Student's t over tasks.  kNotPaired: no task;
// kOneTask, kOneGroup: value alone; kNoVariance: all differences are equal, standard error 0, no
// interval.
struct Difference {
  Estimate estimate;
  std::optional<double> p;  // two-sided t-test of no difference
};
Difference mean_difference(std::span<const double> differences, double alpha = 0.05,
                           std::span<const std::uint32_t> groups = {});
// Rate of a less that of b, rounded once: tasks that differ alike have one value to the last bit.
double rate_difference(const PairedTask& task);
// A value of each task: their mean is the difference a - b, and their spread its error.  By kTasks
// it is the difference of the task's rates; by kRuns (all successes over all runs of each) that of
// the ratios, linearized.
std::vector<double> task_values(std::span<const PairedTask> tasks,
                                Weighing weighing = Weighing::kTasks);
Difference paired_difference(std::span<const PairedTask> tasks, double alpha = 0.05,
                             Weighing weighing = Weighing::kTasks,
                             std::span<const std::uint32_t> groups = {});

// Two one-sided t-tests at +-margin: the p of "the difference lies within", and the 1 - 2 alpha
// interval whose lying inside is the same decision (Schuirmann 1987).  nullopt without a variance.
struct Equivalence {
  double p_equivalent = 1;
  double p_non_inferior = 1;  // of "a is not worse than b by the margin"
  Interval interval;
};
std::optional<Equivalence> equivalence(std::span<const double> differences, double margin,
                                       double alpha = 0.05,
                                       std::span<const std::uint32_t> groups = {});

// One run per task: how many pairs of outcomes there are of each kind.
struct PairCounts {
  std::uint64_t both = 0, only_a = 0, only_b = 0, neither = 0;
};
// McNemar's exact test, two-sided, of the discordant pairs; 1 where no task separates the methods.
double mcnemar_exact(const PairCounts& n);

// The sign-flip permutation test of paired differences, exact for campaigns of usual size.  Under
// "no difference" the sign of each task's difference is free, so the distribution of their sum is a
// convolution of two-point steps on a lattice.

// Tasks times the sum of |differences|: beyond it the normal approximation answers, labelled so.
inline constexpr std::uint64_t kSignFlipSteps = std::uint64_t{1} << 27;

// `differences`: of the tasks, all multiplied by one integer so that they are whole.  The statistic
// is their sum; p counts sums at least as far from 0, two-sided.  Zeros change nothing.
Significance sign_flip(std::span<const std::int64_t> differences);

// Where the same differences are asked about with different others, over and over: their sums are
// convolved once, and those of the others each time.
class SignFlips {
 public:
  void add(std::span<const std::int64_t> differences);
  // As sign_flip() of these differences and the others together.
  Significance with(std::span<const std::int64_t> others) const;

 private:
  std::vector<double> chance_{1.0};    // of each sum of those taken as plus
  std::vector<double> at_least_{1.0};  // of that sum or a larger one
  std::int64_t seen_ = 0;
  std::uint64_t reach_ = 0, steps_ = 0;
  double squares_ = 0;
  bool is_exact_ = true;  // no sum was left out because there are too many
};

// Rates and differences where outcomes are unknown.

// The rates that the data allow when some outcomes are not known: from all of them failures to all
// successes (Manski 2003), and the interval that covers the true rate wherever it lies between
// (Imbens & Manski 2004).

// One task: its runs, those that succeeded, and those whose outcome is not known.
struct PartlyKnown {
  std::uint64_t runs = 0, successes = 0, unknown = 0;
};

struct Bounds {
  Interval identified;  // the rate if every unknown outcome were a failure, and a success
  // Covers the rate with 1 - alpha.  nullopt with one task only.
  std::optional<Interval> interval;
};
// Over tasks with runs.  nullopt without one.  Requires: successes + unknown <= runs.
std::optional<Bounds> bounds_of_rate(std::span<const PartlyKnown> tasks, double alpha = 0.05,
                                     Weighing weighing = Weighing::kTasks);

struct PartlyKnownPair {
  PartlyKnown a, b;
};
// Bounds of a - b over tasks that both tried; `groups` as in paired.h.  Requires: runs > 0 on both
// sides.
std::optional<Bounds> bounds_of_difference(std::span<const PartlyKnownPair> tasks,
                                           double alpha = 0.05,
                                           Weighing weighing = Weighing::kTasks,
                                           std::span<const std::uint32_t> groups = {});
// The hull of both, where either set of tasks may be the one that is meant.
Bounds wider(const Bounds& x, const Bounds& y);
}  // namespace proctor
