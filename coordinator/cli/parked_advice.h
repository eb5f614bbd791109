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

// The command that goes on with the campaign, as it has to be typed: with a place for the file of
// models where a method asks one, which no journal remembers.
std::string resume_command(const std::string& folder, const Campaign& campaign);

// Of a run whose task or method is parked because it is broken: whoever is at fault, the ways out.
// `go_on` is the command that goes on then.
enum class Broken { kTask, kMethod };
std::string mends_for(const std::string& folder, const std::string& run, Broken what,
                      const std::string& go_on);

}  // namespace proctor::cli
