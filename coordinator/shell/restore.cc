#include "coordinator/shell/restore.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/shared_note.h"
#include "coordinator/shell/plan_view.h"

namespace proctor {
namespace {

// What is reserved, as the journal knows it; what is spent, the scheduler has added up.
void restore_ledger(const Scheduler& scheduler, const RestoredState& state, LedgerStart& ledger) {
  const PlanView& view = scheduler.plan();
  ledger.scopes = view.scopes;
  for (const ScopeBalance& b : scheduler.balances()) ledger.spent.push_back(b.spent);
  for (const RestoredAttempt& a : state.attempts)
    if (is_reserved(a))
      ledger.pending.push_back({{a.attempt, a.seq}, a.ask, view.path(a.attempt.run)});
}

}  // namespace

Result<RestoredCore> restore_core(const Campaign& campaign, const Plan& plan,
                                  const std::vector<RunId>& removed,
                                  const SchedulerSettings& settings, const RestoredState& state,
                                  const std::string& self) {
  RestoredCore out;
  out.ledger.epoch = Epoch(state.last_epoch.raw() + 1);
  PlanView view = make_plan_view(campaign, plan);
  PROCTOR_CHECK_OK(apply_raises(view, state.raises));
  const std::optional<ScopeId> shared = view.shared;
  out.scheduler = std::make_unique<Scheduler>(std::move(view), settings, out.ledger.epoch);
  PROCTOR_CHECK_OK(out.scheduler->restore(state));
  restore_ledger(*out.scheduler, state, out.ledger);
  if (shared) {
    PROCTOR_TRY(SharedBook book, shared_book_of(self, state.shared));
    const bool raised = std::ranges::any_of(
        state.raises, [&](const BudgetRaised& raise) { return raise.scope == *shared; });
    out.ledger.shared.emplace(LedgerStart::Shared{*shared, std::move(book), raised});
  }
  for (const RunId run : removed) out.scheduler->restore_fact(RunRemoved{run});
  return out;
}

}  // namespace proctor
