#pragma once
// How many outcomes that nobody knows would turn a verdict.  Private to the room.
#include <cstddef>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/family.h"

namespace proctor::aggregate {

// Of contrast `at` of the family; what is known of the others stays as it is.  Requires: columns of
// equal length; `verdict` is what they show at the family's adjustment.
Tipping tipping_of(const Sides& sides, const AnalysisPlan& plan, const Family& family,
                   std::size_t at, ContrastVerdict verdict);

}  // namespace proctor::aggregate
