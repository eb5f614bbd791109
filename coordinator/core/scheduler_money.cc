// The scheduler's half that deals with money: what a run must wait for, what comes back, what is
// told about envelopes and about runs that use up theirs.
#include <algorithm>
#include <utility>

#include "common/base/result.h"
#include "common/contract/cost_model.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

namespace {

// Of two totals of one attempt: can `now` be the later one?
bool is_at_least(const Usage& now, const Usage& before) {
  constexpr std::array<std::uint64_t Usage::*, 9> kMeasured{
      &Usage::setup_ms,      &Usage::agent_ms,    &Usage::acceptance_ms,
      &Usage::cpu_ms,        &Usage::tool_calls,  &Usage::input_tokens,
      &Usage::output_tokens, &Usage::model_calls, &Usage::stored_bytes};
  return std::ranges::all_of(kMeasured, [&](auto c) { return before.*c <= now.*c; }) &&
         std::ranges::all_of(kMeteredCounters,
                             [&](const auto& c) { return before.*c.second <= now.*c.second; });
}

}  // namespace

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
    if (is_short && (MicroUsd::zero() < b.reserved || b.elsewhere.may_return))
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
    if (b.reserved != MicroUsd::zero() || b.elsewhere.may_return) continue;
    park(run, scope, ask - b.free());
    return true;
  }
  return false;
}

// It waits for money, and is asked for no more before there is some.
void Scheduler::park(RunId run, ScopeId scope, MicroUsd short_by) {
  record(RunParked{run, scope, short_by, now_.wall});
  phases_[run.raw()] = RunPhase::kParked;
  ++parked_;
}

// It waits for money no longer.  One that this life has not asked for yet is in line already.
void Scheduler::unpark(RunId run) {
  record(RunUnparked{run});
  if (phases_[run.raw()] != RunPhase::kParked) return;
  --parked_;
  in_line(run);
}

void Scheduler::money_back(ScopeId scope) {
  refused_.erase(scope);
  queue_.wake_scope(scope);
}

void Scheduler::handle(const ElsewhereHeld& e) {
  if (!plan_.shared) return;
  balances_[plan_.shared->raw()].elsewhere = e.held;
  known_short_.erase(*plan_.shared);
  money_back(*plan_.shared);
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
  count_metered(a);
  record(AttemptSettled{a.id, answer.charged, a.cost, answer.overrun, now_.wall},
         After{Step::kForget, a.id, a.seq, 0});
  plan_.each_scope(a.id.run, [&](ScopeId s) {
    money_back(s);
    tell_spent(s);
  });
  if (MicroUsd::zero() < answer.overrun)
    out_.push_back(Alert{"attempt " + to_string(a.id) + " metered " + format_usd(answer.overrun) +
                         " " + money_word(settings_.cost_model) +
                         " above what was reserved for it"});
}

// ---------------------------------------------------------------- what is told

// Written with the settlement that reached the level: both are durable, or neither is.
void Scheduler::tell_spent(ScopeId scope) {
  if (plan_.follows_global(scope)) return;  // the campaign's own alert says the same
  const std::string& name = plan_.scopes[scope.raw()].name;
  for (const BudgetAlert& alert : alerts_.reached(scope, name, balances_[scope.raw()], now_.wall)) {
    record(alert);
    out_.push_back(Alert{describe(alert, money_word(settings_.cost_model)), true, std::nullopt});
  }
}

// Totals are cumulative.  One that is smaller than it was is no total: it changes nothing.
bool Scheduler::take_usage(Attempt& a, const Usage& said) {
  if (!is_at_least(said, a.usage)) {
    if (!std::exchange(a.doubted, true))
      out_.push_back(
          Alert{"its worker stated less usage than before: not believed", false, a.id.run});
    return false;
  }
  a.usage = said;
  a.metered = std::min(a.ask, price(settings_.cost_model, said).total());
  count_metered(a);
  return true;
}

void Scheduler::doubt_sender(WorkerIndex w, const AttemptId& id) {
  if (!doubted_.insert(w).second) return;
  out_.push_back(Alert{"worker " + roster_.at(w).id.raw() + " states usage of attempt " +
                       to_string(id) + ", which is not its own: not believed"});
}

// Whatever changed of it is counted at once: a walk over a hundred thousand of them, once a second,
// held up everybody else.
void Scheduler::count_metered(Attempt& a) {
  const MicroUsd used = a.used();
  if (used == a.counted) return;
  plan_.each_scope(a.id.run,
                   [&](ScopeId s) { metered_[s.raw()] = metered_[s.raw()] - a.counted + used; });
  a.counted = used;
}

// R190: much of its money is used and it has nothing to show.  Only while its agent works: what
// comes after that is its judgement.
void Scheduler::watch_run(Attempt& a, const wire::RunningAttempt& said) {
  if (!take_usage(a, said.usage)) return;
  if (said.stage != wire::Stage::kAgent || dominant_ids_.contains(a.id)) return;
  const MicroUsd cost = price(settings_.cost_model, said.usage).total();
  if (!dominates(settings_.watch.dominance, cost, a.ask, said.milestones)) return;
  const bool stop = settings_.watch.dominance.action == BudgetWatch::Dominance::Action::kStop;
  const RunDominates fact{a.id, cost, a.ask, said.milestones, stop, now_.wall};
  record(fact);
  out_.push_back(Alert{describe(fact, money_word(settings_.cost_model)), true, a.id.run});
}

// Its share of the calls per minute.  A worker of before rates asks for none: it refuses the
// settings of a campaign that has any.
void Scheduler::share_rates(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply) {
  reply.ticket = sync.ticket;  // says which Sync this answers, also where there are no rates
  reply.holds = rates_.pass_on(sync.holds, now_.mono);
  if (rates_.none() || sync.ticket == 0) return;
  reply.shares = rates_.renew(
      sync.worker, sync.boot,
      {sync.ticket, sync.obeyed, sync.calls, sync.slots, roster_.at(w).held}, now_.mono);
}

}  // namespace proctor
