#include "common/stats/ranks.h"

#include <algorithm>

#include "common/base/assert.h"

namespace proctor {

std::vector<RankSet> rank_sets(std::span<const std::optional<Interval>> differences,
                               std::size_t methods) {
  PROCTOR_ASSERT(differences.size() == methods * methods);
  std::vector<RankSet> out;
  for (std::size_t i = 0; i < methods; ++i) {
    RankSet ranks{1, methods};
    for (std::size_t j = 0; j < methods; ++j) {
      const std::optional<Interval>& d = differences[i * methods + j];
      if (i == j || !d) continue;
      if (d->high < 0) ++ranks.best;
      if (0 < d->low) --ranks.worst;
    }
    out.push_back(ranks);
  }
  return out;
}

std::vector<double> best_shares(std::span<const double> replicates, std::size_t methods) {
  PROCTOR_ASSERT(0 < methods && !replicates.empty() && replicates.size() % methods == 0);
  std::vector<double> out(methods, 0.0);
  for (std::size_t b = 0; b < replicates.size(); b += methods) {
    const auto values = replicates.subspan(b, methods);
    const double best = *std::ranges::max_element(values);
    const double ties = static_cast<double>(std::ranges::count(values, best));
    for (std::size_t m = 0; m < methods; ++m) out[m] += values[m] == best ? 1 / ties : 0;
  }
  for (double& share : out) share /= static_cast<double>(replicates.size() / methods);
  return out;
}

}  // namespace proctor
