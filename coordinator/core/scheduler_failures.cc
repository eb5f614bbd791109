// The scheduler's half that deals with failures that are not the agent's: what is counted against
// whom, how long it waits, when a run is given up and when a worker stands back.
#include <utility>

#include "common/base/json.h"
#include "common/score/outcome.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

Millis quarantine_of(const SchedulerSettings& settings, std::uint32_t nth) {
  return doubled(settings.retries.quarantine, settings.retries.quarantine_max, nth);
}

}  // namespace

std::uint32_t Scheduler::failures_of(RunId run, RetryClass of) const {
  if (of == RetryClass::kInfrastructure) return failures_[run.raw()];
  const auto it = overloads_.find(run);
  return it == overloads_.end() ? 0 : it->second;
}

std::uint32_t Scheduler::retries_of(RetryClass of) const {
  return of == RetryClass::kOverload ? settings_.retries.overload
                                     : settings_.infrastructure_retries;
}

void Scheduler::wait_before_next(Attempt& a, RetryClass of) {
  const RunId run = a.id.run;
  a.wait = backoff(settings_.retries, of, failures_of(run, of), plan_.seed_of(run), a.id);
  a.wait_of = of;
}

void Scheduler::lose(Attempt& a, Loss why, const std::string& reason) {
  const bool blamed = blame(a, why);
  const bool convicted = blamed && a.alone && poison_.is_over(a.id.run);
  if (why == Loss::kKicked && a.worker) {
    const WorkerState& w = roster_.at(*a.worker);
    record(LossJudged{a.id, LossJudged::Verdict::kExcused, w.id, w.boot, now_.wall});
  }
  record(AttemptLost{a.id,
                     convicted ? reason + "; poison: " + describe_poison(poison_.blames(a.id.run))
                               : reason,
                     now_.wall, a.owner ? roster_.at(*a.owner).id : WorkerId()},
         After{Step::kSettleLost, a.id, a.seq, 0});
  release_slot(a);
  a.state = State::kFinishing;
  count_metered(a);
  if (why != Loss::kKicked) again_or_end(a, convicted);
}

// Only what had started there, and only what nothing else explains (DISTRIBUTED R13).
bool Scheduler::blame(const Attempt& a, Loss why) {
  const bool unexplained = why == Loss::kDied || why == Loss::kSilent;
  if (!unexplained || a.state != State::kRunning || !a.begun_in || !a.worker) return false;
  const WorkerState& w = roster_.at(*a.worker);
  hold_against(a.id, w.id, why == Loss::kDied && !w.past.empty() ? w.past.back() : w.boot);
  return true;
}

// A worker that was killed says in its next life what it was running (worker/shell/meter_book.h).
bool Scheduler::died_with_worker(const Attempt& a, const wire::ResultMessage& r,
                                 WorkerIndex from) const {
  // A worker that names a fault of task or method has seen the attempt end.
  return r.infrastructure && r.fault == Fault::kHost && !r.overload &&
         r.termination != Termination::kOperatorCancel && a.begun_in &&
         *a.begun_in != roster_.at(from).boot;
}

// A worker died under it, came back and goes on with it.  That is held against it as a loss is, and
// only who has nothing against it yet may go on: adopting gives no run more workers to kill.
bool Scheduler::outlived(Attempt& a, WorkerIndex w) {
  const WorkerId worker = roster_.at(w).id;
  if (!poison_.blames(a.id.run).empty()) {
    lose(a, Loss::kDied, "worker " + worker.raw() + " was restarted");
    return false;
  }
  note("outlived", a.id, worker.raw());
  hold_against(a.id, worker, *a.begun_in);
  return true;
}

void Scheduler::hold_against(const AttemptId& id, const WorkerId& worker, BootId boot) {
  record(LossJudged{id, LossJudged::Verdict::kBlamed, worker, boot, now_.wall});
}

// Its reason, once it is written down and told.
std::string Scheduler::convict(const AttemptId& id) {
  std::string why = describe_poison(poison_.blames(id.run));
  write(Note{now_.wall, kNotePoison, id.run, id.no, Json{{"why", why}}.dump()});
  out_.push_back(Alert{"poison: " + why, true, id.run});
  return why;
}

void Scheduler::withdraw_blame(const AttemptId& id, const WorkerId& worker, BootId boot) {
  record(LossJudged{id, LossJudged::Verdict::kWithdrawn, worker, boot, now_.wall});
  queue_.wake_workers(capability::kAll);  // who was a suspect may have company now
}

