#pragma once
// ServedCampaigns: which campaigns a worker of this home has served, and where, so that its next
// life finds what it has of each.
//   HOME/campaigns   "CAMPAIGN ADDRESS\n", the last one served last
// Builds before it wrote one campaign, in HOME/last-campaign; it is still read.  Blocking.
#include <string>
#include <vector>

#include "common/base/files.h"

namespace proctor {

struct ServedCampaign {
  std::string campaign, address;
  friend bool operator==(const ServedCampaign&, const ServedCampaign&) = default;
};

// The oldest first; empty: none that is known.
std::vector<ServedCampaign> served_campaigns(const fs::path& home);
// The newest now.
void remember_campaign(const fs::path& home, const ServedCampaign& served);

}  // namespace proctor
