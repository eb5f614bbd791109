#pragma once
// What a campaign's plan of analysis comes to, as far as its methods and its number of tasks say:
// for who can still change it.  Pure; thread-safe.
#include <string>
#include <utility>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor::cli {

// The pairs a - b that the report will compare.
std::vector<std::pair<std::string, std::string>> comparisons_of(const Campaign& campaign);

// "compared will be: strong - noop, weak - noop (...)"; empty: there is one method.
std::string comparisons_sentence(const Campaign& campaign);
// Sentences on what the plan leaves out, and on what it can never show.
std::vector<std::string> analysis_notes(const Campaign& campaign);

}  // namespace proctor::cli
