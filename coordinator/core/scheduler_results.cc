// The scheduler's half that deals with results, restored state and explanations.
#include <utility>

#include "common/base/assert.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

AttemptResult record_of(const wire::ResultMessage& r, bool sets_outcome, WallTime at) {
  return AttemptResult{.attempt = r.attempt,
                       .outcome = r.outcome,
                       .termination = r.termination,
                       .rationale = r.rationale,
                       .infrastructure = r.infrastructure,
                       .report = r.report,
                       .archive = r.archive,
                       .archive_bytes = r.archive_bytes,
                       .usage = r.usage,
                       .started_ms = r.started_ms,
                       .finished_ms = r.finished_ms,
                       .sets_outcome = sets_outcome,
                       .at = at};
}

}  // namespace

void Scheduler::handle(const ResultReceived& e) {
  const wire::ResultMessage& r = e.result;
  const WorkerIndex w = roster_.index_of(e.worker);
  if (plan_.runs.size() <= r.attempt.run.raw() ||
      attempts_made_[r.attempt.run.raw()] < r.attempt.no.raw()) {
    out_.push_back(Alert{"worker " + e.worker.raw() + " sent a result for attempt " +
                         to_string(r.attempt) + ", which was never made"});
    return;
  }
  Attempt* a = live(r.attempt);
  const bool known_end =
      a == nullptr || a->state == State::kSettling || a->state == State::kClosing;
  if (known_end || (a->state == State::kFinishing && lost_.contains(r.attempt))) {
    // Late: evidence of its own attempt, never an outcome.  Its cost was charged when it was lost.
    if (lost_.erase(r.attempt) == 1) {
      late_writing_.insert(r.attempt);
      write(record_of(r, false, now_.wall), After{Step::kAckLate, r.attempt, 0, w});
    } else if (!late_writing_.contains(r.attempt)) {
      acks_[w].push_back(r.attempt);  // sent again because our Ack was lost
    }
    return;
  }
  switch (a->state) {
    case State::kIntent:
    case State::kReserving:
      out_.push_back(Alert{"worker " + e.worker.raw() + " sent a result for attempt " +
                           to_string(r.attempt) + " before it was assigned"});
      return;
    case State::kFinishing:
      a->ack_to.push_back(w);  // being made durable: acknowledged then
      return;
    case State::kGranting:
    case State::kAssigned:
    case State::kRunning:
      if (a->worker && *a->worker != w) {
        out_.push_back(Alert{"worker " + e.worker.raw() + " sent a result for attempt " +
                             to_string(r.attempt) + ", which is another worker's"});
        return;
      }
      finish(*a, r);
      return;
    case State::kSettling:
    case State::kClosing:
      return;  // above
  }
}

void Scheduler::finish(Attempt& a, const wire::ResultMessage& r) {
  a.cost = price(settings_.cost_model, r.usage);
  if (a.worker) a.ack_to.push_back(*a.worker);
  const bool cancelled = r.termination == Termination::kOperatorCancel;
  const bool again = cancelled || (r.infrastructure &&
                                   failures_[a.id.run.raw()] < settings_.infrastructure_retries);
  if (r.infrastructure && !cancelled) ++failures_[a.id.run.raw()];
  a.sets_outcome = !again;
  a.outcome = r.outcome;
  write(record_of(r, a.sets_outcome, now_.wall), After{Step::kAckAndSettle, a.id, a.seq, 0});
  if (cancelled) write(AttemptCancelled{a.id, "cancelled by the operator", now_.wall});
  release_slot(a);
  a.state = State::kFinishing;
  a.since = now_.mono;
  if (a.sets_outcome) end_run(a.id.run, r.outcome);
}

// ---------------------------------------------------------------- an earlier life

void Scheduler::restore_ended(AttemptId ended, RunOutcome outcome) {
  PROCTOR_ASSERT(!started_);
  phases_[ended.run.raw()] = RunPhase::kEnded;
  ++ended_[static_cast<std::size_t>(outcome)];
  queue_.skip(ended.run);
}

