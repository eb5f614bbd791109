// The scheduler's half that begins with what an earlier life left in the journal.
#include <utility>

#include "common/base/assert.h"
#include "common/base/json.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

Status Scheduler::restore(const RestoredState& state) {
  const auto not_of_this_plan = [&](RunId run) { return plan_.runs.size() <= run.raw(); };
  const Error foreign{Errc::kCorrupt, "journal: a run the plan does not have"};
  for (const EndedRun& e : state.ended) {
    if (not_of_this_plan(e.run)) return foreign;
    restore_ended({e.run, e.attempt}, e.outcome);
  }
  for (const BudgetAlert& a : state.alerts) {
    if (plan_.scopes.size() <= a.scope.raw() || plan_.scopes[a.scope.raw()].name != a.name)
      return Error{Errc::kCorrupt, "journal: an alert of an envelope that is not there"};
    restore_alert(a);
  }
  for (const RunDominates& d : state.dominant) {
    if (not_of_this_plan(d.attempt.run)) return foreign;
    restore_dominant(d);
  }
  for (const ParkedRun& p : state.parked) {
    if (not_of_this_plan(p.run)) return foreign;
    restore_parked(p.run);
  }
  restore_reviews(static_cast<std::uint32_t>(state.reviews.size()));
  for (const Note& n : state.standing) PROCTOR_CHECK_OK(restore_note(n));
  const auto spend = [&](RunId run, MicroUsd amount) {
    plan_.each_scope(run, [&](ScopeId s) { restore_spent(s, amount); });
  };
  for (const RestoredAttempt& a : state.attempts) {
    if (not_of_this_plan(a.attempt.run)) return foreign;
    restore_attempt(a);
    if (a.settled) spend(a.attempt.run, a.charged);
  }
  for (const RunReviewed& r : state.reviews) {
    if (not_of_this_plan(r.run)) return foreign;
    spend(r.run, r.charged);
  }
  return ok_status();
}

void Scheduler::restore_ended(AttemptId ended, RunOutcome outcome) {
  PROCTOR_ASSERT(!started_);
  phases_[ended.run.raw()] = RunPhase::kEnded;
  ++ended_[static_cast<std::size_t>(outcome)];
  if (outcome == RunOutcome::kInvalid) invalid_[ended.run] = Invalid::kUncounted;
  queue_.skip(ended.run);
}

void Scheduler::restore_removed(RunId run) {
  PROCTOR_ASSERT(!started_);
  if (phases_[run.raw()] != RunPhase::kQueued) return;  // what has begun is seen to its end
  phases_[run.raw()] = RunPhase::kRemoved;
  ++removed_;
  queue_.remove(run);
}

void Scheduler::restore_spent(ScopeId scope, MicroUsd spent) {
  PROCTOR_ASSERT(!started_);
  balances_[scope.raw()].spent = balances_[scope.raw()].spent + spent;
}

void Scheduler::restore_attempt(const RestoredAttempt& r) {
  PROCTOR_ASSERT(!started_);
  const RunId run = r.attempt.run;
  auto& made = attempts_made_[run.raw()];
  made = std::max(made, static_cast<std::uint16_t>(r.attempt.no.raw()));
  using From = AttemptState;
  const bool was_suspect = poison_.is_suspect(run);
  restore_failures(r);
  // Attempts come in order, so the last one, which decided, has the last word.
  if (const auto it = invalid_.find(run); it != invalid_.end())
    it->second = r.state == From::kLost ? Invalid::kCounted
                                        : invalid_by(r.termination, r.infrastructure, r.overload);
  if (r.has_result && r.state != From::kLost && r.termination != Termination::kOperatorCancel &&
      r.termination != Termination::kAgentUnavailable &&
      (r.overload || r.termination != Termination::kInfrastructure))
    started_methods_.insert(plan_.runs[run.raw()].method);
  const bool open = !r.settled && r.state != From::kVoided && r.state != From::kDenied;
  std::optional<WorkerIndex> owner;  // whom its grant names, if nobody needs its place more
  if (!r.worker.raw().empty())
    owner = open || roster_.names() < kRosterMax / 2 ? roster_.index_of(r.worker)
                                                     : roster_.find(r.worker);
  if (owner) remember_owner(run, *owner);
  if (r.state == From::kLost && !r.has_result && !r.worker.raw().empty())
    lost_.emplace(r.attempt, r.worker);
  if (r.state == From::kDenied) denied_[run] = {r.attempt, r.seq};
  if (!open) return;
  Attempt a;
  a.id = r.attempt;
  a.seq = r.seq;
  a.ask = r.ask;
  a.alone = was_suspect;
  a.dominates = dominant_ids_.contains(r.attempt);
  a.owner = owner;
  a.granted_at = r.granted_at;
  switch (r.state) {
    case From::kReserving:
      a.state = State::kReserving;  // asked again under the same id
      break;
    case From::kGranted:
      a.state = State::kAssigned;  // perhaps sent: its worker's Sync tells
      a.granted_to = roster_.index_of(r.worker);
      list_at(*a.granted_to, run);
      unclaimed_.insert(run);
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
  } else if (phases_[run.raw()] == RunPhase::kQueued) {  // not cancelled
    phases_[run.raw()] = RunPhase::kActive;
    queue_.remove(run);
  }
  count_metered(a);
  PROCTOR_ASSERT(live_.emplace(run, std::move(a)).second);
}

