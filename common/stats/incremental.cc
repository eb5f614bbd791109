#include "common/stats/incremental.h"

#include <vector>

#include "common/stats/distributions.h"

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
  if (out.cost.value.value_or(0) <= 0 || out.success.value.value_or(0) <= 0) {
    out.ratio.estimate.why = tasks.empty() ? Why::kNotPaired : Why::kNotDefined;
    return out;
  }
  out.ratio = cost_per_success(difference, alpha);
  // A finite lower end speaks of costs that are not negative; a difference may be.
  out.ratio.low.reset();
  return out;
}

NetBenefit net_benefit(std::span<const CostPair> tasks, double value, double alpha) {
  std::vector<double> benefit;
  for (const CostPair& t : tasks)
    benefit.push_back(value * (t.a.successes - t.b.successes) - (t.a.cost - t.b.cost));
  NetBenefit out;
  out.estimate = mean_difference(benefit, alpha).estimate;
  if (const double se = out.estimate.standard_error.value_or(0); 0 < se)
    out.probability = normal_cdf(*out.estimate.value / se);
  return out;
}

}  // namespace proctor
