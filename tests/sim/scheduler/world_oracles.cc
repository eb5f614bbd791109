// The oracles: what must hold whatever happened.  They read the durable journal and the ledger,
// never the scheduler's own state.
#include <algorithm>

#include "common/base/result.h"
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

// By name, from what was drawn: the plan view that the scheduler walks is under test.
std::vector<ScopeId> World::envelopes_of(RunId run) const {
  const PlanView::Run& r = plan_.runs[run.raw()];
  std::vector<ScopeId> out;
  for (const std::string& name :
       {std::string("global"), std::string("shared:x"),
        "stage:" + (plan_.stages.empty() ? "one" : plan_.stages[r.stage].name),
        "task:" + std::to_string(r.task), "method:" + std::to_string(r.method),
        "stratum:language=" + level_of_task_[r.task]})
    if (const auto it = scope_named_.find(name); it != scope_named_.end())
      out.push_back(it->second);
  return out;
}

// No envelope is ever passed: from the durable facts alone, whenever money goes out.
void World::check_envelopes() const {
  using S = AttemptState;
  std::map<ScopeId, MicroUsd> used;
  for (const auto& [id, trail] : durable_) {
    const S s = trail.at.state;
    const bool holds = s == S::kGranted || s == S::kFinished || s == S::kLost || s == S::kCancelled;
    if (!holds) continue;
    const MicroUsd amount = trail.at.settled ? trail.at.charged : trail.at.ask;
    for (const ScopeId scope : envelopes_of(id.run)) used[scope] = used[scope] + amount;
  }
  for (const auto& [scope, amount] : used)
    if (plan_.scopes[scope.raw()].cap < amount) fail("passed " + plan_.scopes[scope.raw()].name);
}

// What is told about money is true when it is told, and told once in all lives.
void World::check_note(const Note& note) {
  if (note.kind == BudgetAlert::kNote) {
    ++seen_.alerts;
    const auto alert = fact_of<BudgetAlert>(note);
    if (!alert.ok()) return fail(alert.error().detail);
    const ScopeSpec& scope = plan_.scopes[alert->scope.raw()];
    if (!told_.emplace(alert->scope, alert->percent).second)
      fail("told twice: " + scope.name + " at " + std::to_string(alert->percent));
    if (alert->spent != spent_[alert->scope] || alert->cap != scope.cap ||
        alert->name != scope.name)
      fail("told of " + scope.name + " what is not so");
    if (alert->spent.micros() * 100 < scope.cap.micros() * alert->percent)
      fail("told too early: " + scope.name);
    alerts_.push_back(*alert);
    if (0 < alerts_at_boot_) ++seen_.alerts_added;
  }
  if (note.kind == RunDominates::kNote) {
    ++seen_.dominant;
    const auto fact = fact_of<RunDominates>(note);
    if (!fact.ok()) return fail(fact.error().detail);
    for (const RunDominates& d : dominant_)
      if (d.attempt == fact->attempt) fail("dominance told twice: " + to_string(d.attempt));
    const MicroUsd ask = plan_.task_of(fact->attempt.run).ask;
    if (fact->ask != ask || fact->cost.micros() * 100 < ask.micros() * 90)
      fail("dominance told without a reason: " + to_string(fact->attempt));
    dominant_.push_back(*fact);
  }
}

void World::check_alerts_at_end() {
  for (std::uint32_t s = 0; s < plan_.scopes.size(); ++s)
    for (const std::uint32_t percent : {50u, 80u, 95u}) {
      const std::int64_t spent = spent_[ScopeId(s)].micros();
      const bool due =
          !plan_.follows[s] && 0 < spent && plan_.scopes[s].cap.micros() * percent <= spent * 100;
      if (due != told_.contains({ScopeId(s), percent}))
        fail(plan_.scopes[s].name + " at " + std::to_string(percent) +
             (due ? " was not told" : " was told"));
    }
}

