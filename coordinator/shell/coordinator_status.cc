// What the coordinator tells of itself, once a second.
#include <unistd.h>

#include <algorithm>
#include <span>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/contract/money_word.h"
#include "coordinator/shell/coordinator.h"

namespace proctor {
namespace {
constexpr std::chrono::seconds kStatusEvery(1);
}  // namespace

void Coordinator::tick() {
  const StatusSnapshot status = snapshot();
  if (options_.on_status) options_.on_status(status);
  write_status(status);
  floods_.next_second();
  if (const std::uint64_t held_back = spoken_.next_second(); 0 < held_back)
    log::warn(std::to_string(held_back) + " more warnings and alerts were not written down");
  status_timer_.expires_after(kStatusEvery);
  status_timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

// A disk that hangs gets one of them, not one a second.
void Coordinator::write_status(StatusSnapshot status) {
  if (writing_status_->exchange(true)) return;
  files_->post(
      0, [path = options_.folder.status(), status = std::move(status), writing = writing_status_] {
        (void)write_file(path, to_json(status), Durability::kLazy);
        *writing = false;
      });
}

StatusSnapshot Coordinator::snapshot() const {
  StatusSnapshot s;
  s.campaign = options_.campaign;
  s.unit = money_word(options_.scheduler.cost_model);
  s.pid = ::getpid();
  s.at = wall_now();
  s.begun = begun_;
  const Scheduler::Counts counts = core_->counts();
  s.planned = options_.plan->size() - counts.removed;
  s.queued = counts.queued;
  s.active = counts.active;
  s.parked = counts.parked;
  s.cancelled = counts.cancelled;
  s.in_backoff = counts.in_backoff;
  s.ended = counts.ended;
  if (outcome_)
    s.state = outcome_->end == End::kComplete  ? "complete"
              : outcome_->end == End::kStopped ? "stopped"
                                               : "failed: " + outcome_->why;
  else if (!ledger_away_.empty())
    s.state = "waiting for Redis since " + to_rfc3339(ledger_away_since_) + ": " + ledger_away_;
  else
    s.state = core_->draining()    ? "draining"
              : core_->suspended() ? "paused, and what runs is suspended"
              : core_->paused()    ? "paused"
                                   : "running";
  if (const std::string waiting = core_->waiting_for_workers(); !outcome_ && !waiting.empty())
    s.state += "; " + waiting;
  const std::vector<ScopeBalance>& balances = core_->balances();
  const PlanView& view = core_->plan();
  const std::vector<MicroUsd> metered = core_->metered();
  for (std::size_t i = 0; i < balances.size(); ++i)
    s.envelopes.push_back({view.scopes[i].name, balances[i].cap, balances[i].spent,
                           balances[i].reserved, metered[i]});
  // Once a second, however many there are: the last ones alone become text.
  const auto latest = [&s](const auto& all) {
    const std::size_t n = std::min(all.size(), StatusSnapshot::kAlertsShown);
    s.alerts_before += all.size() - n;
    return std::span(all).last(n);
  };
  for (const BudgetAlert& a : latest(core_->alerts()))
    s.alerts.push_back({a.at, describe(a, s.unit)});
  for (const RunDominates& d : latest(core_->dominant()))
    s.alerts.push_back({d.at, run_name(d.attempt.run) + ": " + describe(d, s.unit)});
  keep_latest(s);
  s.faulty = counts.faulty;
  for (const auto& [run, text] : core_->parked_faults()) {
    if (s.faults.size() == StatusSnapshot::kAlertsShown) break;
    s.faults.push_back(run_name(run) + ": " + text);
  }
  const Roster& roster = core_->roster();
  for (WorkerIndex i = 0; i < roster.size(); ++i) {
    const WorkerState& w = roster.at(i);
    s.workers.push_back(
        {w.id.raw(), w.slots, w.held, standing(w), capability::describe_offer(w.has)});
  }
  s.lag = lag_.figures();
  s.floods = floods_.refused();
  const std::uint64_t here = s.done() - ended_before_;
  const std::int64_t elapsed = s.at.raw() - begun_.raw();
  if (0 < here && !outcome_)
    s.eta_ms =
        elapsed * static_cast<std::int64_t>(s.queued + s.active) / static_cast<std::int64_t>(here);
  return s;
}

}  // namespace proctor
