#pragma once
// The comparisons of a report for programs.  Private to the room.
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
struct Analysis;
struct Contrast;
}  // namespace proctor

namespace proctor::aggregate {

Ordered analysis_json(const Analysis& analysis);
Ordered contrast_json(const Contrast& contrast);

}  // namespace proctor::aggregate
