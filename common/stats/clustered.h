#pragma once
// A success rate when several runs share a task (STATISTICS E1; R176; Liang & Zeger 1986,
// Cameron & Miller 2015): tasks are the units, runs of one task are not independent.
// Pure; thread-safe; nothing where nothing is defined, never 0.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/binomial.h"

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
  double cr0 = 0;
  std::optional<double> cr1, cr2, cr3;  // nothing below two tasks with runs
  // Of CR2, under working independence, in closed form for an intercept.
  std::optional<double> df;
  // Ratio and CR2 with Student's t at df, not clamped.  Nothing where cr2 is 0 or missing.
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
// Of any rate with a standard error (0: none can be had) of so many degrees of freedom, over so
// many tasks and runs.
struct RateSpread {
  double rate = 0, error = 0, df = 0, tasks = 0, runs = 0;
};
NearEnds ends_of(const RateSpread& spread, double alpha);
// Nothing below one task with runs.
std::optional<NearEnds> near_ends(std::span<const Cluster> tasks, double alpha = 0.05);

}  // namespace proctor
