#include "coordinator/shell/campaign_view.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "common/contract/cost_model.h"
#include "common/contract/host_things.h"
#include "common/images/image_store.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/roster.h"

namespace proctor {
namespace {
// One that is not in it yet is put at its end.
std::size_t place_in(std::vector<std::string>& all, const std::string& feature) {
  const auto at = std::ranges::find(all, feature);
  const auto place = static_cast<std::size_t>(at - all.begin());
  if (at == all.end()) all.push_back(feature);
  return place;
}

std::uint64_t needs_things(PlanView& view, const std::vector<HostThing>& things) {
  std::uint64_t out = 0;
  for (const HostThing& thing : things)
    out |= capability::thing_bit(place_in(view.things, thing.feature()));
  return out;
}

std::uint64_t needs_image(PlanView& view, const std::string& image) {
  return capability::image_bit(place_in(view.images, image_feature(image)));
}

PlanView::Method needs_of(PlanView& view, const Method& method) {
  PlanView::Method out;
  out.in_environment = (method.kind == Method::Kind::kCommand && !method.container) ||
                       method.kind == Method::Kind::kToolLoop;
  out.needs = needs_things(view, things_of(method));
  if (method.kind == Method::Kind::kToolLoop) out.needs |= capability::kToolLoop;
  if (method.gateway && method.gateway->tools) out.needs |= capability::kAgentTools;
  if (!method.environment.image.empty()) out.needs |= needs_image(view, method.environment.image);
  if (method.container && !method.container->image.empty())
    out.needs |= needs_image(view, method.container->image);
  return out;
}

std::uint64_t needs_of(PlanView& view, const Contract& contract, Isolation isolation) {
  const std::string& image = contract.environment.image;
  // Who builds it has an Engine; no store has one before.
  if (contract.environment.build) return capability::kDocker | needs_image(view, image);
  // Who offers it need not have an Engine.
  if (isolation == Isolation::kUserspace) return capability::kUserspace | needs_image(view, image);
  switch (wanted_sandbox(contract.environment)) {
    case Environment::Sandbox::kDocker:
      return needs_image(view, image);
    case Environment::Sandbox::kNull:
      return capability::kNull;
    case Environment::Sandbox::kBubblewrap:
    case Environment::Sandbox::kAuto:
      break;
  }
  return capability::kBubblewrap;
}

MicroUsd task_cap(const Campaign& campaign, const std::string& id) {
  const Envelopes& e = campaign.envelopes;
  if (const auto it = e.tasks.find(id); it != e.tasks.end()) return it->second;
  return e.task.value_or(e.global);
}

MicroUsd stage_cap(const Campaign& campaign, const std::string& name) {
  const auto it = campaign.envelopes.stage.find(name);
  return it == campaign.envelopes.stage.end() ? campaign.envelopes.global : it->second;
}

void add_stratum(PlanView& view, const PlanShape& shape, const std::string& key,
                 const std::string& level, ScopeId scope) {
  const auto at = std::ranges::find(shape.strata_keys, key);
  if (at == shape.strata_keys.end()) return;  // check_campaign refuses it
  const auto k = static_cast<std::size_t>(at - shape.strata_keys.begin());
  for (std::size_t t = 0; t < shape.tasks.size(); ++t)
    if (shape.tasks[t].strata[k] == level) view.tasks[t].strata.push_back(scope);
}

// Nothing where no stage asks for anything: then it is as it was before there were gates.
void add_gates(PlanView& view, const Campaign& campaign, const PlanShape& shape) {
  if (std::ranges::all_of(campaign.stages, [](const Stage& s) { return s.rules.empty(); })) return;
  for (std::size_t s = 0; s < campaign.stages.size(); ++s)
    view.stages.push_back({campaign.stages[s].name, campaign.stages[s].rules,
                           view.scopes[view.stage_scopes[s].raw()].cap});
  view.method_names = shape.methods;
}
}  // namespace

PlanView make_plan_view(const Campaign& campaign, const Plan& plan) {
  PlanView view;
  const auto add_scope = [&](std::string name, MicroUsd cap) {
    view.scopes.push_back({std::move(name), cap});
    return ScopeId(static_cast<std::uint32_t>(view.scopes.size() - 1));
  };
  static_assert(kEnvelopesOfRunMax == kScopesPerReservation);
  add_scope("global", campaign.envelopes.global);
  for (const PlanStage& stage : plan.shape().stages)
    view.stage_scopes.push_back(add_scope("stage:" + stage.name, stage_cap(campaign, stage.name)));
  for (const PlanTask& task : plan.shape().tasks) {
    const Contract* contract = campaign.find_contract(task.id);
    PROCTOR_ASSERT(contract != nullptr);
    view.tasks.push_back({add_scope("task:" + task.id, task_cap(campaign, task.id)),
                          campaign.run_cap(*contract),
                          needs_of(view, *contract, campaign.isolation_of(*contract)) |
                              needs_things(view, things_of(*contract))});
    // Nobody of before can read it, whoever works on it.
    if (!contract->suites.empty()) view.tasks.back().needs |= capability::kAgentTools;
    view.tasks.back().agent_needs = needs_things(view, agent_things_of(*contract));
  }
  const Envelopes& e = campaign.envelopes;
  for (const std::string& method : plan.shape().methods) {
    const Method* known = campaign.find_method(method);
    PROCTOR_ASSERT(known != nullptr);
    view.methods.push_back(needs_of(view, *known));
    const auto it = e.methods.find(method);
    view.method_scopes.push_back(it == e.methods.end() ? ScopeId(0)
                                                       : add_scope("method:" + method, it->second));
  }
  for (const auto& [key, levels] : e.strata)
    for (const auto& [level, cap] : levels)
      add_stratum(view, plan.shape(), key, level, add_scope("stratum:" + key + "=" + level, cap));
  if (e.shared) view.shared = add_scope(e.shared->scope(), e.shared->cap);
  for (std::size_t i = 0; i < view.scopes.size(); ++i)
    view.follows.push_back(follows_global(campaign, view.scopes[i].name));
  add_gates(view, campaign, plan.shape());
  view.runs.reserve(plan.size());
  view.seeds.reserve(plan.size());
  for (const PlanRow& row : plan.rows()) {
    view.runs.push_back({row.task, row.stage, row.method});
    view.seeds.push_back(row.seed);
  }
  return view;
}

bool follows_global(const Campaign& campaign, const std::string& scope) {
  const Envelopes& e = campaign.envelopes;
  const std::string name = scope.substr(scope.find(':') + 1);
  if (scope.starts_with("stage:")) return !e.stage.contains(name);
  if (scope.starts_with("task:")) return !e.task && !e.tasks.contains(name);
  return false;
}

Status apply_raises(PlanView& view, const std::vector<BudgetRaised>& raises) {
  std::vector<ScopeSpec> scopes = view.scopes;
  for (const BudgetRaised& r : raises) PROCTOR_CHECK_OK(raise_cap(scopes, r));
  view.scopes = std::move(scopes);
  return ok_status();
}

namespace {
// What is reserved, as the journal knows it; what is spent, the scheduler has added up.
void restore_ledger(const Scheduler& scheduler, const RestoredState& state, LedgerStart& ledger) {
  const PlanView& view = scheduler.plan();
  ledger.scopes = view.scopes;
  for (const ScopeBalance& b : scheduler.balances()) ledger.spent.push_back(b.spent);
  for (const RestoredAttempt& a : state.attempts)
    if (is_reserved(a))
      ledger.pending.push_back({{a.attempt, a.seq}, a.ask, view.path(a.attempt.run)});
}
}  // namespace

Result<std::unique_ptr<Scheduler>> restore_scheduler(const Campaign& campaign, const Plan& plan,
                                                     const std::vector<RunId>& removed,
                                                     const SchedulerSettings& settings,
                                                     const RestoredState& state) {
  PlanView view = make_plan_view(campaign, plan);
  PROCTOR_CHECK_OK(apply_raises(view, state.raises));
  auto out =
      std::make_unique<Scheduler>(std::move(view), settings, Epoch(state.last_epoch.raw() + 1));
  PROCTOR_CHECK_OK(out->restore(state));
  for (const RunId run : removed) {
    const auto ended = std::ranges::lower_bound(state.ended, run, {}, &EndedRun::run);
    const bool has_ended = ended != state.ended.end() && ended->run == run;
    out->restore_fact(RunRemoved{run, has_ended ? std::optional(ended->outcome) : std::nullopt});
  }
  return out;
}

Result<RestoredCore> restore_core(const Campaign& campaign, const Plan& plan,
                                  const std::vector<RunId>& removed,
                                  const SchedulerSettings& settings, const RestoredState& state,
                                  const std::string& self) {
  RestoredCore out;
  PROCTOR_TRY(out.scheduler, restore_scheduler(campaign, plan, removed, settings, state));
  out.ledger.epoch = Epoch(state.last_epoch.raw() + 1);
  restore_ledger(*out.scheduler, state, out.ledger);
  if (const std::optional<ScopeId> shared = out.scheduler->plan().shared) {
    PROCTOR_TRY(SharedBook book, shared_book_of(self, state.shared));
    const bool raised = std::ranges::any_of(
        state.raises, [&](const BudgetRaised& raise) { return raise.scope == *shared; });
    out.ledger.shared.emplace(LedgerStart::Shared{*shared, std::move(book), raised});
  }
  return out;
}

CampaignView::Begun CampaignView::begin(Time now) {
  Begun out;
  for (Command& c : core->start(now)) {
    out.over = out.over || std::holds_alternative<CampaignEnded>(c);
    if (auto* persist = std::get_if<Persist>(&c))
      std::ranges::move(persist->writes, std::back_inserter(out.writes));
  }
  return out;
}

Scheduler::Counts CampaignView::counts() const {
  Scheduler::Counts out = core->counts();
  const auto waits = static_cast<std::uint64_t>(std::count_if(
      state.parked.begin(), state.parked.end(),
      [this](const ParkedRun& parked) { return core->phase(parked.run) == RunPhase::kQueued; }));
  out.queued -= waits;
  out.parked += waits;
  return out;
}

Result<CampaignView> view_campaign(const Campaign& campaign, const Plan& plan,
                                   const std::vector<RunId>& removed,
                                   const SchedulerSettings& settings, RestoredState state) {
  CampaignView out{std::move(state), nullptr};
  PROCTOR_TRY(out.core, restore_scheduler(campaign, plan, removed, settings, out.state));
  return out;
}

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
  return core.paused() ? out + "; " + paused_words(core) : out;
}
}  // namespace

std::string paused_words(const Scheduler& core) {
  if (!core.paused()) return "";
  return (core.suspended() ? "paused, and what runs is suspended" : "paused") +
         (core.paused_why().empty() ? "" : ": " + core.paused_why());
}

std::optional<StatusSnapshot::Gate> gate_seen(const Scheduler& core) {
  const std::optional<GateView> g = core.gate();
  if (!g) return std::nullopt;
  return StatusSnapshot::Gate{g->stage,  g->waits_for, g->text,  g->digest,
                              g->people, g->approved,  g->behind};
}

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
  s.gate = gate_seen(core);
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
    if (s.broken.size() == std::min<std::size_t>(StatusSnapshot::kAlertsShown, s.held)) break;
    if (core.phase(RunId(r)) == RunPhase::kHeld)
      s.broken.push_back({name(RunId(r)),
                          "no attempt is left, and a person decides: proctor approve or proctor "
                          "cancel"});
  }
  for (ParkedFault& fault : core.parked_faults()) {
    if (s.broken.size() == StatusSnapshot::kAlertsShown) break;
    s.broken.push_back({name(fault.run), std::move(fault.text), fault.kind});
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
