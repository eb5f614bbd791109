// What facts change: those that stand as notes (standing_fact.h) and those that rows stand for. The
// only code that does: a life of the scheduler applies each fact as it decides it, and the next
// life applies the same facts from the journal, by the same functions (docs/decisions/115). Nothing
// here decides, writes or asks for an effect; what only the living do (waits, cancels, answers) is
// where they decide.
#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/result.h"
#include "common/score/outcome.h"
#include "coordinator/core/raise_note.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

void Scheduler::apply(const WorkerJudged& fact) {
  using Quarantine = WorkerState::Quarantine;
  roster_.edit(roster_.index_of(fact.worker), [&](WorkerState& s) {
    switch (fact.verdict) {
      case WorkerJudged::Verdict::kQuarantined:
        if (s.quarantine == Quarantine::kOperator) return;
        s.quarantine = Quarantine::kFailures;
        s.quarantines = fact.nth == 0 ? s.quarantines + 1 : fact.nth;
        s.reason = fact.reason;
        return;
      case WorkerJudged::Verdict::kReleased:  // one more failure and it is back at once
        if (s.quarantine != Quarantine::kFailures) return;
        s.quarantine = Quarantine::kNone;
        s.failures = settings_.retries.quarantine_after - 1;
        return;
      case WorkerJudged::Verdict::kRecovered:
        s.failures = s.quarantines = 0;
        return;
    }
  });
}

void Scheduler::apply(const LossJudged& fact) {
  switch (fact.verdict) {
    case LossJudged::Verdict::kBlamed:
      return poison_.blame(fact.attempt, fact.worker, fact.boot);
    case LossJudged::Verdict::kWithdrawn:
      static_cast<void>(poison_.withdraw(fact.attempt));
      return;
    case LossJudged::Verdict::kExcused:
      excused_.insert(fact.attempt);
      return;
  }
}

void Scheduler::apply(const FaultFact& fact) {
  faults_.take(fact);
  if (fact.verdict == FaultFact::Verdict::kFailed && agent_exit(fact.cause))
    unstarted_[fact.attempt.run] = fact.attempt.no;
}

void Scheduler::apply(const RunEscalated& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded || phase == RunPhase::kRemoved || phase == RunPhase::kCancelled ||
      phase == RunPhase::kHeld)
    return;
  leave_line(fact.run);
  phase = RunPhase::kHeld;
  ++held_;
}

void Scheduler::apply(const StageChecked& fact) {
  gates_.take(fact);
}

void Scheduler::apply(const StageOpened& fact) {
  gates_.take(fact);
  queue_.shut_from(gates_.shut_from());
}

void Scheduler::apply(const RunParked& fact) {
  if (parked_rows_[fact.run.raw()]) return;
  parked_rows_[fact.run.raw()] = true;
  ++rows_parked_;
}

void Scheduler::apply(const RunUnparked& fact) {
  if (!parked_rows_[fact.run.raw()]) return;
  parked_rows_[fact.run.raw()] = false;
  --rows_parked_;
}

void Scheduler::apply(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  const auto worker = [&](const std::function<void(WorkerState&)>& edit) {
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
    case OperatorActKind::kDrain:  // of the campaign: it ends with the life that was told
      return worker([](WorkerState& s) { s.drained = true; });
    case OperatorActKind::kCloseStage:
      gates_.closed.insert("stage:" + act.stage);
      [[fallthrough]];
    case OperatorActKind::kCancel:
      for (const RunId run : act.runs) cancel_run(run);
      return;
    case OperatorActKind::kRequeue:
    case OperatorActKind::kApprove:
      for (const AttemptId& id : fact.forgiven) forgive(id);
      for (const AttemptId& id : fact.set_aside) put_aside(id);
      for (const RunId run : act.runs) forgive_fault(run);
      for (const RunId run : act.runs) line_up(run);
      return;
    case OperatorActKind::kQuarantine:
      return worker([&](WorkerState& s) {
        s.quarantine = WorkerState::Quarantine::kOperator;
        s.reason = act.reason.empty() ? "by " + act.by : act.reason + " (" + act.by + ")";
      });
    case OperatorActKind::kRelease:
      return worker([](WorkerState& s) { s.set_free(); });
    case OperatorActKind::kKick:
      return worker([&](WorkerState& s) { s.kicked = fact.boot; });
    case OperatorActKind::kApproveStage:
      return gates_.approve(act.stage, Digest::from_hex(act.digest).value(), act.by);
    case OperatorActKind::kWaive:
      gates_.waived[act.stage].insert(act.criterion);
      return;
    case OperatorActKind::kReview:
    case OperatorActKind::kRaise:
      return;  // these have rows of their own: RunReviewed, ScopeDefined
  }
}

// ---------------------------------------------------------------- of attempts and outcomes

