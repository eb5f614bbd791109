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

// All successes over all runs, with the CR0 and CR1 standard errors.
struct RatioRate {
  double ratio = 0;
  double cr0 = 0;
  std::optional<double> cr1;  // nothing below two tasks
};
std::optional<RatioRate> ratio_rate(std::span<const Cluster> tasks);

}  // namespace proctor
