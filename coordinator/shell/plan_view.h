#pragma once
// From a campaign and its plan to what the scheduler needs: envelopes, asks, capabilities.  Pure.
#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "common/plan/registration.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"

namespace proctor {
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
}  // namespace proctor
