#pragma once
// The section `breakers` of a campaign, which its methods with a gateway carry.  Pure; any thread.
// Internal to this room.
#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/fields.h"

namespace proctor {

// "on", "off", or a mapping of breakers to "off" or their parameters: those that it does not name
// are as `on` has them.
Breakers read_breakers(const Node& node, const std::string& path, Problems& problems);
// Names every kind, so that it reads back as itself.
Json breakers_json(const Breakers& breakers);

// Gives the campaign's breakers to its methods, which carry them to workers.
void spread_breakers(const Fields& campaign, Campaign& out);

}  // namespace proctor