// What counts against the run and who is to blame, as it was while it happened.
void Scheduler::restore_failures(const RestoredAttempt& r) {
  const RunId run = r.attempt.run;
  const bool survived = r.has_result && r.state != AttemptState::kLost &&
                        (!r.infrastructure || r.overload) &&
                        r.termination != Termination::kOperatorCancel;
  if (survived) poison_.survived(r.attempt);
  if (const auto it = forgiven_.find(run); it != forgiven_.end() && r.attempt.no <= it->second)
    return;
  if (r.state == AttemptState::kLost) {
    const auto judged = judged_.find(r.attempt);
    const bool excused = judged != judged_.end() && judged->second == LossJudged::Verdict::kExcused;
    if (!excused) count_failure(run, RetryClass::kInfrastructure);
  } else if (r.infrastructure && r.termination != Termination::kOperatorCancel) {
    count_failure(run, r.overload ? RetryClass::kOverload : RetryClass::kInfrastructure);
  } else if (set_aside_.contains(r.attempt)) {
    count_failure(run, RetryClass::kInfrastructure);
  }
}

Status Scheduler::restore_note(const Note& note) {
  roster_.set_time(note.at);  // of what it says of a worker
  PROCTOR_ASSERT(!started_);
  if (note.kind == kNoteLoss) return restore_loss(note);
  if (note.kind == kNoteFault) return restore_fault(note);
  if (note.kind != kNoteOperator) return restore_quarantine(note);
  PROCTOR_TRY(const OperatorFact fact, operator_fact_of(note));
  for (const RunId run : fact.act.runs)
    if (plan_.runs.size() <= run.raw())
      return Error{Errc::kCorrupt, note.kind + ": a run the plan does not have"};
  restore_act(fact);
  return ok_status();
}

void Scheduler::restore_act(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  const auto standing_of = [&](const std::function<void(WorkerState&)>& edit) {
    if (!act.worker.raw().empty()) roster_.edit(roster_.index_of(act.worker), edit);
  };
  switch (act.kind) {
    case OperatorActKind::kPause:
      paused_ = true;
      suspended_ = suspended_ || act.now;
      return;
    case OperatorActKind::kUnpause:
      paused_ = suspended_ = false;
      return;
    case OperatorActKind::kDrain:  // of the campaign: it ended with that life
      return standing_of([](WorkerState& s) { s.drained = true; });
    case OperatorActKind::kCancel:
      for (const RunId run : act.runs) {
        if (phases_[run.raw()] != RunPhase::kQueued) continue;
        phases_[run.raw()] = RunPhase::kCancelled;
        ++cancelled_;
        queue_.remove(run);
      }
      return;
    case OperatorActKind::kRequeue:
    case OperatorActKind::kApprove:
      for (const AttemptId& id : fact.forgiven) {
        forgiven_[id.run] = id.no;
        poison_.pardon(id.run);
      }
      for (const AttemptId& id : fact.set_aside) {
        set_aside_.insert(id);
        poison_.pardon(id.run);
      }
      for (const RunId run : act.runs) forgive_fault(run);
      for (const RunId run : act.runs) {
        if (phases_[run.raw()] != RunPhase::kCancelled) continue;
        --cancelled_;
        in_line(run);
      }
      return;
    case OperatorActKind::kQuarantine:
      return standing_of([&](WorkerState& s) {
        s.quarantine = WorkerState::Quarantine::kOperator;
        s.reason = act.reason.empty() ? "by " + act.by : act.reason + " (" + act.by + ")";
      });
    case OperatorActKind::kRelease:
      return standing_of([](WorkerState& s) { s.set_free(); });
    case OperatorActKind::kKick:
      return standing_of([&](WorkerState& s) { s.kicked = fact.boot; });
    case OperatorActKind::kReview:
    case OperatorActKind::kRaise:
      return;  // the caps that were given hold already
  }
}

