// What is broken before any work begins: a task whose setup fails everywhere, a method whose
// program starts nowhere, a host on which no setup works; and the oracles of whose failure it is.
#include <algorithm>

#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

void World::draw_faults(std::uint64_t workers) {
  settings_.retries.park_after = static_cast<std::uint32_t>(1 + below(4));
  switch (below(5)) {
    case 0:
      broken_task_ = static_cast<std::uint32_t>(below(plan_.tasks.size()));
      break;
    case 1:
      mute_method_ = static_cast<std::uint16_t>(below(3));
      break;
    case 2:
      if (1 < workers) deaf_ = WorkerId("w" + std::to_string(below(workers)));
      break;
    default:
      return;
  }
  strict_order_ = false;  // what waits for another worker is passed
}

bool World::fails_before_work(const SimWorker& w, AttemptId id, wire::ResultMessage& r) {
  const PlanView::Run& run = plan_.runs[id.run.raw()];
  if (deaf_ == w.id && faults_on_) {
    ++seen_.deaf;
    r.fault = Fault::kTask;
    r.cause = "setup step 1: no network";
  } else if (broken_task_ == run.task) {
    ++seen_.broken;
    r.fault = Fault::kTask;
    r.cause = "setup step 1: exit 1";
  } else if (mute_method_ == run.method) {
    ++seen_.mute;
    r.fault = Fault::kAgent;
    r.cause = "the agent could not start: exit 127";
    r.facts.agent_exit = 127;
  } else {
    return false;
  }
  r.infrastructure = true;
  r.outcome = RunOutcome::kInvalid;
  r.termination =
      r.fault == Fault::kAgent ? Termination::kAgentUnavailable : Termination::kInfrastructure;
  r.rationale = r.cause + "; stderr ends: it said so";
  fault_of_[id] = {r.fault, w.id.raw()};
  return true;
}

std::vector<FaultSubject> World::subjects_of(RunId run) const {
  const PlanView::Run& r = plan_.runs[run.raw()];
  return {{FaultSubject::Kind::kTask, r.task}, {FaultSubject::Kind::kMethod, r.method}};
}

bool World::is_broken(const FaultSubject& s) const {
  return s.kind == FaultSubject::Kind::kTask ? broken_task_ == s.index : mute_method_ == s.index;
}

bool World::is_parked_for_fault(RunId run) const {
  return std::ranges::any_of(subjects_of(run), [&](const FaultSubject& s) {
    const auto it = fault_rows_.find(s);
    return it != fault_rows_.end() && it->second.parked;
  });
}

// A failed attempt is made again after a while; but one that ends while its task or method is
// parked waits for that alone, and is asked for as soon as the row is over.
void World::waits(RunId run, Millis wait) {
  if (!is_parked_for_fault(run)) not_before_[run] = {now_, wait};
}

// A durable result: whose row it makes longer, and whose it ends.
void World::count_fault(const AttemptResult& w) {
  if (w.termination == Termination::kOperatorCancel) return;
  const std::vector<FaultSubject> subjects = subjects_of(w.attempt.run);
  const auto fault = fault_of_.find(w.attempt);
  if (fault == fault_of_.end()) {
    if (w.infrastructure && !w.overload) ++host_failures_[durable_.at(w.attempt).at.worker.raw()];
    if (w.termination == Termination::kInfrastructure && !w.overload) return;
    for (const FaultSubject& s : subjects) fault_rows_.erase(s);
    return;
  }
  const bool of_agent = fault->second.first == Fault::kAgent;
  if (of_agent) fault_rows_.erase(subjects[0]);
  fault_rows_[subjects[of_agent ? 1 : 0]].workers.push_back(fault->second.second);
  if (deaf_ && deaf_->raw() == fault->second.second) ++host_failures_[fault->second.second];
}

void World::check_fault(const Note& note) {
  if (note.kind != FaultFact::kNote) return;
  const auto fact = fact_of<FaultFact>(note);
  if (!fact.ok()) return fail(fact.error().detail);
  const std::string what = ": " + to_string(fact->attempt);
  if (fact->verdict == FaultFact::Verdict::kWorked) {
    ++seen_.let_go;
    for (std::uint32_t r = 0; r < plan_.runs.size(); ++r) touched_.insert(RunId(r));
    return;
  }
  if (fact->verdict != FaultFact::Verdict::kParked) return;
  const bool task = fact->subject.kind == FaultSubject::Kind::kTask;
  ++(task ? seen_.task_parked : seen_.method_parked);
  if (!is_broken(fact->subject) && !deaf_) fail("parked though nothing of it is broken" + what);
  FaultRow& row = fault_rows_[fact->subject];
  if (row.parked) fail("parked twice" + what);
  if (row.workers.size() < settings_.retries.park_after) fail("parked too early" + what);
  row.parked = true;
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r) not_before_.erase(RunId(r));
}

// After each commit: a task that failed often enough, on more than one host, is parked by now; and
// nothing that is parked with its task or method is said to wait for money.
void World::check_fault_rows() {
  for (const RunId run : parked_)
    if (is_parked_for_fault(run))
      fail("parked with its task, and for want of money: run " + std::to_string(run.raw()));
  for (const auto& [subject, row] : fault_rows_) {
    if (row.parked || subject.kind != FaultSubject::Kind::kTask || deaf_) continue;
    const bool two = std::ranges::any_of(
        row.workers, [&](const std::string& w) { return w != row.workers.front(); });
    if (two && settings_.retries.park_after <= row.workers.size())
      fail("a broken task goes on failing: task " + std::to_string(subject.index));
  }
}

// A worker stands back for its own failures, never for those of a task or a method.
void World::check_own_quarantine(const Note& note) {
  if (note.kind != kNoteWorkerQuarantined) return;
  const bool own = std::ranges::any_of(host_failures_, [&](const auto& one) {
    return 0 < one.second && note.detail.find("\"" + one.first + "\"") != std::string::npos;
  });
  if (!own) fail("a worker stands back for what is not its fault: " + note.detail);
}

void World::forgive_faults(const std::vector<RunId>& runs) {
  for (const RunId run : runs)
    for (const FaultSubject& s : subjects_of(run)) {
      const auto it = fault_rows_.find(s);
      if (it == fault_rows_.end() || !it->second.parked) continue;
      fault_rows_.erase(it);
      for (std::uint32_t r = 0; r < plan_.runs.size(); ++r) {
        touched_.insert(RunId(r));
        not_before_.erase(RunId(r));
      }
    }
}

}  // namespace proctor::sim
