// The scheduler's half that forgets workers: allocations that come and go bring new names for ever,
// and each look at the roster must not cost what a campaign's whole past costs.
#include <algorithm>

#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {
constexpr Millis kForgetEvery{60'000};
}  // namespace

bool Scheduler::takes_name(const WorkerId& worker) const {
  return roster_.find(worker) || roster_.names() < kRosterMax;
}

// By places: who is absent, has been for a lease, and stands under no word that must outlive that.
std::vector<bool> Scheduler::forgettable() const {
  std::vector<bool> out(roster_.size());
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    const bool told = s.drained || s.quarantine != WorkerState::Quarantine::kNone ||
                      s.kicked != BootId(0);  // an operator's word, or a quarantine that goes on
    out[w] = roster_.has_place(w) && !s.present && s.held == 0 && !told &&
             s.left_at + settings_.lease <= now_.mono;
  }
  const auto keep = [&](const std::optional<WorkerIndex>& w) {
    if (w) out[*w] = false;
  };
  for (const auto& [run, a] : live_) {
    keep(a.worker);
    keep(a.owner);
    keep(a.granted_to);
    for (const WorkerIndex w : a.ack_to) keep(w);
  }
  for (const Awaiting& step : awaiting_)
    for (const After& after : step.afters)
      if (after.step == Step::kAckLate) keep(after.worker);
  keep(kept_);
  return out;
}

// What a name did stays in the journal, and its attempts that were lost are known by it.
void Scheduler::forget_absent() {
  if (now_.mono < forget_at_) return;
  forget_at_ = now_.mono + kForgetEvery;
  const std::vector<bool> gone = forgettable();
  if (std::ranges::find(gone, true) == gone.end()) return;
  for (WorkerIndex w = 0; w < gone.size(); ++w) {
    if (!gone[w]) continue;
    const WorkerState& s = roster_.at(w);
    if (!last_gone_ || last_gone_->second <= s.since) last_gone_ = {s.id, s.since};
    roster_.forget(w);
    if (w < at_worker_.size()) at_worker_[w].clear();  // it has no place before its first attempt
    doubted_.erase(w);
    unheard_of_.erase(w);
  }
  for (std::uint16_t& owner : owners_)
    if (owner != 0 && gone[owner - 1U]) owner = 0;
}

}  // namespace proctor
