#pragma once
// What a campaign's plan of analysis comes to, as far as its methods and its number of tasks say:
// for who can still change it.  Pure; thread-safe.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor::cli {

// The pairs a - b that the report will compare.
std::vector<std::pair<std::string, std::string>> comparisons_of(const Campaign& campaign);

// How many tasks, or repositories where they are the unit of its comparisons.
std::uint64_t units_of(const Campaign& campaign);

// What will be compared, and a note on each thing that the plan leaves out or can never show: lines
// to print, each with its end.  Nothing of a campaign of one method.
std::string analysis_text(const Campaign& campaign);

}  // namespace proctor::cli
