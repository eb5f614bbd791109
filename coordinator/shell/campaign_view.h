#pragma once
// A campaign as the scheduler needs it, and as its journal left it: its scheduler made again, and
// its status by that.  Pure but for the allocation.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "coordinator/core/run_queue.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/shell/ledger_thread.h"
#include "coordinator/shell/status.h"

namespace proctor {
// From a campaign and its plan to what the scheduler needs: envelopes, asks, capabilities.

// Scopes: 0 "global", then "stage:NAME", then "task:ID", both in the plan's order: one for each,
// and an envelope nobody set has its parent's cap.  Then those across the tree, which are set:
// "method:NAME" in the plan's order, "stratum:KEY=LEVEL" by key and level, last "shared:NAME".
PlanView make_plan_view(const Campaign& campaign, const Plan& plan);
// Envelopes nobody gave a cap of their own have the campaign's: they follow when it is raised, and
// an alert of theirs would say what the campaign's says.
bool follows_global(const Campaign& campaign, const std::string& scope);
// The caps as declared deviations changed them since.  kCorrupt: a raise that does not follow from
// the cap before it; nothing is applied then.
Status apply_raises(PlanView& view, const std::vector<BudgetRaised>& raises);

// A scheduler as the journal left it: for the coordinator that goes on, and for commands that
// decide or explain while none runs.

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

// CampaignView: where a campaign stands as its journal's facts leave it.  The scheduler in it is
// made by the code that a life of the coordinator begins with, so that who reads it derives nothing
// from notes and rows by himself.  `verify` asks no view, on purpose.
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

// The status of a campaign by its scheduler alone: counts, money, what was told, what is broken.
// For one that a coordinator runs, and for one that none does: of that the journal's facts say all
// of it (CampaignView), and its last coordinator's own word only what is in no journal.

using RunNames = std::function<std::string(RunId)>;

// The next stage that is not open.
std::optional<StatusSnapshot::Gate> gate_seen(const Scheduler& core);

// "paused, and what runs is suspended: WHY"; empty: it is not paused.
std::string paused_words(const Scheduler& core);

// All of `s` that the scheduler knows but for who is there, which its caller knows better.
// `s.unit` is what amounts are counted in.
void tell_campaign(StatusSnapshot& s, const Scheduler& core, const RunNames& name);

// How a campaign that nobody runs stands.
enum class Rest : std::uint8_t {
  kComplete,     // no run is left but those that wait for money or a person
  kStopped,      // its last coordinator ended in order, and there are runs for the next one
  kInterrupted,  // its last coordinator did not: what it had out is open
};
struct RestingStatus {
  StatusSnapshot status;  // no process runs it: `pid` is 0
  Rest rest = Rest::kStopped;
};
// `view` has begun.  `last`: what its last coordinator wrote, where that can be read.
RestingStatus resting_status(const CampaignView& view, const RunNames& name,
                             const StatusSnapshot* last, WallTime now);
}  // namespace proctor
