#pragma once
// CampaignView: where a campaign stands as its journal's facts leave it.  The scheduler in it is
// made by the code that a life of the coordinator begins with, so that who reads it derives nothing
// from notes and rows by himself.  Pure but for the allocation; `verify` asks no view, on purpose.
#include <cstdint>
#include <memory>
#include <vector>

#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

struct CampaignView {
  RestoredState state;
  std::unique_ptr<Scheduler> core;  // not started, so nothing is decided anew, before begin()

  struct Begun {
    bool over = false;                 // that life would end at once
    std::vector<JournalWrite> writes;  // that its journal would get
  };
  // As at the first tick of a life that sends nothing: who waits for what is found out too.  Once.
  Begun begin(Time now);
  // By phases as they are; but a run whose parking for money stands is parked, though a life would
  // ask for it once more.
  Scheduler::Counts counts() const;
};

// `removed`: runs of tasks taken out after the freeze (R173).  kCorrupt: the journal does not fit
// the plan.
Result<CampaignView> view_campaign(const Campaign& campaign, const Plan& plan,
                                   const std::vector<RunId>& removed,
                                   const SchedulerSettings& settings, RestoredState state);

}  // namespace proctor
