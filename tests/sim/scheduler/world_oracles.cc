// The oracles: what must hold whatever happened.  They read the durable journal and the ledger,
// never the scheduler's own state.
#include "common/base/overload.h"
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

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
          [&](const AttemptIntent& w) {
            Trail& t = durable_[w.attempt];
            if (w.seq != 0 && t.at.state != S::kDenied) fail("asked again without a denial");
            t.at = RestoredAttempt{};
            t.at.attempt = w.attempt;
            t.at.seq = w.seq;
            t.at.ask = w.ask;
            parked_.erase(w.attempt.run);
            if (w.attempt.no.raw() != 1 || w.seq != 0) return;
            const RunId run = w.attempt.run;
            if (strict_order_ && run < last_first_intent_) fail("out of plan order");
            RunId& last = last_of_task_[plan_.runs[run.raw()].task];
            if (run < last) fail("out of plan order within its task");
            last_first_intent_ = last = run;
          },
          [&](const AttemptGranted& w) {
            RestoredAttempt& a = durable_.at(w.attempt).at;
            a.state = S::kGranted;
            a.worker = w.worker;
            a.boot = w.boot;
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
            if (w.sets_outcome) end_run(w.attempt, w.outcome);
          },
          [&](const AttemptSettled& w) {
            Trail& t = durable_.at(w.attempt);
            if (t.at.settled) fail("settled twice: " + to_string(w.attempt));
            t.at.settled = true;
            t.at.charged = w.charged;
            for (const ScopeId s : plan_.path(w.attempt.run)) {
              spent_[s] = spent_[s] + w.charged;
              if (plan_.scopes[s.raw()].cap < spent_[s])
                fail("overspent " + plan_.scopes[s.raw()].name);
            }
          },
          [&](const AttemptVoided& w) {
            ++seen_.voided;
            durable_.at(w.attempt).at.state = S::kVoided;
            durable_.at(w.attempt).terminal = true;
          },
          [&](const AttemptLost& w) {
            ++seen_.attempts_lost;
            durable_.at(w.attempt).at.state = S::kLost;
            durable_.at(w.attempt).terminal = true;
          },
          [&](const AttemptCancelled& w) { durable_.at(w.attempt).at.state = S::kCancelled; },
          [&](const RunParked& w) {
            ++seen_.parked;
            parked_.insert(w.run);
          },
          [&](const RunUnparked& w) { parked_.erase(w.run); },
          [&](const RunEnded& w) { end_run(w.attempt, w.outcome); },
          [&](const EpochBegun&) {},
          [&](const MetaSet&) {},
          [&](const ScopeDefined&) {},
          [&](const Note& w) {
            if (w.kind == "adopted") ++seen_.adopted;
          },
      },
      write);
}

void World::check_end() {
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
    if (ended == parked)
      fail("run " + std::to_string(r) + (ended ? " ended and parked" : " never ended"));
    if (!parked) continue;
    bool is_short = false;
    for (const ScopeId s : plan_.path(run))
      is_short = is_short || ledger_->balance(s).free() < plan_.task_of(run).ask;
    if (!is_short) fail("run " + std::to_string(r) + " is parked though there is money for it");
  }
}

}  // namespace proctor::sim
