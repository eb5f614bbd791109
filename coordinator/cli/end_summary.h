#pragma once
// The last screen of `run` and `resume`: tasks by methods, what was asked, what to distrust, and
// what to type.  Everything else is in the report.
#include <string>

#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// Results to standard output, the rest to standard error.  `folder`: as the user named it.
void tell_end(const FrozenCampaign& frozen, const CampaignReport& report,
              const std::string& folder);

}  // namespace proctor::cli
