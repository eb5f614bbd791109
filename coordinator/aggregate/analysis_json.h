#pragma once
// The comparisons of a report for programs.  Private to the room.
#include <cstdint>

#include "common/stats/interval.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
struct Analysis;
struct Contrast;
struct Drift;
struct ReportDetails;
enum class JsonForm : std::uint8_t;
}  // namespace proctor

namespace proctor::aggregate {

Ordered analysis_json(const Analysis& analysis);
Ordered contrast_json(const Contrast& contrast);
Ordered estimate_json(const Estimate& estimate);
Ordered details_json(const ReportDetails& details, JsonForm form);
Ordered drift_json(const Drift& drift);

}  // namespace proctor::aggregate
