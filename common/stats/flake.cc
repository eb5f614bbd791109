#include "common/stats/flake.h"

#include <cmath>
#include <vector>

#include "common/base/assert.h"
#include "common/stats/binomial.h"
#include "common/stats/paired.h"

namespace proctor {

double flake_upper_bound(std::uint64_t repeats, double alpha) {
  PROCTOR_ASSERT(0 < repeats && 0 < alpha && alpha < 1);
  return -std::expm1(std::log(alpha) / static_cast<double>(repeats));
}

double chance_to_see(double rate, std::uint64_t repeats) {
  PROCTOR_ASSERT(0 <= rate && rate <= 1);
  if (1 <= rate) return repeats == 0 ? 0 : 1;
  return -std::expm1(static_cast<double>(repeats) * std::log1p(-rate));
}

AgentFlakiness agent_flakiness(std::span<const Cluster> tasks, double alpha) {
  std::vector<double> disagreement;
  std::uint64_t mixed = 0;
  for (const Cluster& t : tasks) {
    PROCTOR_ASSERT(t.successes <= t.runs);
    if (t.runs < 2) continue;
    const double k = static_cast<double>(t.runs), c = static_cast<double>(t.successes);
    disagreement.push_back(2 * c * (k - c) / (k * (k - 1)));
    mixed += 0 < t.successes && t.successes < t.runs ? 1 : 0;
  }
  AgentFlakiness out;
  out.disagreement = mean_difference(disagreement, alpha).estimate;
  if (disagreement.empty()) {
    out.disagreement.why = out.mixed.why = Why::kTooFew;
    return out;
  }
  out.mixed.value = static_cast<double>(mixed) / static_cast<double>(disagreement.size());
  out.mixed.interval = wilson(mixed, disagreement.size(), alpha);
  return out;
}

}  // namespace proctor
