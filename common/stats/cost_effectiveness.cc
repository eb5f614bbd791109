#include "common/stats/cost_effectiveness.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
CostPerSuccess cost_per_success(std::span<const CostOfTask> tasks, double alpha) {
  CostPerSuccess out;
  std::vector<double> costs, successes;
  double cost = 0, success = 0;
  for (const CostOfTask& t : tasks) {
    costs.push_back(t.cost);
    successes.push_back(t.successes);
    cost += t.cost;
    success += t.successes;
  }
  if (tasks.empty() || !(0 < success)) {
    out.estimate.why = tasks.empty() ? Why::kNothing : Why::kNoSuccess;
    return out;
  }
  const double ratio = cost / success;
  out.estimate.value = ratio;
  if (tasks.size() < 2) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  const double n = static_cast<double>(tasks.size()), t = t_quantile_two_sided(alpha, n - 1);
  const double mean_c = cost / n, mean_s = success / n;
  const double var_c = variance_of(costs) / n, var_s = variance_of(successes) / n;
  const double covariance = covariance_of(costs, successes) / n;

  // Ratios r with (mean_c - r mean_s)^2 <= t^2 var(c - r s): a r^2 + b r + d <= 0.
  const double a = mean_s * mean_s - t * t * var_s;
  const double b = -2 * (mean_c * mean_s - t * t * covariance);
  const double d = mean_c * mean_c - t * t * var_c;
  const double root = b * b - 4 * a * d;
  out.estimate.df = n - 1;
  if (0 < a && 0 <= root) {
    out.estimate.interval =
        Interval{(-b - std::sqrt(root)) / (2 * a), (-b + std::sqrt(root)) / (2 * a)};
    return out;
  }
  out.estimate.why = Why::kUnbounded;
  // The set is the complement of the interval between the roots.  It holds the ratio itself: above
  // the larger root that one bounds it from below, and below the smaller one nothing above 0 does.
  if (a < 0 && 0 < root) {
    const double end = (-b - std::sqrt(root)) / (2 * a);
    if (0 < end && end <= ratio) out.low = end;
  }
  return out;
}

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

namespace {
__extension__ typedef __int128 Wide;

bool dominates(const CostQuality& a, const CostQuality& b) {
  return !(b.cost < a.cost) && !(a.success < b.success) &&
         (a.cost < b.cost || b.success < a.success);
}
}  // namespace

bool operator<(const Quotient& x, const Quotient& y) {
  return Wide{x.part} * y.whole < Wide{y.part} * x.whole;
}

std::vector<bool> frontier(std::span<const CostQuality> methods) {
  std::vector<bool> out;
  for (const CostQuality& m : methods)
    out.push_back(std::ranges::none_of(
        methods, [&](const CostQuality& other) { return dominates(other, m); }));
  return out;
}

std::vector<double> frontier_shares(std::span<const CostQuality> replicates, std::size_t methods) {
  PROCTOR_ASSERT(0 < methods && !replicates.empty() && replicates.size() % methods == 0);
  std::vector<double> out(methods, 0.0);
  for (std::size_t b = 0; b < replicates.size(); b += methods) {
    const std::vector<bool> on = frontier(replicates.subspan(b, methods));
    for (std::size_t m = 0; m < methods; ++m) out[m] += on[m] ? 1 : 0;
  }
  for (double& share : out) share /= static_cast<double>(replicates.size() / methods);
  return out;
}
}  // namespace proctor