void World::check_intent(const AttemptIntent& w) {
  const RunId run = w.attempt.run;
  Trail& t = durable_[w.attempt];
  check_begun(run);
  if (is_parked_for_fault(run)) fail("a run of what is parked starts: " + to_string(w.attempt));
  if (w.seq != 0 && t.at.state != AttemptState::kDenied) fail("asked again without a denial");
  if (settings_.infrastructure_retries < failures_[run] ||
      settings_.retries.overload < overloads_[run])
    fail("another attempt above the limit of retries: " + to_string(w.attempt));
  if (unstarted_.contains(run))
    fail("drawn again though its program could not start: " + to_string(w.attempt));
  // Asked for again after a denial, it may be a suspect no longer.
  if (PoisonBook::kSuspectAfter <= blamed_[run].size())
    lone_.insert(w.attempt);
  else
    lone_.erase(w.attempt);
  t.at = RestoredAttempt{};
  t.at.attempt = w.attempt;
  t.at.seq = w.seq;
  t.at.ask = w.ask;
  parked_.erase(run);
  if (w.attempt.no.raw() != 1 || w.seq != 0 || touched_.contains(run)) return;
  // One that was parked was not to start: later ones went past it, and a raise or the next life
  // brought it back.
  if (ever_parked_.contains(run)) return;
  if (strict_order_ && run < last_first_intent_) fail("out of plan order");
  const PlanView::Run& row = plan_.runs[run.raw()];
  RunId& last = last_of_group_[{row.task, row.method}];
  if (run < last)
    fail("out of plan order within its task and method: run " + std::to_string(run.raw()) +
         " after " + std::to_string(last.raw()));
  last_first_intent_ = last = run;
}

void World::check_settled(const AttemptSettled& w) {
  Trail& t = durable_.at(w.attempt);
  if (t.at.settled) fail("settled twice: " + to_string(w.attempt));
  t.at.settled = true;
  t.at.charged = w.charged;
  // What a lost attempt spent since it was last heard of is unknown: its whole ask is charged.
  // Usage is money here, one to one (see the price in World::World).
  const MicroUsd metered = MicroUsd::from_micros(static_cast<std::int64_t>(t.at.usage.tool_calls));
  if (w.charged != (t.lost ? t.at.ask : std::min(metered, t.at.ask)))
    fail("charged another amount than it cost: " + to_string(w.attempt));
  for (const ScopeId s : envelopes_of(w.attempt.run)) {
    spent_[s] = spent_[s] + w.charged;
    if (plan_.scopes[s.raw()].cap < spent_[s]) fail("overspent " + plan_.scopes[s.raw()].name);
  }
}

// What one event led to.
void World::check_commands(const Event& e, const std::vector<Command>& commands) {
  const auto* synced = std::get_if<WorkerSynced>(&e);
  if (synced != nullptr) boot_heard_[synced->sync.worker] = synced->sync.boot;
  const auto heard = [&](const std::vector<wire::RunningAttempt>& running) {
    for (const wire::RunningAttempt& r : running)
      if (r.sandbox_started) heard_[r.attempt] = coordinator_life_;
  };
  if (synced != nullptr) heard(synced->sync.running);
  for (const Command& c : commands) {
    if (const auto* reply = std::get_if<ReplySync>(&c); reply != nullptr && synced != nullptr)
      check_reply(synced->sync, reply->reply);
    const auto* persist = std::get_if<Persist>(&c);
    if (persist == nullptr) continue;
    for (const JournalWrite& w : persist->writes)
      if (const auto* intent = std::get_if<AttemptIntent>(&w)) check_starts(*intent);
  }
}

// The dominance rule, from what the worker says: nine tenths of its money and no milestone.
bool World::must_stop(const wire::RunningAttempt& r) const {
  if (settings_.watch.dominance.action != BudgetWatch::Dominance::Action::kStop) return false;
  const MicroUsd ask = plan_.task_of(r.attempt.run).ask;
  return ask.micros() * 90 <= static_cast<std::int64_t>(r.usage.tool_calls) * 100;
}

