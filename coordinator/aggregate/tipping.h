#pragma once
// How many outcomes that nobody knows would turn a verdict.  Private to the room.
#include <cstddef>
#include <span>

#include "coordinator/aggregate/analysis.h"

namespace proctor::aggregate {

// The p of all contrasts that are adjusted together, and which of them this one has.
struct Family {
  std::span<const double> p;
  std::size_t at = 0;
};

// What else is known of the other contrasts stays as it is.  Requires: columns of equal length;
// `verdict` is what they show at the family's adjustment.
Tipping tipping_of(std::span<const TaskCell> a, std::span<const TaskCell> b,
                   const AnalysisPlan& plan, const Family& family, ContrastVerdict verdict);

}  // namespace proctor::aggregate
