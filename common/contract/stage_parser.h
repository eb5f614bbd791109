#pragma once
// What a stage in campaign.yaml has beside its name and its money.  Internal to the parsers of this
// room.
#include <set>
#include <string>

#include "common/contract/fields.h"
#include "common/contract/stage_draw.h"
#include "common/contract/stage_rules.h"

namespace proctor {

// `earlier`: names of the stages before this one, which alone can be closed before it;
// the first stage has none, and so no entry criteria.
StageRules read_stage_rules(const Fields& stage, const std::set<std::string>& earlier);

// `tasks`, `replicates` and `order`.
StageDraw read_stage_draw(const Fields& stage);

inline constexpr std::uint64_t kReplicatesMax = 1'000'000;  // of a campaign, and of a stage

}  // namespace proctor
