#pragma once
// Where the variance is: between tasks or between runs of one task.  Pure; thread-safe.
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {

// Intraclass correlation of runs of one task by analysis of variance, and what it does to the error
// of a rate.  kTooFew: no task has two runs; kOneTask; kNoVariance: all runs came out alike.
struct IntraclassCorrelation {
  Estimate rho;  // its interval, Searle's, only where all tasks have as many runs
  std::optional<double> fleiss_cuzick;  // the same by the formula for shares
  std::optional<double> design_effect;  // 1 + (k0 - 1) rho: how much larger the variance is
  double runs_per_task = 0;             // k0, of analysis of variance with unequal numbers
  double between = 0, within = 0;       // mean squares
};
IntraclassCorrelation intraclass_correlation(std::span<const Cluster> tasks, double alpha = 0.05);

}  // namespace proctor