// Of one that is paid for there is nothing else to know: a million of them make no entries.
void Scheduler::count_made(const AttemptId& id) {
  auto& made = attempts_made_[id.run.raw()];
  made = std::max(made, static_cast<std::uint16_t>(id.no.raw()));
  denied_.erase(id.run);
}

void Scheduler::apply(const AttemptIntent& fact) {
  const RunId run = fact.attempt.run;
  count_made(fact.attempt);
  Attempt a;
  a.id = fact.attempt;
  a.seq = fact.seq;
  a.ask = fact.ask;
  a.alone = poison_.is_suspect(run);
  plan_.each_scope(
      run, [&](ScopeId s) { balances_[s.raw()].reserved = balances_[s.raw()].reserved + a.ask; });
  if (phases_[run.raw()] == RunPhase::kQueued) {
    leave_line(run);
    phases_[run.raw()] = RunPhase::kActive;
  }
  PROCTOR_ASSERT(live_.emplace(run, std::move(a)).second);
}

// Whoever had what is paid for is remembered as long as nobody needs its place more.
void Scheduler::apply(const AttemptGranted& fact) {
  Attempt* a = live(fact.attempt);
  const std::optional<WorkerIndex> owner = a != nullptr || roster_.names() < kRosterMax / 2
                                               ? roster_.index_of(fact.worker)
                                               : roster_.find(fact.worker);
  if (owner) remember_owner(fact.attempt.run, *owner);
  if (a == nullptr) return;
  a->owner = owner;
  a->granted_at = fact.at;
}

void Scheduler::apply(const AttemptDenied& fact) {
  denied_[fact.attempt.run] = {fact.attempt, fact.seq};
  const Attempt* a = live(fact.attempt);
  if (a == nullptr) return;
  give_back(*a);
  live_.erase(fact.attempt.run);
}

// What it spent since it was last heard of is unknown: charged at its ceiling, never at zero.
void Scheduler::apply(const AttemptLost& fact) {
  if (Attempt* a = live(fact.attempt))
    a->cost = Cost{.model = {}, .execution = a->ask, .human = {}, .overhead = {}};
  if (!fact.worker.raw().empty()) lost_.emplace(fact.attempt, fact.worker);
  if (!excused_.contains(fact.attempt)) count_failure(fact.attempt, RetryClass::kInfrastructure);
}

void Scheduler::apply(const AttemptResult& fact) {
  if (lost_.erase(fact.attempt) == 1) return;  // late: evidence of its attempt, and nothing else
  if (Attempt* a = live(fact.attempt)) a->cost = price(settings_.cost_model, fact.usage);
  if (fact.termination == Termination::kOperatorCancel) return;
  const RunId run = fact.attempt.run;
  // Whatever it did, its worker lives.  A failure of the host may be the worker's own death.
  if (!fact.infrastructure || fact.overload) poison_.survived(fact.attempt);
  if (fact.termination != Termination::kAgentUnavailable &&
      (fact.overload || fact.termination != Termination::kInfrastructure))
    started_methods_.insert(plan_.runs[run.raw()].method);
  if (fact.infrastructure) {
    if (fact.termination == Termination::kAgentUnavailable) unavailable_[run] = fact.attempt.no;
    count_failure(fact.attempt,
                  fact.overload ? RetryClass::kOverload : RetryClass::kInfrastructure);
  } else if (set_aside_.contains(fact.attempt)) {  // the operator's act was read before it
    count_failure(fact.attempt, RetryClass::kInfrastructure);
  }
  if (!fact.sets_outcome) return;
  apply(RunEnded{run, fact.attempt, fact.outcome});
  if (const auto it = invalid_.find(run); it != invalid_.end())
    it->second.how = invalid_by(fact.termination, fact.infrastructure, fact.overload);
}

void Scheduler::apply(const RunEnded& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded) return;
  leave_line(fact.run);
  phase = RunPhase::kEnded;
  ++ended_[static_cast<std::size_t>(fact.outcome)];
  if (removed_later_.contains(fact.run)) ++ended_removed_[static_cast<std::size_t>(fact.outcome)];
  if (fact.outcome == RunOutcome::kInvalid)
    invalid_[fact.run] = {fact.attempt.no, Invalid::kCounted};
  poison_.rest(fact.run);
}

// What is under way is seen to its end; all else that has not ended is removed wherever it waits.
void Scheduler::apply(const RunRemoved& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded || live_.contains(fact.run)) {
    removed_later_.insert(fact.run);
    if (fact.ended) ++ended_removed_[static_cast<std::size_t>(*fact.ended)];
    return;
  }
  if (phase == RunPhase::kCancelled) --cancelled_;
  leave_line(fact.run);
  phase = RunPhase::kRemoved;
  ++removed_;
}

