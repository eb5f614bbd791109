#pragma once
// What one success costs: total cost over total successes, all attempts paid.  Pure; thread-safe.
#include <optional>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

// One task: its cost and its successes, both over all its runs.
struct CostOfTask {
  double cost = 0;
  double successes = 0;
};

struct CostPerSuccess {
  // The ratio with Fieller's interval, Student's t over tasks.  kNoSuccess: no ratio; kUnbounded:
  // the set is no interval, and `low` is its finite lower end where there is one.
  Estimate estimate;
  double g = 0;  // how far from exact the delta method is; from 1 on Fieller's set is unbounded
  std::optional<double> low;
  std::optional<double> delta_error;  // standard error by the delta method
  std::optional<Interval> delta, log_delta;
};
CostPerSuccess cost_per_success(std::span<const CostOfTask> tasks, double alpha = 0.05);

}  // namespace proctor