Status Scheduler::restore_loss(const Note& note) {
  PROCTOR_TRY(const LossJudged fact, loss_of(note));
  if (plan_.runs.size() <= fact.attempt.run.raw())
    return Error{Errc::kCorrupt, note.kind + ": a run the plan does not have"};
  // What is taken back later is the blame, not the excuse.
  if (fact.verdict != LossJudged::Verdict::kWithdrawn) judged_[fact.attempt] = fact.verdict;
  if (fact.verdict == LossJudged::Verdict::kBlamed)
    poison_.blame(fact.attempt, fact.worker, fact.boot);
  if (fact.verdict == LossJudged::Verdict::kWithdrawn) poison_.withdraw(fact.attempt);
  return ok_status();
}

// It begins again: nobody knows how long the pause between the two lives was.
Status Scheduler::restore_quarantine(const Note& note) {
  const Result<Json> detail = parse_json(note.detail);
  if (!detail.ok() || !detail->is_object() || !detail->contains("worker") ||
      !(*detail)["worker"].is_string())
    return Error{Errc::kCorrupt, note.kind + ": of no worker"};
  const WorkerIndex w = roster_.index_of(WorkerId((*detail)["worker"].get<std::string>()));
  roster_.edit(w, [&](WorkerState& s) {
    if (note.kind == kNoteWorkerRecovered) s.quarantines = 0;
    if (note.kind == kNoteWorkerRecovered || s.quarantine == WorkerState::Quarantine::kOperator)
      return;
    const bool begins = note.kind == kNoteWorkerQuarantined;
    s.quarantine = begins ? WorkerState::Quarantine::kFailures : WorkerState::Quarantine::kNone;
    if (!begins) return;
    ++s.quarantines;
    s.reason = detail->value("reason", "infrastructure failures in a row");
  });
  return ok_status();
}

// After everything is restored, with the time: who waits, and for how long.
void Scheduler::restore_waits() {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    if (roster_.at(w).quarantine != WorkerState::Quarantine::kFailures) continue;
    roster_.edit(w, [&](WorkerState& s) {
      const Millis wait =
          doubled(settings_.retries.quarantine, settings_.retries.quarantine_max, s.quarantines);
      s.back_at = now_.mono + wait;
      s.back_at_wall = WallTime(now_.wall.raw() + wait.count());
    });
  }
  for (const RunId run : poison_.awake())
    if (phases_[run.raw()] == RunPhase::kEnded) poison_.rest(run);
  if (settings_.retries.escalate) restore_held();
  // After those: who waits for a person's decision waits for it whatever else is broken.
  for (std::uint32_t r = 0; !faults_.parked().empty() && r < phases_.size(); ++r)
    if (is_shut(RunId(r))) shut(RunId(r));
}

void Scheduler::restore_held() {
  for (std::uint32_t r = 0; r < phases_.size(); ++r) {
    const auto overloads = overloads_.find(RunId(r));
    const bool over =
        settings_.infrastructure_retries < failures_[r] ||
        (overloads != overloads_.end() && settings_.retries.overload < overloads->second) ||
        poison_.is_over(RunId(r));
    if (!over || (phases_[r] != RunPhase::kQueued && phases_[r] != RunPhase::kActive)) continue;
    if (phases_[r] == RunPhase::kQueued) queue_.remove(RunId(r));
    phases_[r] = RunPhase::kHeld;
    ++held_;
  }
}

}  // namespace proctor
