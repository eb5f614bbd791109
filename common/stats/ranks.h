#pragma once
// Ranks that the data allow, never a strict order.  Pure; thread-safe.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {

struct RankSet {
  std::size_t best = 1, worst = 1;
  friend bool operator==(const RankSet&, const RankSet&) = default;
};
// `differences`: simultaneous intervals of method i minus method j at [i * methods + j]; an entry
// that is missing separates nobody, the diagonal is not looked at.  A method's best rank is one
// more than the number of methods that are better, its worst the number of methods less those
// worse.
std::vector<RankSet> rank_sets(std::span<const std::optional<Interval>> differences,
                               std::size_t methods);

}  // namespace proctor
