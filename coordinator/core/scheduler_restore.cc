// The scheduler's half that begins with what an earlier life left in the journal.
#include <algorithm>
#include <utility>

#include "common/base/result.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

// As far as the row says it: what nobody decides by is not read back.
AttemptResult result_of(const RestoredAttempt& r) {
  AttemptResult out;
  out.attempt = r.attempt;
  out.outcome = r.outcome;
  out.termination = r.termination;
  out.infrastructure = r.infrastructure;
  out.overload = r.overload;
  out.usage = r.usage;
  out.sets_outcome = r.sets_outcome;
  return out;
}

}  // namespace

Status Scheduler::restore(const RestoredState& state) {
  const auto not_of_this_plan = [&](RunId run) { return plan_.runs.size() <= run.raw(); };
  const Error foreign{Errc::kCorrupt, "journal: a run the plan does not have"};
  for (const EndedRun& e : state.ended) {
    if (not_of_this_plan(e.run)) return foreign;
    restore_fact(RunEnded{e.run, {e.run, e.attempt}, e.outcome});
  }
  for (const BudgetAlert& a : state.alerts) {
    if (plan_.scopes.size() <= a.scope.raw() || plan_.scopes[a.scope.raw()].name != a.name)
      return Error{Errc::kCorrupt, "journal: an alert of an envelope that is not there"};
    restore_fact(a);
  }
  for (const RunDominates& d : state.dominant) {
    if (not_of_this_plan(d.attempt.run)) return foreign;
    restore_fact(d);
  }
  for (const ParkedRun& p : state.parked) {
    if (not_of_this_plan(p.run)) return foreign;
    restore_fact(RunParked{p.run, p.scope, p.short_by, WallTime(0)});
  }
  for (const Note& n : state.standing) PROCTOR_CHECK_OK(restore_note(n));
  for (const RestoredAttempt& a : state.attempts) {
    if (not_of_this_plan(a.attempt.run)) return foreign;
    restore_attempt(a);
    if (a.settled) restore_fact(AttemptSettled{a.attempt, a.charged, {}, a.overrun, WallTime(0)});
  }
  for (const RunReviewed& r : state.reviews) {
    if (not_of_this_plan(r.run)) return foreign;
    restore_fact(r);
  }
  return ok_status();
}

// A row stands for these facts, in the order in which they happened.
void Scheduler::restore_attempt(const RestoredAttempt& r) {
  PROCTOR_ASSERT(!started_);
  using From = AttemptState;
  const bool is_out = !r.settled && r.state != From::kVoided && r.state != From::kDenied;
  if (is_out)
    apply(AttemptIntent{r.attempt, r.seq, r.ask, WallTime(0)});
  else
    count_made(r.attempt);
  if (!r.worker.raw().empty()) apply(AttemptGranted{r.attempt, r.worker, r.boot, r.granted_at});
  if (r.state == From::kDenied)
    apply(AttemptDenied{r.attempt, r.seq, r.denied_scope, r.short_by, WallTime(0)});
  if (r.state == From::kLost) apply(AttemptLost{r.attempt, {}, WallTime(0), r.worker});
  if (r.has_result) apply(result_of(r));
  if (is_out) take_up(r);
}

// Which effect of an attempt that is out this life has to ask for again, or waits for.
void Scheduler::take_up(const RestoredAttempt& r) {
  const RunId run = r.attempt.run;
  Attempt& a = live_.at(run);
  switch (r.state) {
    case AttemptState::kReserving:
      a.state = State::kReserving;  // asked again under the same id
      break;
    case AttemptState::kGranted:
      a.state = State::kAssigned;  // perhaps sent: its worker's Sync tells
      a.granted_to = roster_.index_of(r.worker);
      a.granted_boot = r.boot;
      list_at(*a.granted_to, run);
      unclaimed_.insert(run);
      break;
    case AttemptState::kFinished:
    case AttemptState::kCancelled:
    case AttemptState::kLost:
      a.state = State::kSettling;
      break;
    case AttemptState::kDenied:
    case AttemptState::kVoided:
      break;  // they are not out
  }
  count_metered(a);
}

Status Scheduler::restore_note(const Note& note) {
  PROCTOR_ASSERT(!started_);
  PROCTOR_TRY(const StandingFact fact, standing_fact_of(note));
  const auto corrupt = [&](const char* why) { return Error{Errc::kCorrupt, note.kind + why}; };
  const auto fits = [&](RunId run) { return run.raw() < plan_.runs.size(); };
  const auto all_fit = [&](const std::vector<AttemptId>& ids) {
    return std::ranges::all_of(ids, fits, &AttemptId::run);
  };
  if (const auto* act = std::get_if<OperatorFact>(&fact))
    if (!std::ranges::all_of(act->act.runs, fits) || !all_fit(act->forgiven) ||
        !all_fit(act->set_aside))
      return corrupt(": a run the plan does not have");
  if (const auto* loss = std::get_if<LossJudged>(&fact))
    if (!fits(loss->attempt.run)) return corrupt(": a run the plan does not have");
  if (const auto* held = std::get_if<RunEscalated>(&fact))
    if (!fits(held->run)) return corrupt(": a run the plan does not have");
  if (const auto* checked = std::get_if<StageChecked>(&fact))
    PROCTOR_CHECK_OK(gates_.fits(*checked));
  if (const auto* opened = std::get_if<StageOpened>(&fact)) PROCTOR_CHECK_OK(gates_.fits(*opened));
  if (const auto* fault = std::get_if<FaultFact>(&fact))
    if (const RunId run = fault->attempt.run; !fits(run) || (fault->subject != task_subject(run) &&
                                                             fault->subject != method_subject(run)))
      return corrupt(": of a run that is not so in the plan");
  roster_.set_time(note.at);  // of what it says of a worker
  std::visit([this](const auto& f) { apply(f); }, fact);
  return ok_status();
}

// After everything is restored, with the time: who waits, and for how long.
void Scheduler::restore_waits() {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    // It begins again: nobody knows how long the pause between the two lives was.
    if (roster_.at(w).quarantine == WorkerState::Quarantine::kFailures) stand_back(w);
  }
  for (const RunId run : poison_.awake())
    if (phases_[run.raw()] == RunPhase::kEnded) poison_.rest(run);
  if (settings_.retries.escalate) hold_used_up();
  const bool is_any_shut = !faults_.parked().empty() || !unstarted_.empty();
  // After those: who waits for a person's decision waits for it whatever else is broken.
  for (std::uint32_t r = 0; is_any_shut && r < phases_.size(); ++r)
    if (is_shut(RunId(r))) shut(RunId(r));
}

// What no life has decided yet: attempts that `journal recover` enters as lost may be the last that
// were left.
void Scheduler::hold_used_up() {
  for (std::uint32_t r = 0; r < phases_.size(); ++r) {
    const auto used_up = [&](RetryClass of) { return retries_of(of) < failures_of(RunId(r), of); };
    const bool over = used_up(RetryClass::kInfrastructure) || used_up(RetryClass::kOverload) ||
                      poison_.is_over(RunId(r));
    if (over && !waits_for_start(RunId(r)) &&
        (phases_[r] == RunPhase::kQueued || phases_[r] == RunPhase::kActive))
      hold_for_decision(RunId(r), "no attempt is left");
  }
}

}  // namespace proctor
