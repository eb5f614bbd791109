#pragma once
// The texts of the schemas of campaign, contract and pilot_cost_model_inputs, for campaigns that
// are scaffolded where this source tree is not.
#include <string_view>

namespace proctor {

extern const std::string_view kCampaignSchema;
extern const std::string_view kContractSchema;
extern const std::string_view kCostInputsSchema;

}  // namespace proctor
