#include "common/stats/ranks.h"

#include "common/base/result.h"

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

}  // namespace proctor