void Scheduler::restore_removed(RunId run) {
  PROCTOR_ASSERT(!started_);
  if (phases_[run.raw()] != RunPhase::kQueued) return;  // what has begun is seen to its end
  phases_[run.raw()] = RunPhase::kRemoved;
  ++removed_;
  queue_.skip(run);
}

void Scheduler::restore_spent(ScopeId scope, MicroUsd spent) {
  PROCTOR_ASSERT(!started_);
  balances_[scope.raw()].spent = balances_[scope.raw()].spent + spent;
}

void Scheduler::restore_attempt(const RestoredAttempt& r) {
  PROCTOR_ASSERT(!started_);
  const RunId run = r.attempt.run;
  auto& made = attempts_made_[run.raw()];
  made = std::max(made, static_cast<std::uint8_t>(r.attempt.no.raw()));
  using From = AttemptState;
  if (r.state == From::kLost) {
    ++failures_[run.raw()];
    if (!r.has_result) lost_.insert(r.attempt);
  }
  if (r.infrastructure && r.state != From::kLost) ++failures_[run.raw()];
  const bool open = !r.settled && r.state != From::kVoided && r.state != From::kDenied;
  if (r.state == From::kDenied) denied_[run] = {r.attempt, r.seq};
  if (!open) return;
  Attempt a;
  a.id = r.attempt;
  a.seq = r.seq;
  a.ask = r.ask;
  a.dominates = dominant_ids_.contains(r.attempt);
  switch (r.state) {
    case From::kReserving:
      a.state = State::kReserving;  // asked again under the same id
      break;
    case From::kGranted:
      a.state = State::kAssigned;  // perhaps sent: its worker's Sync tells
      a.granted_to = roster_.index_of(r.worker);
      a.granted_boot = r.boot;
      break;
    case From::kFinished:
    case From::kCancelled:
      a.state = State::kSettling;
      a.cost = price(settings_.cost_model, r.usage);
      break;
    case From::kLost:
      a.state = State::kSettling;
      a.cost.execution = r.ask;
      break;
    case From::kDenied:
    case From::kVoided:
      return;
  }
  for (const ScopeId s : plan_.path(run))
    balances_[s.raw()].reserved = balances_[s.raw()].reserved + r.ask;
  if (phases_[run.raw()] == RunPhase::kEnded) {
    a.sets_outcome = true;
  } else {
    phases_[run.raw()] = RunPhase::kActive;
    queue_.skip(run);
  }
  PROCTOR_ASSERT(live_.emplace(run, std::move(a)).second);
}

std::string Scheduler::explain(RunId run) const {
  switch (phases_[run.raw()]) {
    case RunPhase::kEnded:
      return "it has ended";
    case RunPhase::kRemoved:
      return "its task was removed from the campaign";
    case RunPhase::kParked:
      return "it is parked: an envelope has too little money left and none will come back";
    case RunPhase::kActive: {
      const auto it = live_.find(run);
      if (it == live_.end()) return "it is between two attempts";
      const std::string where =
          it->second.worker ? " on worker " + roster_.at(*it->second.worker).id.raw() : "";
      return "attempt " + to_string(it->second.id) + " is under way" + where;
    }
    case RunPhase::kQueued:
      break;
  }
  if (const auto scope = queue_.waiting_for(run))
    return "it waits for money in " + plan_.scopes[scope->raw()].name +
           ": what is reserved there may come back";
  if (mode_ != Mode::kRun) return "the campaign is stopping: nothing more is started";
  const std::uint32_t needs = plan_.task_of(run).needs;
  if (!roster_.pick(needs)) return "it waits for a free worker with " + capability::describe(needs);
  return "it waits for its turn in the plan's order";
}

std::string Scheduler::waiting_for_workers() const {
  std::string out;
  for (const auto& [needs, runs] : queue_.waiting_for_workers()) {
    if (roster_.anyone_has(needs)) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(runs) +
           (runs == 1 ? " run waits" : " runs wait") + " for a worker with " +
           capability::describe(needs);
  }
  return out;
}

}  // namespace proctor
