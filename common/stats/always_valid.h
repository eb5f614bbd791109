#pragma once
// Tests that hold at every moment, so that one may look whenever one likes (Waudby-Smith & Ramdas
// 2024).  Over tasks in the plan's order, each a fresh draw; never over runs: a second run of a
// task is none, and the product would be no martingale.  Pure; thread-safe.
#include <cstdint>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

struct AlwaysValid {
  double up = 1, down = 1;   // wealth of betting that the mean is above 0, below 0
  double evidence = 0.5;     // the larger one's half: as an e-value, now
  double p = 1;              // by the most evidence there ever was
  Interval now{-1, 1};       // what this moment's wealth does not rule out of the mean difference
  Interval sequence{-1, 1};  // the same intersected over the past: what holds at every moment
};
// `differences`: of task means, each in [-1, 1].
AlwaysValid always_valid(std::span<const double> differences, double alpha = 0.05);

// Of pairs of one run each that disagree, b of them in favour of the first method: an e-value of
// "either is as probable".  Requires: b <= pairs.
double mcnemar_evidence(std::uint64_t pairs, std::uint64_t b);

}  // namespace proctor
