#include "common/stats/incremental.h"

#include <cmath>
#include <vector>

namespace proctor {

IncrementalCost incremental_cost(std::span<const CostPair> tasks, double alpha) {
  std::vector<double> cost, success;
  std::vector<CostOfTask> difference;
  for (const CostPair& t : tasks) {
    cost.push_back(t.a.cost - t.b.cost);
    success.push_back(t.a.successes - t.b.successes);
    difference.push_back({cost.back(), success.back()});
  }
  IncrementalCost out;
  out.cost = mean_difference(cost, alpha).estimate;
  out.success = mean_difference(success, alpha).estimate;
  // Rates that sum to the same are not equal to the last bit.
  constexpr double kNone = 1e-12;
  if (out.success.value && std::fabs(*out.success.value) < kNone) out.success.value = 0;
  if (out.cost.value.value_or(0) <= 0 || out.success.value.value_or(0) <= 0) {
    out.ratio.estimate.why = tasks.empty() ? Why::kNotPaired : Why::kNotDefined;
    return out;
  }
  out.ratio = cost_per_success(difference, alpha);
  // A finite lower end speaks of costs that are not negative; a difference may be.
  out.ratio.low.reset();
  return out;
}

}  // namespace proctor