// Another attempt if the limit allows, else the run ends invalid or a person decides.
void Scheduler::again_or_end(Attempt& a, bool convicted) {
  const RunId run = a.id.run;
  constexpr RetryClass kOf = RetryClass::kInfrastructure;
  if (phases_[run.raw()] != RunPhase::kActive) return;  // cancelled
  if (convicted) (void)convict(a.id);
  const bool left = !convicted && failures_of(run, kOf) <= retries_of(kOf);
  if (left) return wait_before_next(a, kOf);
  if (settings_.retries.escalate)
    return hold_for_decision(run, convicted ? "it kills its workers" : "no attempt is left");
  record(RunEnded{run, a.id, RunOutcome::kInvalid});
}

void Scheduler::hold_for_decision(RunId run, const std::string& reason) {
  record(RunEscalated{run, reason, now_.wall});
  out_.push_back(Alert{"a person decides (approve or cancel): " + reason, true, run});
}

// Runs whose pause is over are in line again.  A run that waits for what its method's others show
// ends: as a failure, once an agent of the method is at work; as invalid (or a person decides),
// where nothing is left to be done that could show one.
void Scheduler::end_waits() {
  while (!due_.empty() && due_.begin()->first <= now_.mono) {
    const RunId run = due_.begin()->second;
    due_.erase(due_.begin());
    backoff_.erase(run);
    in_line(run);
  }
  const bool over = live_.empty() && backoff_.empty() && held_ == 0 && queue_.empty();
  std::erase_if(unstarted_, [&](const auto& item) {
    const auto [run, no] = item;
    const bool started = started_methods_.contains(plan_.runs[run.raw()].method);
    const RunPhase phase = phases_[run.raw()];
    const bool waits = phase == RunPhase::kParked || (started && phase == RunPhase::kHeld);
    if (!waits || !waits_for_start(run) || !(over || started)) return false;
    if (!started && settings_.retries.escalate) {
      hold_for_decision(run, "its program could not start");
      return false;
    }
    record(RunEnded{run, {run, no}, started ? RunOutcome::kFailure : RunOutcome::kInvalid});
    return true;
  });
}

// It is to be done (again): at once, or when the attempt that is still ending has ended.
void Scheduler::in_line(RunId run) {
  if (live_.contains(run)) {
    phases_[run.raw()] = RunPhase::kActive;
    return;
  }
  queue_or_shut(run);
}

// ---------------------------------------------------------------- workers that fail

void Scheduler::judge_worker(WorkerIndex w, const wire::ResultMessage& r) {
  if (r.termination == Termination::kOperatorCancel || r.overload) return;  // says nothing of it
  if (r.fault != Fault::kHost) return;  // nor this, until it works elsewhere (fault_worked)
  if (r.infrastructure || is_not_judged(r.outcome, r.rationale)) return count_host_failure(w);
  const WorkerState& s = roster_.at(w);
  if (s.quarantines != 0)
    return record(WorkerJudged{s.id, WorkerJudged::Verdict::kRecovered, 0, {}, {}, now_.wall});
  if (s.failures != 0) roster_.edit(w, [](WorkerState& x) { x.failures = 0; });
}

void Scheduler::count_host_failure(WorkerIndex w) {
  roster_.edit(w, [](WorkerState& s) { ++s.failures; });
  const WorkerState& s = roster_.at(w);
  if (settings_.retries.quarantine_after <= s.failures &&
      s.quarantine == WorkerState::Quarantine::kNone)
    quarantine(w);
}

void Scheduler::quarantine(WorkerIndex w) {
  const WorkerState& s = roster_.at(w);
  const std::uint32_t nth = s.quarantines + 1;
  record(WorkerJudged{s.id, WorkerJudged::Verdict::kQuarantined, nth, quarantine_of(settings_, nth),
                      std::to_string(s.failures) + " infrastructure failures in a row", now_.wall});
  stand_back(w);
  out_.push_back(
      Alert{"worker " + s.id.raw() + " gets nothing for a while: " + s.reason, true, {}});
}

// Until when, by this life's clocks.
void Scheduler::stand_back(WorkerIndex w) {
  roster_.edit(w, [&](WorkerState& s) {
    const Millis wait = quarantine_of(settings_, s.quarantines);
    s.back_at = now_.mono + wait;
    s.back_at_wall = WallTime(now_.wall.raw() + wait.count());
  });
}

// Tried again: one more failure and it is back at once, and for longer.
void Scheduler::end_quarantines() {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (s.quarantine != WorkerState::Quarantine::kFailures || now_.mono < s.back_at) continue;
    record(WorkerJudged{s.id, WorkerJudged::Verdict::kReleased, 0, {}, {}, now_.wall});
    wake(w);
  }
}

}  // namespace proctor
