// The oracles: what must hold whatever happened.  They read the durable journal and the ledger,
// never the scheduler's own state.
#include <algorithm>

#include "common/base/overload.h"
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

void World::check_intent(const AttemptIntent& w) {
  const RunId run = w.attempt.run;
  Trail& t = durable_[w.attempt];
  if (w.seq != 0 && t.at.state != AttemptState::kDenied) fail("asked again without a denial");
  if (settings_.infrastructure_retries < failures_[run])
    fail("another attempt above the limit of retries: " + to_string(w.attempt));
  t.at = RestoredAttempt{};
  t.at.attempt = w.attempt;
  t.at.seq = w.seq;
  t.at.ask = w.ask;
  parked_.erase(run);
  if (w.attempt.no.raw() != 1 || w.seq != 0) return;
  if (strict_order_ && run < last_first_intent_) fail("out of plan order");
  RunId& last = last_of_task_[plan_.runs[run.raw()].task];
  if (run < last) fail("out of plan order within its task");
  last_first_intent_ = last = run;
}

void World::check_settled(const AttemptSettled& w) {
  Trail& t = durable_.at(w.attempt);
  if (t.at.settled) fail("settled twice: " + to_string(w.attempt));
  t.at.settled = true;
  t.at.charged = w.charged;
  ++came_back_;
  // What a lost attempt spent since it was last heard of is unknown: its whole ask is charged.
  // Usage is money here, one to one (see the price in World::World).
  const MicroUsd metered = MicroUsd::from_micros(static_cast<std::int64_t>(t.at.usage.tool_calls));
  if (w.charged != (t.lost ? t.at.ask : std::min(metered, t.at.ask)))
    fail("charged another amount than it cost: " + to_string(w.attempt));
  for (const ScopeId s : plan_.path(w.attempt.run)) {
    spent_[s] = spent_[s] + w.charged;
    if (plan_.scopes[s.raw()].cap < spent_[s]) fail("overspent " + plan_.scopes[s.raw()].name);
  }
}

// What one event led to.
void World::check_commands(const Event& e, const std::vector<Command>& commands) {
  const auto* synced = std::get_if<WorkerSynced>(&e);
  if (synced != nullptr) boot_heard_[synced->sync.worker] = synced->sync.boot;
  for (const Command& c : commands) {
    if (const auto* reply = std::get_if<ReplySync>(&c); reply != nullptr && synced != nullptr)
      check_reply(synced->sync, reply->reply);
    const auto* persist = std::get_if<Persist>(&c);
    if (persist == nullptr || !stopping_) continue;
    for (const JournalWrite& w : persist->writes)
      if (std::holds_alternative<AttemptIntent>(w)) fail("something starts though it is stopping");
  }
}

void World::check_reply(const wire::Sync& sync, const wire::SyncReply& reply) {
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
          },
          [&](const AttemptDenied& w) {
            durable_.at(w.attempt).at.state = S::kDenied;
            const auto [it, first] = denied_after_.emplace(w.attempt.run, came_back_);
            if (!first && it->second == came_back_)
              fail("asked in vain again though no money came back: " + to_string(w.attempt));
            it->second = ++came_back_;
          },
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
            if (w.infrastructure) ++failures_[w.attempt.run];
            const bool again =
                w.termination == Termination::kOperatorCancel ||
                (w.infrastructure && failures_[w.attempt.run] <= settings_.infrastructure_retries);
            if (w.sets_outcome == again) fail("a wrong end of its run: " + to_string(w.attempt));
            if (w.sets_outcome) end_run(w.attempt, w.outcome);
          },
          [&](const AttemptSettled& w) { check_settled(w); },
          [&](const AttemptVoided& w) {
            ++seen_.voided;
            ++came_back_;
            durable_.at(w.attempt).at.state = S::kVoided;
            durable_.at(w.attempt).terminal = true;
          },
          [&](const AttemptLost& w) {
            ++seen_.attempts_lost;
            ++failures_[w.attempt.run];
            Trail& t = durable_.at(w.attempt);
            if (t.terminal) fail("lost after its end: " + to_string(w.attempt));
            t.at.state = S::kLost;
            t.terminal = t.lost = true;
          },
          [&](const AttemptCancelled& w) { durable_.at(w.attempt).at.state = S::kCancelled; },
          [&](const RunParked& w) {
            ++seen_.parked;
            parked_.insert(w.run);
          },
          [&](const RunUnparked& w) { parked_.erase(w.run); },
          [&](const RunEnded& w) {
            ++seen_.ended_by_limit;
            if (failures_[w.run] <= settings_.infrastructure_retries)
              fail("given up too early: " + to_string(w.attempt));
            end_run(w.attempt, w.outcome);
          },
          [&](const RunReviewed&) { fail("a review that no operator booked"); },
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
