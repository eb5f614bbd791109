#include "coordinator/shell/restore.h"

#include <algorithm>
#include <utility>

#include "coordinator/shell/plan_view.h"

namespace proctor {
namespace {

Error not_of_this_plan() {
  return {Errc::kCorrupt, "journal: a run the plan does not have"};
}

// What is spent and reserved, as the journal knows it.
Status restore_ledger(const PlanView& view, const RestoredState& state, LedgerStart& ledger) {
  ledger.scopes = view.scopes;
  ledger.spent.assign(view.scopes.size(), MicroUsd::zero());
  for (const RestoredAttempt& a : state.attempts) {
    if (view.runs.size() <= a.attempt.run.raw()) return not_of_this_plan();
    const std::vector<ScopeId> path = view.path(a.attempt.run);
    if (a.settled)
      for (const ScopeId s : path) ledger.spent[s.raw()] = ledger.spent[s.raw()] + a.charged;
    else if (is_reserved(a))
      ledger.pending.push_back({{a.attempt, a.seq}, a.ask, path});
  }
  for (const RunReviewed& r : state.reviews) {
    if (view.runs.size() <= r.run.raw()) return not_of_this_plan();
    for (const ScopeId s : view.path(r.run))
      ledger.spent[s.raw()] = ledger.spent[s.raw()] + r.charged;
  }
  return ok_status();
}

Status restore_scheduler(const RestoredState& state, const LedgerStart& ledger,
                         Scheduler& scheduler) {
  const std::size_t runs = scheduler.plan().runs.size();
  for (const EndedRun& e : state.ended) {
    if (runs <= e.run.raw()) return not_of_this_plan();
    scheduler.restore_ended({e.run, e.attempt}, e.outcome);
  }
  for (const BudgetAlert& a : state.alerts) {
    if (ledger.scopes.size() <= a.scope.raw() || ledger.scopes[a.scope.raw()].name != a.name)
      return Error{Errc::kCorrupt, "journal: an alert of an envelope that is not there"};
    scheduler.restore_alert(a);
  }
  for (const RunDominates& d : state.dominant) {
    if (runs <= d.attempt.run.raw()) return not_of_this_plan();
    scheduler.restore_dominant(d);
  }
  for (const ParkedRun& p : state.parked) {
    if (runs <= p.run.raw()) return not_of_this_plan();
    scheduler.restore_parked(p.run);
  }
  scheduler.restore_reviews(static_cast<std::uint32_t>(state.reviews.size()));
  for (const Note& n : state.standing) PROCTOR_CHECK_OK(scheduler.restore_note(n));
  for (const RestoredAttempt& a : state.attempts) scheduler.restore_attempt(a);
  for (std::uint32_t i = 0; i < ledger.spent.size(); ++i)
    scheduler.restore_spent(ScopeId(i), ledger.spent[i]);
  return ok_status();
}

}  // namespace

Result<RestoredCore> restore_core(const Campaign& campaign, const Plan& plan,
                                  const std::vector<RunId>& removed,
                                  const SchedulerSettings& settings, const RestoredState& state) {
  RestoredCore out;
  out.ledger.epoch = Epoch(state.last_epoch.raw() + 1);
  PlanView view = make_plan_view(campaign, plan);
  PROCTOR_CHECK_OK(apply_raises(view, state.raises));
  PROCTOR_CHECK_OK(restore_ledger(view, state, out.ledger));
  out.scheduler = std::make_unique<Scheduler>(std::move(view), settings, out.ledger.epoch);
  PROCTOR_CHECK_OK(restore_scheduler(state, out.ledger, *out.scheduler));
  for (const RunId run : removed) out.scheduler->restore_removed(run);
  return out;
}

}  // namespace proctor
