#pragma once
// The mapping `budget` of campaign.yaml: envelopes, alert levels and the dominance rule.  Reports
// what is wrong with each value; what binds them to the rest is checked later (cross_rules.h,
// campaign_rules.cc).  Internal to the parsers of this room.
#include "common/contract/campaign.h"
#include "common/contract/fields.h"

namespace proctor {

void read_budget(const Fields& campaign, Campaign& out);

}  // namespace proctor
