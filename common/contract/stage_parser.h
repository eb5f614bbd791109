#pragma once
// `entry`, `exit` and `approval` of a stage in campaign.yaml.  Internal to the parsers of this
// room.
#include <set>
#include <string>

#include "common/contract/fields.h"
#include "common/contract/stage_rules.h"

namespace proctor {

// `earlier`: names of the stages before this one, which alone can be closed before it;
// the first stage has none, and so no entry criteria.
StageRules read_stage_rules(const Fields& stage, const std::set<std::string>& earlier);

}  // namespace proctor
