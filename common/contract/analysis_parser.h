#pragma once
// The section `analysis` of campaign.yaml.  Internal to the parsers of this room.
#include "common/contract/campaign.h"
#include "common/contract/fields.h"

namespace proctor {

// Requires: the methods of `out` are read.
void read_analysis(const Fields& campaign, Campaign& out);

}  // namespace proctor
