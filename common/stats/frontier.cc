#include "common/stats/frontier.h"

#include <algorithm>

#include "common/base/result.h"

namespace proctor {
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
