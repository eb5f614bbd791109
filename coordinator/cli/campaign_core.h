#pragma once
// The scheduler of a campaign as its journal leaves it, for commands that explain, count or decide
// while no coordinator runs: they ask the code that the next life would ask, and derive nothing
// from notes and rows by themselves.
#include <memory>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/core/scheduler.h"

namespace proctor::cli {

// What a coordinator of this campaign gives its scheduler.
SchedulerSettings scheduler_settings(const FrozenCampaign& frozen);

// Not started, so nothing is decided anew.  kCorrupt: the journal does not fit the plan.
Result<std::unique_ptr<Scheduler>> core_of(const FrozenCampaign& frozen,
                                           const RestoredState& state);

}  // namespace proctor::cli
