#pragma once
// The runs of `proctor screen`: the contracts as they are, with no methods but noop (the snapshot)
// and reference, in two campaigns of their own below .proctor/screen, alone and under load.
#include <optional>
#include <string>
#include <vector>

#include "common/pilot/screen.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// `arm`: kArmAlone or kArmLoad.
StateFolder screen_folder(const fs::path& campaign, const std::string& arm);
// `usd`: what all of it may cost; nothing: no limit.  The same arm of the same contracts is the
// same campaign.
Result<FrozenCampaign> screen_frozen(const Campaign& campaign,
                                     const std::vector<const Contract*>& tasks,
                                     std::uint32_t repeats, std::optional<MicroUsd> usd,
                                     StateFolder folder);

// The states that a contract is screened in, with nothing counted yet.
std::vector<ScreenState> states_of(const Contract& contract);
// Counts what one arm came to: runs, their checks, and those tests that may decide them.
void count_arm(const FrozenCampaign& frozen, const CampaignReport& report, const Contract& contract,
               const std::string& arm, std::vector<ScreenState>& states);
// An arm that was not run.
void lose_arm(const std::string& arm, std::uint32_t repeats, const std::string& why,
              std::vector<ScreenState>& states);

}  // namespace proctor::cli
