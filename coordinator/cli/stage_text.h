#pragma once
// How many runs a campaign plans, and each of its stages, for check and plan.
#include <string>

#include "common/contract/campaign.h"

namespace proctor::cli {

// "3 tasks x 2 methods x 4 replicates", and what several stages make of it.
std::string size_text(const Campaign& campaign);
// A line for each stage; empty where there is one, which has all of it.
std::string stages_text(const Campaign& campaign);

}  // namespace proctor::cli
