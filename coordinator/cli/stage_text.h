#pragma once
// How many runs a campaign plans, and each of its stages, for check and plan.
#include <string>

#include "common/contract/campaign.h"

namespace proctor::cli {

// "3 tasks x 2 methods x 4 replicates", and what several stages make of it.
std::string size_text(const Campaign& campaign);
// A line for each stage, and one for what opens and closes it; empty where there is one stage,
// which has all of it and asks for nothing.
std::string stages_text(const Campaign& campaign);

}  // namespace proctor::cli
