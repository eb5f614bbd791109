#include "coordinator/shell/restore.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/notes.h"
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

Result<std::unique_ptr<Scheduler>> restore_scheduler(const Campaign& campaign, const Plan& plan,
                                                     const std::vector<RunId>& removed,
                                                     const SchedulerSettings& settings,
                                                     const RestoredState& state) {
  PlanView view = make_plan_view(campaign, plan);
  PROCTOR_CHECK_OK(apply_raises(view, state.raises));
  auto out =
      std::make_unique<Scheduler>(std::move(view), settings, Epoch(state.last_epoch.raw() + 1));
  PROCTOR_CHECK_OK(out->restore(state));
  for (const RunId run : removed) {
    const auto ended = std::ranges::lower_bound(state.ended, run, {}, &EndedRun::run);
    const bool has_ended = ended != state.ended.end() && ended->run == run;
    out->restore_fact(RunRemoved{run, has_ended ? std::optional(ended->outcome) : std::nullopt});
  }
  return out;
}

Result<RestoredCore> restore_core(const Campaign& campaign, const Plan& plan,
                                  const std::vector<RunId>& removed,
                                  const SchedulerSettings& settings, const RestoredState& state,
                                  const std::string& self) {
  RestoredCore out;
  PROCTOR_TRY(out.scheduler, restore_scheduler(campaign, plan, removed, settings, state));
  out.ledger.epoch = Epoch(state.last_epoch.raw() + 1);
  restore_ledger(*out.scheduler, state, out.ledger);
  if (const std::optional<ScopeId> shared = out.scheduler->plan().shared) {
    PROCTOR_TRY(SharedBook book, shared_book_of(self, state.shared));
    const bool raised = std::ranges::any_of(
        state.raises, [&](const BudgetRaised& raise) { return raise.scope == *shared; });
    out.ledger.shared.emplace(LedgerStart::Shared{*shared, std::move(book), raised});
  }
  return out;
}

}  // namespace proctor
