#pragma once
// A scheduler as the journal left it: for the coordinator that goes on, and for commands that
// decide or explain while none runs.  Pure but for the allocation.
#include <memory>
#include <string>
#include <vector>

#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/shell/ledger_thread.h"

namespace proctor {

// The scheduler alone, for who reads.  `removed`: runs of tasks taken out after the freeze (R173).
// kCorrupt: the journal does not fit the plan.
Result<std::unique_ptr<Scheduler>> restore_scheduler(const Campaign& campaign, const Plan& plan,
                                                     const std::vector<RunId>& removed,
                                                     const SchedulerSettings& settings,
                                                     const RestoredState& state);

struct RestoredCore {
  std::unique_ptr<Scheduler> scheduler;  // not started
  LedgerStart ledger;
};
// And its ledger, for the life after the last one in `state`.  `self`: the campaign's id.
Result<RestoredCore> restore_core(const Campaign& campaign, const Plan& plan,
                                  const std::vector<RunId>& removed,
                                  const SchedulerSettings& settings, const RestoredState& state,
                                  const std::string& self);

}  // namespace proctor
