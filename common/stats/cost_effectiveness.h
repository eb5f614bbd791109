#pragma once
// Cost per success, cost of one more success, and the frontier of both.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/paired.h"

namespace proctor {
// The cost of one success: total cost over total successes, all attempts paid.

// One task: its cost and its successes, both over all its runs.
struct CostOfTask {
  double cost = 0;
  double successes = 0;
};

struct CostPerSuccess {
  // The ratio with Fieller's interval, Student's t over tasks.  kNoSuccess: no ratio; kUnbounded:
  // the set is no interval, and `low` is its finite lower end where there is one.
  Estimate estimate;
  std::optional<double> low;
};
CostPerSuccess cost_per_success(std::span<const CostOfTask> tasks, double alpha = 0.05);

// The cost of one more success when method a replaces b.

// One task under both methods, over equally many runs.
struct CostPair {
  CostOfTask a, b;
};

struct IncrementalCost {
  Estimate cost, success;  // mean differences a - b over tasks
  // Cost over success with Fieller's interval: only where a costs more and solves more; elsewhere
  // one method has both, and a ratio would hide which (kNotDefined).
  CostPerSuccess ratio;
};
IncrementalCost incremental_cost(std::span<const CostPair> tasks, double alpha = 0.05);

// Which methods no other one beats in cost and success together.

// A quotient that is compared exactly, so that ties are ties.  Requires: 0 < whole.
struct Quotient {
  std::int64_t part = 0, whole = 1;
  friend bool operator<(const Quotient& x, const Quotient& y);
};

// In units that all methods of a comparison share.
struct CostQuality {
  Quotient cost;     // of one run
  Quotient success;  // share of runs
};

// A method is dominated if another costs at most as much and succeeds at least as often, one of
// them strictly.  Equal methods stay together.
std::vector<bool> frontier(std::span<const CostQuality> methods);

// In which share of the replicates each method is on the frontier.  `replicates`: of method m in
// replicate b at [b * methods + m].  Requires: at least one replicate.
std::vector<double> frontier_shares(std::span<const CostQuality> replicates, std::size_t methods);
}  // namespace proctor
