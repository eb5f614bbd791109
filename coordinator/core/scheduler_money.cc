// The scheduler's half that deals with money: what a run must wait for, what comes back, what is
// told about envelopes and about runs that use up theirs.
#include <utility>

#include "common/base/assert.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

RunQueue::Answer Scheduler::judge(RunId run) const {
  const PlanView::Task& task = plan_.task_of(run);
  if (!worker_for(run)) return {RunQueue::Verdict::kWaitForWorker, {}, needs_of(run)};
  for (const ScopeId scope : plan_.path(run)) {
    const ScopeBalance& b = balances_[scope.raw()];
    const auto refused = refused_.find(scope);
    const bool is_short =
        b.free() < task.ask || (refused != refused_.end() && refused->second <= task.ask);
    // Short, but some of it may come back: wait.  Short with nothing out: ask, and let the ledger
    // say so.
    if (is_short && MicroUsd::zero() < b.reserved)
      return {RunQueue::Verdict::kWaitForScope, scope, 0};
  }
  return {RunQueue::Verdict::kTake, {}, 0};
}

// A million runs behind an exhausted envelope must not cost a million questions: what the ledger
// refused once it refuses again for the same or a larger ask while nothing has changed.
bool Scheduler::park_if_known_short(RunId run) {
  const MicroUsd ask = plan_.task_of(run).ask;
  for (const ScopeId scope : plan_.path(run)) {
    const auto known = known_short_.find(scope);
    if (known == known_short_.end()) continue;
    const ScopeBalance& b = balances_[scope.raw()];
    if (b.spent != known->second.first || ask < known->second.second) continue;
    if (b.reserved != MicroUsd::zero()) continue;
    phases_[run.raw()] = RunPhase::kParked;
    ++parked_;
    write(RunParked{run, scope, ask - b.free(), now_.wall});
    return true;
  }
  return false;
}

void Scheduler::money_back(ScopeId scope) {
  refused_.erase(scope);
  queue_.wake_scope(scope);
}

void Scheduler::handle(const Settled& e) {
  for (const Settled::Answer& got : e.answers) {
    Attempt* a = live(got.id.attempt);
    if (a == nullptr || a->state != State::kSettling) continue;  // repeated
    settled(*a, got.answer);
  }
}

void Scheduler::settled(Attempt& a, const SettleAnswer& answer) {
  a.state = State::kClosing;
  write(AttemptSettled{a.id, answer.charged, a.cost, answer.overrun, now_.wall},
        After{Step::kForget, a.id, a.seq, 0});
  for (const ScopeId s : plan_.path(a.id.run)) {
    ScopeBalance& b = balances_[s.raw()];
    b.reserved = b.reserved - a.ask;
    b.spent = b.spent + answer.charged;
    money_back(s);
    tell_spent(s);
  }
  if (MicroUsd::zero() < answer.overrun)
    out_.push_back(Alert{"attempt " + to_string(a.id) + " metered " + format_usd(answer.overrun) +
                         " USD above what was reserved for it"});
}

// ---------------------------------------------------------------- what is told

// Written with the settlement that reached the level: both are durable, or neither is.
void Scheduler::tell_spent(ScopeId scope) {
  if (plan_.follows_global(scope)) return;  // the campaign's own alert says the same
  const std::string& name = plan_.scopes[scope.raw()].name;
  for (const BudgetAlert& alert : alerts_.reached(scope, name, balances_[scope.raw()], now_.wall)) {
    write(note_of(alert));
    out_.push_back(Alert{describe(alert), true, std::nullopt});
  }
}

// R190: much of its money is used and it has nothing to show.  Only while its agent works: what
// comes after that is its judgement.
void Scheduler::watch_run(Attempt& a, const wire::RunningAttempt& said) {
  if (a.dominates || said.stage != wire::Stage::kAgent) return;
  const MicroUsd cost = price(settings_.cost_model, said.usage).total();
  if (!dominates(settings_.watch.dominance, cost, a.ask, said.milestones)) return;
  const bool stop = settings_.watch.dominance.action == BudgetWatch::Dominance::Action::kStop;
  const RunDominates fact{a.id, cost, a.ask, said.milestones, stop, now_.wall};
  a.dominates = true;
  dominant_.push_back(fact);
  write(note_of(fact));
  out_.push_back(Alert{describe(fact), true, a.id.run});
}

void Scheduler::restore_alert(BudgetAlert alert) {
  PROCTOR_ASSERT(!started_);
  alerts_.restore(std::move(alert));
}

void Scheduler::restore_dominant(const RunDominates& fact) {
  PROCTOR_ASSERT(!started_);
  dominant_ids_.insert(fact.attempt);
  dominant_.push_back(fact);
}

}  // namespace proctor
