#pragma once
// Where a campaign stands as its journal leaves it, for commands that explain, count or decide
// while no coordinator runs: they ask the code that the next life would ask, and derive nothing
// from notes and rows by themselves.
#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"

namespace proctor::cli {

// What a coordinator of this campaign gives its scheduler.
SchedulerSettings scheduler_settings(const FrozenCampaign& frozen);

// All that a resume would read.  kCorrupt, as a coordinator refuses it: it knows less than runs/ or
// than its coordinator's last word (behind.h), and what a command would say or write by it is of
// an older state.
Result<RestoredState> load_whole(const FrozenCampaign& frozen, JournalReader& journal);

// Not begun, so nothing is decided anew.  kCorrupt: the journal does not fit the plan.
Result<CampaignView> view_of(const FrozenCampaign& frozen, RestoredState state);
// By load_whole().
Result<CampaignView> view_of(const FrozenCampaign& frozen, JournalReader& journal);

}  // namespace proctor::cli
