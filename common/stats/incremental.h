#pragma once
// What one more success costs when method a replaces b.  Pure; thread-safe.
#include <span>

#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/ratio.h"

namespace proctor {

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

}  // namespace proctor
