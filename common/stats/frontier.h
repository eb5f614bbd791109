#pragma once
// Which methods no other one beats in cost and success together.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace proctor {

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
