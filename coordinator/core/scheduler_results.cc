// The scheduler's half that deals with results.
#include <utility>

#include "common/base/result.h"
#include "common/score/outcome.h"
#include "common/trace/run_report.h"
#include "common/wire/messages.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

// Times that cannot be are not known (0): reports count with them.
AttemptResult record_of(const wire::ResultMessage& r, bool sets_outcome, WallTime granted,
                        WallTime at) {
  const bool known = wrong_times(r.started_ms, r.finished_ms, granted, at).empty();
  return AttemptResult{.attempt = r.attempt,
                       .outcome = r.outcome,
                       .termination = r.termination,
                       .rationale = r.rationale,
                       .infrastructure = r.infrastructure,
                       .overload = r.overload,
                       .report = r.report,
                       .archive = r.archive,
                       .archive_bytes = r.archive_bytes,
                       .usage = r.usage,
                       .started_ms = known ? r.started_ms : 0,
                       .finished_ms = known ? r.finished_ms : 0,
                       .sets_outcome = sets_outcome,
                       .at = at};
}

// Could end its run with an outcome that counts.
bool decides(const wire::ResultMessage& r) {
  return !r.infrastructure && r.termination != Termination::kOperatorCancel;
}

// Nobody can check what such a result says, so it decides nothing: its worker has failed.
wire::ResultMessage without_evidence(wire::ResultMessage r) {
  std::string why = "no evidence came with its result, which said " +
                    std::string(to_string(r.outcome)) + ": " + r.rationale;
  if (limits::kDetailBytes < why.size()) why.resize(limits::kDetailBytes);
  wire::lose_evidence(r, std::move(why));
  return r;
}

}  // namespace

// Benchmarks of everything but execution keep no evidence: there is nothing to check.
bool Scheduler::runs_nothing(RunId run) const {
  return (plan_.task_of(run).needs & capability::kNull) != 0;
}

bool Scheduler::is_late_of(WorkerIndex w, const AttemptId& id) const {
  const auto it = lost_.find(id);
  return it != lost_.end() && it->second == roster_.at(w).id;
}

void Scheduler::refuse_result(const ResultReceived& e, const std::string& why) {
  out_.push_back(Alert{"worker " + e.worker.raw() + " sent a result for attempt " +
                       to_string(e.result.attempt) + ", " + why});
}

WallTime Scheduler::granted_at(const AttemptId& id) const {
  const auto it = live_.find(id.run);
  return it == live_.end() || it->second.id != id ? WallTime(0) : it->second.granted_at;
}

bool Scheduler::awaits(const WorkerId& worker, const AttemptId& id) const {
  const std::optional<WorkerIndex> w = roster_.find(worker);
  if (!w || plan_.runs.size() <= id.run.raw() || late_writing_.contains(id)) return false;
  if (is_late_of(*w, id)) return true;
  const auto it = live_.find(id.run);
  if (it == live_.end() || it->second.id != id || it->second.owner != w) return false;
  const State s = it->second.state;
  return s == State::kGranting || s == State::kAssigned || s == State::kRunning;
}

// Its Sync says what becomes of it: unless that has its result, it is lost at its ceiling.
void Scheduler::handle(const EvidenceHeard& e) {
  const std::optional<WorkerIndex> w = roster_.find(e.worker);
  Attempt* a = live(e.attempt);
  if (a == nullptr || !w || a->owner != w) return;
  a->at_work = true;
  if (a->state != State::kAssigned || !assigned_to(*a, *w)) return;
  a->state = State::kRunning;
  a->since = now_.mono;
}

