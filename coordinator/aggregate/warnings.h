#pragma once
// What a reader of a report has to know before any number, as far as its runs say it.  Pure.
#include <span>
#include <string>
#include <vector>

#include "coordinator/aggregate/report.h"

namespace proctor {

// One sentence for each method of which a recording answered calls of models: it shows nothing of
// what they cost, and may not be what a provider would say today.
std::vector<std::string> recording_warnings(std::span<const RunRecord> runs);

}  // namespace proctor
