#pragma once
// The rows of one model in the price table as one tariff: its plain prices, then those of the tier
// and the region that are asked for, and of calls with much input.  Internal to this room.
#include <optional>
#include <string_view>

#include "common/contract/cost_model.h"

namespace proctor {

// The rows of exactly this provider and model; nullopt where there is none, or none of the tier of
// `action`.
std::optional<Tariff> model_tariff(const CostModel& table, std::string_view provider,
                                   std::string_view model, const ActionName& action);

}  // namespace proctor