void Scheduler::handle(const ResultReceived& e) {
  const wire::ResultMessage& r = e.result;
  const WorkerIndex w = roster_.index_of(e.worker);
  if (plan_.runs.size() <= r.attempt.run.raw() ||
      attempts_made_[r.attempt.run.raw()] < r.attempt.no.raw())
    return refuse_result(e, "which was never made");
  if (epoch_ < r.epoch) return refuse_result(e, "of an epoch that has not begun");
  Attempt* a = live(r.attempt);
  // Money follows attempts, and nobody but the worker that a grant names may speak of its attempt:
  // also after a restart of ours, and after the attempt was lost or has ended.
  if (is_anothers(r.attempt, w)) return refuse_result(e, "which is another worker's");
  const bool known_end =
      a == nullptr || a->state == State::kSettling || a->state == State::kClosing;
  if (known_end || (a->state == State::kFinishing && lost_.contains(r.attempt))) {
    // Late: evidence of its own attempt, never an outcome.  Its cost was charged when it was lost.
    if (lost_.contains(r.attempt)) {
      // One that came to its end shows that its worker did not die of it; what a killed worker says
      // of it in its next life shows nothing.
      if (!r.infrastructure && poison_.withdraw(r.attempt))
        withdraw_blame(r.attempt, e.worker, roster_.at(w).boot);
      late_writing_.insert(r.attempt);
      record(record_of(r, false, WallTime(0), now_.wall), After{Step::kAckLate, r.attempt, 0, w});
    } else if (!late_writing_.contains(r.attempt)) {
      acks_[w].push_back(r.attempt);  // sent again because our Ack was lost
    }
    return;
  }
  switch (a->state) {
    case State::kIntent:
    case State::kReserving:
      return refuse_result(e, "before it was assigned");
    case State::kFinishing:
      a->ack_to.push_back(w);  // being made durable: acknowledged then
      return;
    case State::kGranting:
    case State::kAssigned:
    case State::kRunning:
      // Assigned in this life of ours, and of another one: made up.
      if (a->sent_to && !a->granted_to && r.epoch != epoch_)
        return refuse_result(e, "of another epoch than its assignment");
      if (decides(r) && r.archive_bytes == 0 && !runs_nothing(r.attempt.run))
        return finish(*a, without_evidence(r), w);
      finish(*a, r, w);
      return;
    case State::kSettling:
    case State::kClosing:
      return;  // above
  }
}

void Scheduler::finish(Attempt& a, const wire::ResultMessage& r, WorkerIndex from) {
  const RunId run = a.id.run;
  if (a.worker) a.ack_to.push_back(*a.worker);
  const bool cancelled = r.termination == Termination::kOperatorCancel;
  const bool wanted = phases_[run.raw()] == RunPhase::kActive;
  const bool died = died_with_worker(a, r, from);
  if (died) {
    hold_against(a.id, roster_.at(from).id, *a.begun_in);
  } else {
    // What it was killed under says nothing of the life it is in now.
    const BootId sent_to = a.sent_to ? *a.sent_to : a.granted_boot;
    if (sent_to == roster_.at(from).boot) judge_worker(from, r);
  }
  AttemptResult fact = record_of(r, false, a.granted_at, now_.wall);
  const bool convicted = died && a.alone && poison_.is_over(run) && wanted;
  if (convicted) fact.rationale += "; poison: " + convict(a.id);
  const bool failed = r.infrastructure && !cancelled;
  const bool unstarted = failed && r.fault == Fault::kAgent && agent_exit(r.cause);
  // An agent may choose its exit code: of a method that has been at work it is its failure.
  const bool its_failure =
      unstarted && wanted && started_methods_.contains(plan_.runs[run.raw()].method);
  bool again = cancelled || !wanted || unstarted;
  const RetryClass of = r.overload ? RetryClass::kOverload : RetryClass::kInfrastructure;
  const bool left = failed && !convicted && !unstarted && failures_of(run, of) < retries_of(of);
  if (failed) again = again || left || settings_.retries.escalate;
  fact.sets_outcome = !again;
  record(std::move(fact), After{Step::kAckAndSettle, a.id, a.seq, 0});
  if (left) wait_before_next(a, of);
  if (its_failure)
    record(RunEnded{run, a.id, RunOutcome::kFailure});
  else if (failed && !left && !unstarted && wanted && settings_.retries.escalate)
    hold_for_decision(run, convicted ? "it kills its workers" : "no attempt is left");
  if (cancelled) write(AttemptCancelled{a.id, "cancelled by the operator", now_.wall});
  release_slot(a);
  a.state = State::kFinishing;
  count_metered(a);
  a.since = now_.mono;
  if (!died) judge_fault(a.id, r, from);
}

}  // namespace proctor
