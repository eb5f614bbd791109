// The scheduler's half that chooses workers: any with room, or for a run that may be killing its
// workers one that has nothing else (poison.h).
#include <algorithm>

#include "common/base/result.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

std::uint64_t Scheduler::needs_of(RunId run) const {
  return plan_.needs_of(run) | (poison_.is_suspect(run) ? capability::kAlone : 0) |
         (waits_for_another(run) ? capability::kElsewhere : 0);
}

std::optional<WorkerIndex> Scheduler::worker_for(RunId run) const {
  const std::uint64_t needs = plan_.needs_of(run);
  if (poison_.is_suspect(run)) return roster_.pick_alone(needs);
  const FaultSubject task = task_subject(run), method = method_subject(run);
  if (!faults_.has_row(task) && !faults_.has_row(method)) return roster_.pick(needs);
  const auto other = roster_.pick(needs, [&](const WorkerId& w) {
    return faults_.failed_at(task, w) || faults_.failed_at(method, w);
  });
  return other || waits_for_another(run) ? other : roster_.pick(needs);
}

void Scheduler::remember_owner(RunId run, WorkerIndex w) {
  owners_[run.raw()] = w < UINT16_MAX ? static_cast<std::uint16_t>(w + 1) : 0;
}

bool Scheduler::is_anothers(const AttemptId& id, WorkerIndex w) const {
  if (const auto it = lost_.find(id); it != lost_.end()) return it->second != roster_.at(w).id;
  if (const auto it = live_.find(id.run); it != live_.end() && it->second.id == id)
    return it->second.owner && *it->second.owner != w;
  const std::uint32_t run = id.run.raw();
  return attempts_made_[run] == id.no.raw() && owners_[run] != 0 && owners_[run] - 1U != w;
}

void Scheduler::seat(Attempt& a, WorkerIndex w) {
  a.worker = w;
  a.owner = w;
  remember_owner(a.id.run, w);
  list_at(w, a.id.run);
  roster_.hold(w);
  if (!a.alone) return;
  roster_.edit(w, [](WorkerState& s) { s.kept = true; });
  if (kept_ == w) kept_.reset();
}

void Scheduler::wake(WorkerIndex w) {
  const WorkerState& s = roster_.at(w);
  const std::uint64_t has = s.has | capability::kElsewhere;
  if (s.is_empty()) queue_.wake_workers(has | capability::kAlone);
  if (0 < s.free()) queue_.wake_workers(has);
}

// One worker at a time gets nothing more until it is empty, as long as a suspect waits for one.
void Scheduler::keep_for_suspects() {
  std::optional<std::uint64_t> wanted;
  for (const auto& [needs, runs] : queue_.waiting_for_workers())
    if ((needs & capability::kAlone) != 0)
      wanted = needs & ~(capability::kAlone | capability::kElsewhere);
  if (kept_) {
    const WorkerState& s = roster_.at(*kept_);
    if (wanted && s.takes_new() && (*wanted & ~s.has) == 0) return;
    const WorkerIndex w = *kept_;
    kept_.reset();
    roster_.edit(w, [](WorkerState& x) { x.kept = false; });
    wake(w);
  }
  if (!wanted) return;
  kept_ = roster_.pick_to_keep(*wanted);
  if (!kept_) return;
  roster_.edit(*kept_, [](WorkerState& s) { s.kept = true; });
  wake(*kept_);
}

bool Scheduler::has_lone_attempt(WorkerIndex w) const {
  if (!roster_.at(w).kept) return false;
  return std::ranges::any_of(attempts_at(w), [&](const AttemptId& id) {
    const Attempt& a = live_.at(id.run);
    return a.alone && assigned_to(a, w);
  });
}

}  // namespace proctor
