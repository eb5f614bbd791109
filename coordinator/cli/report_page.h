#pragma once
// From what is registered of a campaign to the facts on its page (coordinator/page/page.h).
#include "coordinator/cli/campaign_files.h"
#include "coordinator/page/page.h"

namespace proctor::cli {

PageFacts page_facts(const FrozenCampaign& frozen);

}  // namespace proctor::cli
