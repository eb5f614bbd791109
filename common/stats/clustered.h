#pragma once
// A success rate when several runs share a task (STATISTICS E1; R176; Liang & Zeger 1986,
// Cameron & Miller 2015): tasks are the units, runs of one task are not independent.
// Pure; thread-safe; nothing where nothing is defined, never 0.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {
// One task: how many runs, how many of them successes.
struct Cluster {
  std::uint64_t runs = 0;
  std::uint64_t successes = 0;
};

// Every task counts equally, or every run.
enum class Weighing : std::uint8_t { kTasks, kRuns };

// Mean of the tasks' own rates, every task counting equally: the estimand of R176.
struct ClusteredRate {
  double mean = 0;
  std::uint64_t tasks = 0;               // that had a run
  std::optional<double> standard_error;  // nothing below two tasks
  // Student's t with tasks - 1 degrees, not clamped to [0, 1].  When all tasks have the same rate
  // the error is 0 and says nothing: then it is the Wilson interval of that rate over the tasks.
  std::optional<Interval> interval;
};
std::optional<ClusteredRate> mean_of_task_means(std::span<const Cluster> tasks,
                                                double alpha = 0.05);

// All successes over all runs, with cluster-robust standard errors (Bell & McCaffrey 2002).
struct RatioRate {
  double ratio = 0;
  std::optional<double> cr1, cr2;  // nothing below two tasks with runs
  // The degrees of CR2, under working independence, in closed form for an intercept.
  std::optional<double> df;
  // Ratio and CR2 with Student's t at df, not clamped.  nullopt where cr2 is 0 or missing.
  std::optional<Interval> interval;
};
std::optional<RatioRate> ratio_rate(std::span<const Cluster> tasks, double alpha = 0.05);

// Intervals of a mean of task means that hold near 0 and 1, where Student's t covers too little:
// the tasks' own spread says how many independent trials the data are worth (Korn & Graubard 1998).
struct NearEnds {
  // Trials with this rate and this standard error; nothing where all tasks have the same rate.
  std::optional<double> effective_n;
  Interval wilson;         // at effective_n; over the tasks where that is missing
  Interval korn_graubard;  // exact, at effective_n less what its estimate costs; as wilson likewise
};
// The spread of any rate with a standard error (0: none can be had) of so many degrees of freedom,
// over so many tasks and runs.
struct RateSpread {
  double rate = 0, error = 0, df = 0, tasks = 0, runs = 0;
};
NearEnds ends_of(const RateSpread& spread, double alpha);
// nullopt below one task with runs.
std::optional<NearEnds> near_ends(std::span<const Cluster> tasks, double alpha = 0.05);

// A mean over tasks where tasks come in groups that are alike, such as those of one repository: the
// groups are the units (Bell & McCaffrey 2002).
struct GroupedMean {
  std::uint64_t groups = 0;
  // Every value counts equally; the error is CR2 over groups, Student's t at its own degrees.
  // kNothing; kOneTask: one group only; kNoVariance: its error is 0.
  Estimate estimate;
  std::optional<double> p;  // two-sided, of a mean of 0
};
// `group`: of each value.  Requires: as many of both.
GroupedMean grouped_mean(std::span<const double> values, std::span<const std::uint32_t> group,
                         double alpha = 0.05);

// Intervals of all successes over all runs that hold near 0 and 1, as near_ends() has them of a
// mean of task means.

// By the ratio's CR2 error and its degrees of freedom.  Over the tasks where these do not differ,
// or no spread can be had.  Nothing: no task has a run.
std::optional<NearEnds> ratio_ends(std::span<const Cluster> tasks, double alpha = 0.05);

// One estimate over strata with registered weights (Cochran 1977): the weights say what the
// campaign speaks for, and are never renormalised in silence.

// The tasks' values (rates, or differences of two methods) of one stratum.
struct Stratum {
  double weight = 0;
  std::vector<double> values;
};

struct Stratified {
  // Sum of weight times mean, with Satterthwaite's degrees.  kNothing: a stratum with a weight has
  // no task, so there is no estimate; kOneTask: one has a single task, so there is no error.
  Estimate estimate;
  // Where the numbers of tasks per stratum were not fixed beforehand.
  std::optional<double> post_stratified_error;
};
// Requires: weights >= 0.  A stratum of weight 0 is left out.
Stratified stratified_mean(std::span<const Stratum> strata, double alpha = 0.05);

// How many equally weighted tasks the weights are worth (Kish 1965).
// Requires: weights >= 0, at least one of them > 0.
double effective_tasks(std::span<const double> task_weights);

// Where the variance is: between tasks or between runs of one task.

// Intraclass correlation of runs of one task by analysis of variance, and what it does to the error
// of a rate.  kTooFew: no task has two runs; kOneTask; kNoVariance: all runs came out alike.
struct IntraclassCorrelation {
  Estimate rho;  // its interval, Searle's, only where all tasks have as many runs
  std::optional<double> design_effect;  // 1 + (k0 - 1) rho: how much larger the variance is
};
IntraclassCorrelation intraclass_correlation(std::span<const Cluster> tasks, double alpha = 0.05);
}  // namespace proctor