// A result that ended its run decides nothing any more; it is one failed attempt.  To a life that
// is restored the run has not ended: the journal has forgotten that with the same act.
void Scheduler::put_aside(const AttemptId& decided) {
  const RunId run = decided.run;
  set_aside_.insert(decided);
  unstarted_.erase(run);
  if (const auto it = invalid_.find(run); it != invalid_.end() && it->second.by == decided.no) {
    if (it->second.how == Invalid::kUncounted) count_failure(decided, RetryClass::kInfrastructure);
    invalid_.erase(it);
    --ended_[static_cast<std::size_t>(RunOutcome::kInvalid)];
    if (removed_later_.contains(run))
      --ended_removed_[static_cast<std::size_t>(RunOutcome::kInvalid)];
    in_line(run);
  }
  poison_.wake(run);
  poison_.pardon(run);
}

void Scheduler::count_failure(const AttemptId& failed, RetryClass of) {
  const RunId run = failed.run;
  if (const auto it = forgiven_.find(run); it != forgiven_.end() && failed.no <= it->second) return;
  if (of == RetryClass::kOverload) {
    ++overloads_[run];
    return;
  }
  auto& n = failures_[run.raw()];
  if (n < UINT16_MAX) ++n;
}

// ---------------------------------------------------------------- of money

void Scheduler::spend(RunId run, MicroUsd amount) {
  plan_.each_scope(run, [&](ScopeId s) {
    ScopeBalance& b = balances_[s.raw()];
    b.spent = b.spent + amount;
  });
}

void Scheduler::give_back(const Attempt& a) {
  plan_.each_scope(a.id.run, [&](ScopeId s) {
    balances_[s.raw()].reserved = balances_[s.raw()].reserved - a.ask;
  });
}

void Scheduler::apply(const AttemptSettled& fact) {
  spend(fact.attempt.run, fact.charged);
  if (const Attempt* a = live(fact.attempt)) give_back(*a);
}

void Scheduler::apply(const RunReviewed& fact) {
  reviews_ = fact.seq;
  spend(fact.run, fact.charged);
}

void Scheduler::apply(const BudgetRaised& fact) {
  const Status raised = raise_cap(plan_.scopes, fact);
  PROCTOR_ASSERT(raised.ok());
  ScopeBalance& balance = balances_[fact.scope.raw()];
  balance.cap = fact.to;
  alerts_.rearm(fact.scope, balance);
}

void Scheduler::apply(const BudgetAlert& fact) {
  alerts_.take(fact);
}

void Scheduler::apply(const RunDominates& fact) {
  dominant_ids_.insert(fact.attempt);
  dominant_.push_back(fact);
}

// ---------------------------------------------------------------- of one run

// Out of wherever it waits; an attempt of it that is out is not touched.
void Scheduler::leave_line(RunId run) {
  switch (phases_[run.raw()]) {
    case RunPhase::kQueued:
      return queue_.remove(run);
    case RunPhase::kParked:
      --parked_;
      shut_.erase(run);
      return;
    case RunPhase::kHeld:
      --held_;
      return;
    case RunPhase::kBackoff:
      due_.erase({backoff_.at(run).until, run});
      backoff_.erase(run);
      return;
    case RunPhase::kActive:
    case RunPhase::kEnded:
    case RunPhase::kRemoved:
    case RunPhase::kCancelled:
      return;
  }
}

void Scheduler::cancel_run(RunId run) {
  RunPhase& phase = phases_[run.raw()];
  if (phase == RunPhase::kEnded || phase == RunPhase::kRemoved || phase == RunPhase::kCancelled)
    return;
  leave_line(run);
  phase = RunPhase::kCancelled;
  ++cancelled_;
}

// Whatever it was kept for, it is to be done now.
void Scheduler::line_up(RunId run) {
  switch (phases_[run.raw()]) {
    case RunPhase::kCancelled:
      --cancelled_;
      return in_line(run);
    case RunPhase::kParked:
    case RunPhase::kHeld:
    case RunPhase::kBackoff:
      leave_line(run);
      return in_line(run);
    case RunPhase::kQueued:
    case RunPhase::kActive:
    case RunPhase::kEnded:
    case RunPhase::kRemoved:
      return;
  }
}

// Failures up to this attempt count no longer; a suspect stays one.
void Scheduler::forgive(const AttemptId& last) {
  forgiven_[last.run] = last.no;
  unstarted_.erase(last.run);
  failures_[last.run.raw()] = 0;
  overloads_.erase(last.run);
  poison_.pardon(last.run);
}

// An operator wants the run tried: whatever its task or method is parked for is forgiven.
void Scheduler::forgive_fault(RunId run) {
  for (const FaultSubject& subject : {task_subject(run), method_subject(run)}) {
    if (!faults_.is_parked(subject)) continue;
    faults_.forgive(subject);
    release_shut(subject);
  }
}

}  // namespace proctor