void World::check_reply(const wire::Sync& sync, const wire::SyncReply& reply) {
  const auto in = [](const std::vector<AttemptId>& list, const AttemptId& id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (const wire::RunningAttempt& r : sync.running) {
    const auto it = durable_.find(r.attempt);
    const bool wanted = it != durable_.end() && it->second.at.state == AttemptState::kGranted;
    if (in(reply.stop, r.attempt) && !must_stop(r))
      fail("told to stop without a reason: " + to_string(r.attempt));
    if (wanted && must_stop(r) && !in(reply.stop, r.attempt) && !in(reply.cancel, r.attempt))
      fail("not told to stop: " + to_string(r.attempt));
  }
  for (const wire::RunningAttempt& r : sync.running) {
    const auto it = durable_.find(r.attempt);
    if (it != durable_.end() && !it->second.terminal) continue;
    if (std::find(reply.cancel.begin(), reply.cancel.end(), r.attempt) == reply.cancel.end())
      fail("a worker may go on with what is over: " + to_string(r.attempt));
  }
  for (const AttemptId& id : reply.acked) {
    const auto it = durable_.find(id);
    if (it == durable_.end() || !it->second.at.has_result)
      fail("acknowledged on sync before it was durable: " + to_string(id));
  }
}

void World::check_durable(const JournalWrite& write) {
  using S = AttemptState;
  const auto end_run = [this](AttemptId id, RunOutcome outcome) {
    if (!outcome_of_.emplace(id.run, id).second) fail("a second outcome for run " + to_string(id));
    outcome_[id.run] = outcome;
    const auto next = durable_.upper_bound(id);
    if (next != durable_.end() && next->first.run == id.run)
      fail("outcome by an attempt that is not the newest: " + to_string(id));
  };
  std::visit(
      Overload{
          [&](const AttemptIntent& w) { check_intent(w); },
          [&](const AttemptGranted& w) {
            RestoredAttempt& a = durable_.at(w.attempt).at;
            a.state = S::kGranted;
            a.worker = w.worker;
            a.boot = w.boot;
            check_envelopes();
            check_shared();
          },
          [&](const AttemptDenied& w) { durable_.at(w.attempt).at.state = S::kDenied; },
          [&](const AttemptResult& w) {
            Trail& t = durable_.at(w.attempt);
            if (t.at.has_result) fail("a second result on record: " + to_string(w.attempt));
            t.at.has_result = true;
            if (t.at.state == S::kLost) {
              ++seen_.late_results;
              if (w.sets_outcome) fail("a late result sets an outcome");
              return;
            }
            if (t.at.state != S::kGranted) fail("a result of an attempt that was not granted");
            t.at.state = S::kFinished;
            t.at.usage = w.usage;
            t.at.infrastructure = w.infrastructure;
            t.terminal = true;
            const RunId run = w.attempt.run;
            const bool cancel = w.termination == Termination::kOperatorCancel;
            t.at.overload = w.overload;
            t.at.termination = w.termination;
            const bool unstarted = w.termination == Termination::kAgentUnavailable;
            if (unstarted) unstarted_.insert(run);
            count_fault(w);
            if (w.infrastructure && !cancel) ++(w.overload ? overloads_ : failures_)[run];
            const bool left = !convicted_.contains(run) &&
                              (w.overload ? overloads_[run] <= settings_.retries.overload
                                          : failures_[run] <= settings_.infrastructure_retries);
            const bool died = blamed_[run].contains(w.attempt.no);  // told before, with its worker
            if (died && killed_by_.contains(w.attempt)) count_poison_loss(w.attempt);
            const bool again = cancel || durable_standing_.cancelled.contains(run) ||
                               (w.infrastructure && (left || settings_.retries.escalate)) ||
                               unstarted;
            if (!cancel && (!w.infrastructure || w.overload))
              std::erase_if(blamed_[run], [&](AttemptNo no) { return no <= w.attempt.no; });
            const Retries& rules = settings_.retries;
            if (w.infrastructure)
              waits(run, w.overload
                             ? doubled(rules.overload_backoff, rules.backoff_max, overloads_[run])
                             : doubled(rules.backoff, rules.backoff_max, failures_[run]));
            if (w.sets_outcome == again) fail("a wrong end of its run: " + to_string(w.attempt));
            if (w.sets_outcome) end_run(w.attempt, w.outcome);
          },
          [&](const AttemptSettled& w) { check_settled(w); },
          [&](const AttemptVoided& w) {
            ++seen_.voided;
            if (w.reason.find("gave it back") != std::string::npos ||
                w.reason.find("was killed before it began") != std::string::npos)
              ++host_failures_[durable_.at(w.attempt).at.worker.raw()];
            if (w.reason.find("gave it back") != std::string::npos ||
                w.reason.find("before it began") != std::string::npos)
              ++seen_.given_back;
            if (const auto begun = begun_in_.find(w.attempt);
                begun != begun_in_.end() && begun->second == durable_.at(w.attempt).at.boot)
              fail("voided though its worker had begun it: " + to_string(w.attempt));
            durable_.at(w.attempt).at.state = S::kVoided;
            durable_.at(w.attempt).terminal = true;
          },
          [&](const AttemptLost& w) {
            ++seen_.attempts_lost;
            const RunId run = w.attempt.run;
            Trail& t = durable_.at(w.attempt);
            if (excused_.contains(w.attempt)) {  // told before: an operator's doing
              not_before_.erase(run);
            } else {
              ++failures_[run];
              waits(run, doubled(settings_.retries.backoff, settings_.retries.backoff_max,
                                 failures_[run]));
            }
            // A Sync that was overtaken by a Progress takes back what that said, and a kick
            // explains a death that nobody had noticed yet: nobody's fault.
            const auto says = [&](const char* words) {
              return w.reason.find(words) != std::string::npos;
            };
            const bool killed = killed_by_.contains(w.attempt) ||
                                (killed_before_.contains(w.attempt) && says("was restarted"));
            if (killed && !says("no longer has it") && !says("was kicked by"))
              count_poison_loss(w.attempt);
            if (t.terminal) fail("lost after its end: " + to_string(w.attempt));
            t.at.state = S::kLost;
            t.terminal = t.lost = true;
          },
          [&](const AttemptCancelled& w) { durable_.at(w.attempt).at.state = S::kCancelled; },
          [&](const RunParked& w) {
            ++seen_.parked;
            parked_.insert(w.run);
            ever_parked_.insert(w.run);
          },
          [&](const RunUnparked& w) { parked_.erase(w.run); },
          [&](const RunEnded& w) {
            ++seen_.ended_by_limit;
            // An exit code that an agent may choose, of a method that was at work elsewhere.
            const bool failure = w.outcome == RunOutcome::kFailure;
            const bool unstarted = unstarted_.contains(w.run);
            if (failure && !unstarted)
              fail("a failure without its result: " + to_string(w.attempt));
            if (!failure && !unstarted && failures_[w.run] <= settings_.infrastructure_retries &&
                !convicted_.contains(w.run))
              fail("given up too early: " + to_string(w.attempt));
            end_run(w.attempt, w.outcome);
          },
          [&](const RunReopened& w) { check_reopened(w.attempt); },
          [&](const RunReviewed&) { fail("a review that no operator booked"); },
          [&](const EpochBegun&) {},
          [&](const MetaSet&) {},
          [&](const ScopeDefined& w) {
            plan_.scopes[w.scope.raw()].cap = w.cap;
            std::erase_if(told_, [&](const auto& told) {
              return told.first == w.scope &&
                     spent_[w.scope].micros() * 100 < w.cap.micros() * told.second;
            });
            std::erase_if(alerts_, [&](const BudgetAlert& a) {
              return a.scope == w.scope && !told_.contains({a.scope, a.percent});
            });
          },
          [&](const Note& w) {
            if (w.kind == "adopted") ++seen_.adopted;
            check_note(w);
            check_act(w);
            check_loss(w);
            check_fault(w);
            check_gate(w);
            check_own_quarantine(w);
          },
      },
      write);
}

void World::check_end() {
  check_alerts_at_end();
  if (other_ != nullptr) ledger_->set_elsewhere(*plan_.shared, elsewhere());
  for (std::uint32_t s = 0; s < plan_.scopes.size(); ++s) {
    const ScopeBalance b = ledger_->balance(ScopeId(s));
    if (b.reserved != MicroUsd::zero()) fail("money stays reserved in " + plan_.scopes[s].name);
    if (b.spent != spent_[ScopeId(s)])
      fail("journal and ledger disagree on " + plan_.scopes[s].name);
  }
  if (ledger_->open_reservations() != 0) fail("open reservations at the end");
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r) {
    const RunId run(r);
    const bool ended = outcome_of_.contains(run), parked = parked_.contains(run);
    const bool cancelled = durable_standing_.cancelled.contains(run);
    if (ended + parked + cancelled == 0 && is_parked_for_fault(run)) continue;
    if (ended + parked + cancelled != 1)
      fail("run " + std::to_string(r) +
           (ended ? " ended, and is parked or cancelled" : " never ended"));
    // One that waited for money when its task was parked waits for both.
    if (!parked || is_parked_for_fault(run)) continue;
    bool is_short = false;
    for (const ScopeId s : envelopes_of(run))
      is_short = is_short || ledger_->balance(s).free() < plan_.task_of(run).ask;
    if (!is_short) fail("run " + std::to_string(r) + " is parked though there is money for it");
  }
}

void World::check_denied(const AttemptId& id) {
  const auto [it, first] = denied_after_.emplace(id.run, came_back_);
  if (!first && it->second == came_back_)
    fail("asked in vain again though no money came back: " + to_string(id));
  it->second = ++came_back_;
}

// Of an attempt that killed its worker, and that this life of the coordinator knew to run.
void World::count_poison_loss(const AttemptId& id) {
  const auto heard = heard_.find(id);
  if (heard != heard_.end() && heard->second == coordinator_life_ &&
      PoisonBook::kConvictAfter < ++poison_losses_)
    fail("the poison run killed too many workers");
}

}  // namespace proctor::sim
