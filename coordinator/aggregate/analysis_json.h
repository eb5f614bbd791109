#pragma once
// The comparisons of a report for programs.  Private to the room.
#include <cstdint>
#include <vector>

#include "common/stats/interval.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
struct Analysis;
struct Contrast;
struct Drift;
struct PriceContrast;
struct ReportDetails;
enum class JsonForm : std::uint8_t;
}  // namespace proctor

namespace proctor::aggregate {

Ordered analysis_json(const Analysis& analysis);
Ordered contrast_json(const Contrast& contrast);
Ordered estimate_json(const Estimate& estimate);
Ordered details_json(const ReportDetails& details, JsonForm form);
Ordered drift_json(const Drift& drift);
Ordered price_contrasts_json(const std::vector<PriceContrast>& contrasts);

}  // namespace proctor::aggregate
