#include "coordinator/shell/campaign_status.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "common/contract/cost_model.h"

namespace proctor {
namespace {

// "gone; drained": what an operator or a rule holds against a worker outlasts the coordinator.
std::string absent_standing(const WorkerState& w) {
  if (w.quarantine != WorkerState::Quarantine::kNone) return "gone; quarantined: " + w.reason;
  return w.drained ? "gone; drained" : "gone";
}

// What it lists it lists, and the others are counted by state.
void list_absent(StatusSnapshot& s, const StatusSnapshot::Worker& w) {
  if (s.workers.size() < StatusSnapshot::kWorkersShown)
    s.workers.push_back(w);
  else
    ++s.workers_more[w.state.substr(0, w.state.find_first_of(":;"))];
}

// Those of the journal, with what their last coordinator knew of them; then those who had joined
// it and were never given a run.  `held`: attempts that are out with each.
void list_workers(RestingStatus& out, const CampaignView& view, const StatusSnapshot* last) {
  std::map<std::string, StatusSnapshot::Worker> known;
  if (last != nullptr)
    for (const StatusSnapshot::Worker& w : last->workers) known.emplace(w.name, w);
  std::map<std::string, std::uint32_t> held;
  for (const RestoredAttempt& a : view.state.attempts)
    if (!a.settled && a.state == AttemptState::kGranted) ++held[a.worker.raw()];
  const auto tell = [&](const std::string& name, const std::string& state) {
    StatusSnapshot::Worker w;
    w.name = name;
    w.held = held[name];
    w.state = state;
    if (const auto it = known.find(name); it != known.end()) {
      w.slots = it->second.slots;
      w.offers = it->second.offers;
      // When the last coordinator was still there it was too, unless that one knew better.
      w.since = it->second.state == "gone" ? it->second.since : last->at;
    }
    list_absent(out.status, w);
  };
  const Roster& roster = view.core->roster();
  std::set<std::string> told;
  for (WorkerIndex i = 0; i < roster.size(); ++i) {
    if (!roster.has_place(i)) continue;
    const WorkerState& w = roster.at(i);
    told.insert(w.id.raw());
    tell(w.id.raw(), absent_standing(w));
  }
  for (const auto& [name, w] : known)
    if (!told.contains(name)) tell(name, "gone");
}

std::string words_of(Rest rest, const Scheduler& core) {
  std::string out = rest == Rest::kComplete ? "complete"
                    : rest == Rest::kStopped
                        ? "stopped"
                        : "interrupted: its coordinator is gone; proctor resume goes on";
  if (core.paused()) out += core.suspended() ? "; paused, and what runs is suspended" : "; paused";
  return out;
}

}  // namespace

void tell_campaign(StatusSnapshot& s, const Scheduler& core, const RunNames& name) {
  const Scheduler::Counts counts = core.counts();
  s.removed = counts.removed;
  for (std::size_t i = 0; i < counts.ended.size(); ++i) {
    s.ended[i] = counts.ended[i] - counts.ended_removed[i];
    s.removed += counts.ended_removed[i];
  }
  s.planned = core.plan().runs.size() - s.removed;
  s.queued = counts.queued;
  s.active = counts.active;
  s.parked = counts.parked;
  s.cancelled = counts.cancelled;
  s.held = counts.held;
  s.in_backoff = counts.in_backoff;
  s.faulty = counts.faulty;
  if (const std::optional<GateView> g = core.gate())
    s.gate = {g->stage, g->waits_for, g->text, g->digest, g->people, g->approved, g->behind};
  const std::vector<ScopeBalance>& balances = core.balances();
  const std::vector<MicroUsd>& metered = core.metered();
  for (std::size_t i = 0; i < balances.size(); ++i)
    s.envelopes.push_back({core.plan().scopes[i].name, balances[i].cap, balances[i].spent,
                           balances[i].reserved, metered[i]});
  // Once a second, however many there are: the last ones alone become text.
  const auto latest = [&s](const auto& all) {
    const std::size_t n = std::min(all.size(), StatusSnapshot::kAlertsShown);
    s.alerts_before += all.size() - n;
    return std::span(all).last(n);
  };
  for (const BudgetAlert& a : latest(core.alerts()))
    s.alerts.push_back({a.at, describe(a, s.unit)});
  for (const RunDominates& d : latest(core.dominant()))
    s.alerts.push_back({d.at, name(d.attempt.run) + ": " + describe(d, s.unit)});
  keep_latest(s);
  for (std::uint32_t r = 0; 0 < s.held && r < core.plan().runs.size(); ++r) {
    if (s.faults.size() == std::min<std::size_t>(StatusSnapshot::kAlertsShown, s.held)) break;
    if (core.phase(RunId(r)) == RunPhase::kHeld)
      s.faults.push_back(name(RunId(r)) +
                         ": no attempt is left, and a person decides: proctor "
                         "approve or proctor cancel");
  }
  for (const auto& [run, text] : core.parked_faults()) {
    if (s.faults.size() == StatusSnapshot::kAlertsShown) break;
    s.faults.push_back(name(run) + ": " + text);
  }
}

RestingStatus resting_status(const CampaignView& view, const RunNames& name,
                             const StatusSnapshot* last, WallTime now) {
  RestingStatus out;
  StatusSnapshot& s = out.status;
  s.unit = money_word(view.core->settings().cost_model);
  tell_campaign(s, *view.core, name);
  const Scheduler::Counts counts = view.counts();
  s.queued = counts.queued;
  s.parked = counts.parked;
  for (const MetaSet& m : view.state.meta)
    if (m.key == kMetaCampaign) s.campaign = m.value;
  s.at = now;
  if (last != nullptr) {
    s.begun = last->begun;
    s.lag = last->lag;
    s.floods = last->floods;
  }
  const std::uint64_t left = counts.queued + counts.active + counts.held;
  // What has ended and is not paid for yet needs a coordinator as well.
  const bool open = !s.envelopes.empty() && MicroUsd::zero() < s.envelopes.front().reserved;
  const bool in_order = last != nullptr && (last->state == "stopped" || last->state == "complete");
  out.rest = left == 0 && !open ? Rest::kComplete : in_order ? Rest::kStopped : Rest::kInterrupted;
  s.state = words_of(out.rest, *view.core);
  const bool at_gate = s.gate && s.gate->waits_for_people() && s.queued <= s.gate->behind;
  if (at_gate && s.active + s.held + s.in_backoff == 0)
    s.eta_waits = "stage " + s.gate->stage + ", which " + s.gate->text;
  else if (0 < left)
    s.eta_waits = view.core->paused() ? "proctor unpause and proctor resume" : "proctor resume";
  list_workers(out, view, last);
  return out;
}

}  // namespace proctor
