#pragma once
// The small campaign that is played: two tasks, one method, three replicates.
#include <string>

#include "common/base/files.h"

#include "common/contract/campaign.h"
#include "common/plan/plan.h"

namespace proctor::liar {

inline constexpr const char* kCampaignId = "liar-0123456789ab";
inline constexpr const char* kLiarName = "liar";

struct Played {
  Campaign campaign;
  Plan plan;
};
// Writes the campaign's files.  `tight`: its money ends before its runs do, if they are repeated.
Status write_campaign(const fs::path& folder, bool tight);
Result<Played> read_campaign(const fs::path& folder);

}  // namespace proctor::liar
