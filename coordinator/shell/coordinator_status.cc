// What the coordinator tells of itself, once a second.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/contract/cost_model.h"
#include "coordinator/shell/campaign_status.h"
#include "coordinator/shell/coordinator.h"
#include "coordinator/shell/coordinator_loop.h"

namespace proctor {
namespace {
constexpr std::chrono::seconds kStatusEvery(1);
constexpr std::int64_t kFirstWorkerMs = 5'000;  // a campaign's own workers have joined by then
// `here`: runs that have ended in this life of ours.
void foretell(StatusSnapshot& s, std::uint64_t here) {
  const std::uint64_t left = s.queued + s.active;
  const bool over = s.state == "complete" || s.state == "stopped" || s.state.starts_with("failed");
  if (!over && left == 0 && 0 < s.held) s.eta_waits = "a person (proctor approve or cancel)";
  if (over || left == 0) return;
  if (s.gate && s.active == 0 && s.in_backoff == 0 && s.queued == s.gate->behind) {
    s.eta_waits = "stage " + s.gate->stage + ", which " + s.gate->text;
    return;
  }
  // What follows "running; " stands in the line already, and says of whom the runs wait.
  const bool runs = s.state == "running" || s.state.starts_with("running; ");
  if (s.active == 0 && !runs) {
    s.eta_waits = s.state.starts_with("paused") ? "proctor unpause" : s.state;
    return;
  }
  if (s.active == 0 && !s.ready) {
    s.eta_waits = s.workers.empty() ? "a first worker" : "a worker that takes work";
    return;
  }
  if (s.active == 0 && s.state != "running") {
    s.eta_waits = "a worker that can run what is left";
    return;
  }
  if (s.active == 0 && s.in_backoff == s.queued) {
    s.eta_waits = "runs to be tried again";
    return;
  }
  if (here == 0) return;
  const double each = static_cast<double>(s.at.raw() - s.begun.raw()) / static_cast<double>(here);
  // Of a count of n events the rate lies within 1.96 / sqrt(n) of what was seen, with 95 %.
  const double off = 1.96 / std::sqrt(static_cast<double>(here));
  const auto after = [&](double factor) {
    return static_cast<std::int64_t>(each * static_cast<double>(left) * factor);
  };
  s.eta_ms = after(1);
  s.eta_low_ms = after(1 / (1 + off));
  if (off < 1) s.eta_high_ms = after(1 / (1 - off));
}
}  // namespace

void Coordinator::tick() {
  const StatusSnapshot status = snapshot();
  if (options_.on_status) options_.on_status(status);
  write_status(status);
  look_who_may_join();
  constexpr std::uint64_t kForgetEvery = 60;  // seconds
  if (++ticks_ % kForgetEvery == 0) forget_silent_peers();
  floods_.next_second();
  if (const std::uint64_t held_back = spoken_.next_second(); 0 < held_back)
    log::warn(std::to_string(held_back) + " more warnings and alerts were not written down");
  loop_->status_timer.expires_after(kStatusEvery);
  loop_->status_timer.async_wait([this](boost::system::error_code ec) {
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

// "2 runs (a/b/r1 on w1, ...)": what stands between us and the end.
std::string Coordinator::wound_down() const {
  constexpr std::size_t kShown = 3;
  const std::vector<Scheduler::UnderWay> first_ones = core_->under_way(kShown);
  // Of a run that was cancelled before its attempt is still on the way.
  const std::uint64_t active = std::max<std::uint64_t>(core_->counts().active, first_ones.size());
  if (active == 0) return "workers to hand over what they have";
  std::string out = std::to_string(active) + (active == 1 ? " run (" : " runs (");
  bool first = true;
  std::string silent;
  for (const Scheduler::UnderWay& u : first_ones) {
    out += (first ? "" : ", ") + run_name(u.run);
    if (!u.worker.raw().empty()) out += " on " + u.worker.raw();
    first = false;
    const auto w = core_->roster().find(u.worker);
    if (w && core_->roster().at(*w).suspect && silent.empty())
      silent = fmt::format(
          "; worker {} has not been heard of since {}: proctor kick {} {} gives up "
          "what it had",
          u.worker.raw(), to_rfc3339(core_->roster().at(*w).since),
          options_.folder.campaign.string(), u.worker.raw());
  }
  if (kShown < active) out += " and " + std::to_string(active - kShown) + " more";
  out += stops_ < 2 ? "); interrupt again to cancel" : "); they are being cancelled";
  return out + silent;
}

// The first of them by name of a state, those who need somebody before those who are at work, and
// these before those who are gone; the others are counted.
void Coordinator::list_workers(StatusSnapshot& s) const {
  const Roster& roster = core_->roster();
  std::vector<WorkerIndex> all;
  for (WorkerIndex i = 0; i < roster.size(); ++i)
    if (roster.has_place(i)) all.push_back(i);
  const auto before = [&](WorkerIndex a, WorkerIndex b) {
    const WorkerState &x = roster.at(a), &y = roster.at(b);
    if (x.present != y.present) return x.present;
    if (x.takes_new() != y.takes_new()) return y.takes_new();
    return x.id < y.id;
  };
  constexpr std::ptrdiff_t kShown = StatusSnapshot::kWorkersShown;
  if (StatusSnapshot::kWorkersShown < all.size())
    std::partial_sort(all.begin(), all.begin() + kShown, all.end(), before);
  for (const WorkerIndex i : all) {
    const WorkerState& w = roster.at(i);
    const std::string state = standing(w);
    if (state == "ready") s.ready = true;
    if (s.workers.size() == StatusSnapshot::kWorkersShown) {
      ++s.workers_more[state.substr(0, state.find(':'))];
      continue;
    }
    s.workers.push_back({w.id.raw(), w.slots, w.held, state,
                         capability::describe_offer(w.has, core_->plan().things), w.since,
                         core_->stands_until(i).value_or(WallTime(0))});
  }
}

StatusSnapshot Coordinator::snapshot() const {
  StatusSnapshot s;
  s.campaign = options_.campaign;
  s.unit = money_word(options_.scheduler.cost_model);
  s.pid = ::getpid();
  s.at = wall_now();
  s.begun = begun_;
  tell_campaign(s, *core_, [this](RunId run) { return run_name(run); });
  if (outcome_)
    s.state = outcome_->end == End::kComplete ? "complete"
              : outcome_->end == End::kStopped || outcome_->end == End::kAtGate
                  ? "stopped"
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
  // Runs that were parked are asked for once more, which takes a worker: they wait like the rest.
  const std::uint64_t wanted = s.queued - (s.gate ? s.gate->behind : 0);
  if (!outcome_ && !core_->draining() && core_->roster().slots() == 0 && 0 < wanted &&
      begun_.raw() + kFirstWorkerMs <= s.at.raw())
    s.state += "; " + std::to_string(wanted) + (wanted == 1 ? " run waits" : " runs wait") +
               " for a worker, and none is here: start a proctor-worker that connects to " +
               endpoints().back() + ", or stop and go on with --workers 1";
  list_workers(s);
  s.lag = lag_.figures();
  s.floods = floods_.refused();
  if (!outcome_ && core_->draining())
    s.eta_waits = wound_down();
  else
    foretell(s, s.done() - ended_before_);
  return s;
}

}  // namespace proctor
