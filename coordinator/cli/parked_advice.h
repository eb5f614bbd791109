#pragma once
// What to type so that runs go on that are parked.
#include <string>
#include <vector>

#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// Of those among `runs` that wait for money: a line for each envelope that is short, with the raise
// that lets all start that are parked there.  Empty: none of them does.
Result<std::string> raises_for(const std::string& folder, const FrozenCampaign& frozen,
                               const std::vector<RunId>& runs);

// For a copy that lies beside the campaign.
std::string copy_command(const std::string& folder);

// Of a run whose task or method is parked because it is broken: whoever is at fault, the ways out.
enum class Broken { kTask, kMethod };
std::string mends_for(const std::string& folder, const std::string& run, Broken what);

}  // namespace proctor::cli
