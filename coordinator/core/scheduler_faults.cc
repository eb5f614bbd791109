// The scheduler's half that tells a broken task or method from a broken host (fault_book.h): whose
// failure it counts as, where it is tried next, and when its runs are parked.
#include <algorithm>
#include <utility>

#include "common/score/outcome.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

FaultSubject Scheduler::task_subject(RunId run) const {
  return {FaultSubject::Kind::kTask, plan_.runs[run.raw()].task};
}

FaultSubject Scheduler::method_subject(RunId run) const {
  return {FaultSubject::Kind::kMethod, plan_.runs[run.raw()].method};
}

bool Scheduler::is_shut(RunId run) const {
  if (waits_for_start(run)) return true;
  return faults_.is_parked(task_subject(run)) || faults_.is_parked(method_subject(run));
}

// Its last attempt ended as if its program could not start, of a method that nobody saw at work: no
// other attempt is drawn, for this one may yet turn out to be its failure.
bool Scheduler::waits_for_start(RunId run) const {
  const auto it = unstarted_.find(run);
  return it != unstarted_.end() && it->second.raw() == attempts_made_[run.raw()];
}

// What a result says of its task and its method: failures that are theirs, and that they work.
void Scheduler::judge_fault(const AttemptId& id, const wire::ResultMessage& r, WorkerIndex from) {
  if (r.termination == Termination::kOperatorCancel) return;
  if (r.fault == Fault::kTask) return fault_failed(task_subject(id.run), id, r, from);
  if (r.fault == Fault::kAgent) {
    fault_worked(task_subject(id.run), id, from);  // its setup was done
    if (agent_exit(r.cause) && started_methods_.contains(plan_.runs[id.run.raw()].method)) return;
    return fault_failed(method_subject(id.run), id, r, from);
  }
  if (r.termination == Termination::kInfrastructure && !r.overload) return;  // says nothing
  fault_worked(task_subject(id.run), id, from);
  fault_worked(method_subject(id.run), id, from);
}

void Scheduler::fault_failed(const FaultSubject& subject, const AttemptId& id,
                             const wire::ResultMessage& r, WorkerIndex from) {
  const FaultFact fact{
      subject,  FaultFact::Verdict::kFailed, id, roster_.at(from).id, r.cause, r.rationale,
      now_.wall};
  record(fact);
  park_if_at_fault(subject);
}

// A row is rare, so this is mostly a look.  A task that failed on one host alone and works on
// another says something of that host; an agent may fail as it likes, and says nothing of any.
void Scheduler::fault_worked(const FaultSubject& subject, const AttemptId& id, WorkerIndex from) {
  if (!faults_.has_row(subject)) return;
  const WorkerId& worker = roster_.at(from).id;
  const std::optional<FaultBook::Alone> alone = faults_.failed_alone(subject, worker);
  const FaultFact fact{subject, FaultFact::Verdict::kWorked, id, worker, "", "", now_.wall};
  record(fact);
  release_shut(subject);
  queue_.wake_workers(capability::kAll);  // who waited for another worker need not
  if (!alone || subject.kind != FaultSubject::Kind::kTask) return;
  const WorkerIndex w = roster_.index_of(alone->worker);
  for (std::uint32_t i = 0; i < alone->failures; ++i) count_host_failure(w);
}

// Somebody who takes new work, could run it and has not failed at it.
bool Scheduler::another_could(std::uint64_t needs,
                              const std::function<bool(const WorkerId&)>& failed) const {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (s.takes_new() && 0 < s.slots && (needs & ~s.has) == 0 && !failed(s.id)) return true;
  }
  return false;
}

void Scheduler::park_if_at_fault(const FaultSubject& subject) {
  if (faults_.is_parked(subject) || !faults_.is_due(subject)) return;
  const FaultFact last = *faults_.last(subject);
  // A model is no task's: what fails for want of it fails everywhere, also where it had worked.
  if (subject.kind == FaultSubject::Kind::kMethod && !is_no_model(last.cause)) {
    // It may lack something in one task's image alone: those runs end as they are registered to.
    if (started_methods_.contains(static_cast<std::uint16_t>(subject.index))) return;
    const std::size_t tasks =
        faults_.distinct(subject, [&](RunId run) { return plan_.runs[run.raw()].task; });
    if (tasks < std::min<std::size_t>(2, plan_.tasks.size())) return;
  }
  if (faults_.workers(subject).size() < 2 &&
      another_could(plan_.needs_of(last.attempt.run),
                    [&](const WorkerId& w) { return faults_.failed_at(subject, w); }))
    return;
  FaultFact fact = last;
  fact.verdict = FaultFact::Verdict::kParked;
  fact.at = now_.wall;
  record(fact);
  out_.push_back(Alert{describe_fault(subject), true, last.attempt.run});
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r)
    if (task_subject(RunId(r)) == subject || method_subject(RunId(r)) == subject) shut(RunId(r));
}

std::string Scheduler::describe_fault(const FaultSubject& subject) const {
  return std::string(subject.kind == FaultSubject::Kind::kTask ? "its task" : "its method") +
         " is parked: it " + faults_.describe(subject);
}

std::vector<std::pair<RunId, std::string>> Scheduler::parked_faults() const {
  std::vector<std::pair<RunId, std::string>> out;
  for (const FaultSubject& subject : faults_.parked())
    out.emplace_back(faults_.last(subject)->attempt.run, describe_fault(subject));
  return out;
}

// Out of the line, if it is in it.  What is under way follows when it has ended.  Who was parked
// for want of money waits for this now: more money alone starts it no more, and no row says that it
// is what it waits for.
void Scheduler::shut(RunId run) {
  RunPhase& phase = phases_[run.raw()];
  const bool for_money = phase == RunPhase::kParked && !shut_.contains(run);
  if (phase == RunPhase::kQueued) {
    queue_.remove(run);
  } else if (phase == RunPhase::kBackoff) {
    due_.erase({backoff_.at(run).until, run});
    backoff_.erase(run);
  } else if (!for_money) {
    return;
  }
  if (parked_rows_[run.raw()]) record(RunUnparked{run});
  if (!for_money) ++parked_;
  phase = RunPhase::kParked;
  shut_.insert(run);
}

// It comes up (again), unless it is parked.
void Scheduler::queue_or_shut(RunId run) {
  phases_[run.raw()] = RunPhase::kQueued;
  queue_.put_back(run);
  if (is_shut(run)) shut(run);
}

void Scheduler::release_shut(const FaultSubject& subject) {
  std::vector<RunId> released;
  for (const RunId run : shut_)
    if ((task_subject(run) == subject || method_subject(run) == subject) && !is_shut(run))
      released.push_back(run);
  for (const RunId run : released) {
    shut_.erase(run);
    --parked_;
    in_line(run);
  }
}

// Where it failed last it is not tried again while another worker could do better.
bool Scheduler::waits_for_another(RunId run) const {
  const FaultSubject task = task_subject(run), method = method_subject(run);
  const bool of_task = faults_.is_due(task), of_method = faults_.is_due(method);
  if (!of_task && !of_method) return false;
  return another_could(plan_.needs_of(run), [&](const WorkerId& w) {
    return (of_task && faults_.failed_at(task, w)) || (of_method && faults_.failed_at(method, w));
  });
}

// Who could do better may have gone meanwhile.
void Scheduler::look_at_faults() {
  const std::vector<FaultSubject> due = faults_.due();
  for (const FaultSubject& subject : due) park_if_at_fault(subject);
  if (!due.empty()) queue_.wake_workers(capability::kAll);
}

}  // namespace proctor
