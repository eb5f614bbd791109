#pragma once
// What `run` and `resume` say last, behind the report: tasks that are broken, and why runs came to
// no verdict, with what to type.
#include <string>

#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// To standard error; nothing where there is nothing to say.  `folder`: as the user named it.
void tell_end(const FrozenCampaign& frozen, const CampaignReport& report,
              const std::string& folder);

}  // namespace proctor::cli
