#pragma once
// The texts of schemas/campaign.schema.json and schemas/contract.schema.json, for campaigns that
// are scaffolded where this source tree is not.
#include <string_view>

namespace proctor {

extern const std::string_view kCampaignSchema;
extern const std::string_view kContractSchema;

}  // namespace proctor
