#include "coordinator/cli/money_files.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/system_clock.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"

namespace proctor::cli {
namespace {
using Attempt = MoneyInput::Attempt;

// Workers that are suspected now, from what was noted about them.
Result<std::set<std::string>> suspects(JournalReader& journal) {
  std::set<std::string> out;
  PROCTOR_CHECK_OK(each_note(journal, [&](const Note& note) {
    if (note.kind == "worker_suspect") out.insert(note.detail);
    if (note.kind == "worker_back") out.erase(note.detail);
    if (note.kind != WorkerJoined::kNote && note.kind != WorkerJoined::kNoteAgain) return;
    if (const auto joined = fact_of<WorkerJoined>(note); joined.ok())
      out.erase(joined->worker.raw());
  }));
  return out;
}

Attempt::Money stand_of(const AttemptRecord& a, bool running,
                        const std::set<std::string>& suspected) {
  if (a.core.settled) return Attempt::Money::kSettled;
  switch (a.core.state) {
    case AttemptState::kReserving:
    case AttemptState::kDenied:
    case AttemptState::kVoided:
      return Attempt::Money::kNone;
    case AttemptState::kFinished:
    case AttemptState::kCancelled:
      return Attempt::Money::kOut;
    case AttemptState::kLost:
      return Attempt::Money::kAtRisk;
    case AttemptState::kGranted:
      break;
  }
  // Without a coordinator nobody knows what became of it; resume finds out.
  const bool unheard = !running || suspected.contains(a.core.worker.raw());
  return unheard ? Attempt::Money::kAtRisk : Attempt::Money::kOut;
}

Attempt attempt_of(const AttemptRecord& a, Attempt::Money money) {
  Attempt out;
  out.run = a.core.attempt.run.raw();
  out.no = a.core.attempt.no.raw();
  out.money = money;
  out.ask = a.core.ask;
  out.charged = a.core.charged;
  out.overrun = a.core.overrun;
  out.cost = a.cost;
  if (a.core.state != AttemptState::kLost) out.self_reported = self_reported_cost(a.core.usage);
  out.granted_at = a.granted_at;
  out.settled_at = a.settled_at;
  if (a.core.state == AttemptState::kVoided) out.returned_at = a.ended_at;
  return out;
}

void add_told(const FrozenCampaign& frozen, const Scheduler& core, MoneyInput& out) {
  const std::string& unit = out.unit;
  for (const BudgetAlert& a : core.alerts())
    out.alerts.push_back({a.scope.raw(), a.percent, a.spent, a.cap, a.at});
  for (const RunDominates& d : core.dominant())
    out.dominant.push_back({d.at, frozen.plan.run_name(d.attempt.run) + ": " + describe(d, unit)});
}

void add_metered(const StatusSnapshot& said, MoneyInput& out) {
  for (std::size_t s = 0; s < out.scopes.size() && s < said.envelopes.size(); ++s)
    if (said.envelopes[s].name == out.scopes[s].name)
      out.scopes[s].metered = said.envelopes[s].metered;
}
}  // namespace

Result<RestoredState> read_journal(const FrozenCampaign& frozen) {
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  return load_whole(frozen, journal);
}

Result<MoneyInput> read_money(const FrozenCampaign& frozen) {
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_CHECK_OK(journal.hold());
  PROCTOR_TRY(const CampaignView view, view_of(frozen, journal));
  return read_money(frozen, journal, view);
}

// All that the view holds is of runs and envelopes that the plan has, or it had not been made.
Result<MoneyInput> read_money(const FrozenCampaign& frozen, JournalReader& journal,
                              const CampaignView& view) {
  const PlanView& plan = view.core->plan();
  const RestoredState& state = view.state;
  MoneyInput out;
  out.campaign = frozen.id;
  out.unit = money_word(frozen.campaign.cost_model);
  out.strata_keys = frozen.plan.shape().strata_keys;
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r) {
    std::vector<std::uint32_t> path;
    for (const ScopeId s : plan.path(RunId(r))) path.push_back(s.raw());
    const PlanTask& task = frozen.plan.task(RunId(r));
    out.runs.push_back({frozen.plan.run_name(RunId(r)), task.id, frozen.plan.method(RunId(r)),
                        task.strata, std::move(path), plan.task_of(RunId(r)).ask});
  }
  out.running = journal_owner(frozen.folder.journal()).has_value();
  // Metered amounts of what runs: only its coordinator knows, and says so once a second.
  std::optional<StatusSnapshot> said;
  if (out.running) said = live_status(frozen.folder);
  if (said && said->campaign != frozen.id) said.reset();
  for (const ScopeSpec& s : plan.scopes) out.scopes.push_back({s.name, s.cap});
  for (const BudgetRaised& r : state.raises)
    out.raises.push_back({r.scope.raw(), r.from, r.to, r.at});
  add_told(frozen, *view.core, out);
  PROCTOR_TRY(const std::set<std::string> suspected, suspects(journal));
  std::vector<bool> out_now(out.runs.size(), false);
  PROCTOR_CHECK_OK(journal.each_attempt([&](const AttemptRecord& a) {
    const std::uint32_t run = a.core.attempt.run.raw();
    if (a.core.state == AttemptState::kGranted || a.core.state == AttemptState::kReserving)
      out_now[run] = true;
    out.attempts.push_back(attempt_of(a, stand_of(a, out.running, suspected)));
  }));
  for (const RunReviewed& r : state.reviews) out.reviews.push_back({r.run.raw(), r.charged, r.at});
  for (const ParkedRun& p : state.parked) {
    if (out.scopes.size() <= p.scope.raw())
      return Error{Errc::kCorrupt, "the journal is not of this plan; see proctor verify"};
    if (!out_now[p.run.raw()]) out.parked.push_back({p.run.raw(), p.scope.raw(), p.short_by});
  }
  if (said) add_metered(*said, out);
  out.now = wall_now();
  return out;
}

// One attempt's model calls have one witness: its agent, or the worker that makes them.
Cost self_reported_cost(const Usage& u) {
  const std::uint64_t model = std::min(u.reported_micros, u.priced_micros);
  return {.model = MicroUsd::from_micros(static_cast<std::int64_t>(model)),
          .execution = MicroUsd::from_micros(static_cast<std::int64_t>(u.reported_micros - model)),
          .human = {},
          .overhead = {}};
}

bool is_wasted(const AttemptRecord& a) {
  if (!a.core.settled) return false;
  if (a.core.state == AttemptState::kLost) return true;
  if (!a.core.has_result || a.core.outcome != RunOutcome::kInvalid) return false;
  // An agent that cannot start is its method's; a model that could not be had is nobody's.
  if (a.core.termination == Termination::kAgentUnavailable) return a.facts.no_model;
  return a.core.termination == Termination::kInfrastructure ||
         a.core.termination == Termination::kModelOverloaded || a.facts.not_judged;
}

std::vector<std::string> alerts_of(const FrozenCampaign& frozen, const RestoredState& state) {
  const std::string unit = money_word(frozen.campaign.cost_model);
  std::vector<std::pair<WallTime, std::string>> told;
  for (const BudgetAlert& a : state.alerts) told.emplace_back(a.at, describe(a, unit));
  for (const RunDominates& d : state.dominant)
    if (d.attempt.run.raw() < frozen.plan.size())
      told.emplace_back(d.at, frozen.plan.run_name(d.attempt.run) + ": " + describe(d, unit));
  std::ranges::stable_sort(told, {}, &std::pair<WallTime, std::string>::first);
  std::vector<std::string> out;
  for (const auto& [at, text] : told) out.push_back(to_rfc3339(at) + ": " + text);
  return out;
}

namespace {
// Acts that choose which attempts count: whoever reads a rate is to know of them.
std::vector<std::string> choices_of(const std::vector<Note>& standing) {
  constexpr std::size_t kTold = 20;
  std::vector<std::string> out;
  std::size_t more = 0;
  for (const Note& note : standing) {
    if (note.kind != OperatorFact::kNote) continue;
    const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
    if (!fact.ok()) continue;
    const OperatorAct& act = fact->act;
    const bool waived = act.kind == OperatorActKind::kWaive;
    const bool closed = act.kind == OperatorActKind::kCloseStage;
    const bool cancel = closed || act.kind == OperatorActKind::kCancel;
    const bool again = act.kind == OperatorActKind::kRequeue;
    const std::size_t n = act.runs.size();
    if (!waived && !closed && (n == 0 || (!cancel && !again))) continue;
    if (kTold <= out.size() && act.stage.empty()) {  // every act on a stage is told
      ++more;
      continue;
    }
    out.push_back(
        to_rfc3339(note.at) + ": " +
        (waived ? act.criterion + " of stage " + act.stage + " was waived"
                : std::to_string(n) + (n == 1 ? " run was " : " runs were ") +
                      (cancel ? "cancelled (" : "put in line again (") + act.selected + ")") +
        (act.by.empty() ? "" : " by " + act.by) + (act.reason.empty() ? "" : ": " + act.reason));
  }
  if (0 < more) out.push_back("and " + std::to_string(more) + " more such acts: proctor story");
  return out;
}
}  // namespace

std::vector<std::string> deviations_of(const FrozenCampaign& frozen,
                                       const std::vector<BudgetRaised>& raises,
                                       const std::vector<Note>& standing) {
  std::vector<std::string> out;
  if (frozen.registration.seed != kPlannedSeed)
    out.push_back("seed " + std::to_string(frozen.registration.seed) + " instead of " +
                  std::to_string(kPlannedSeed) + ": " + frozen.registration.seed_deviation);
  for (const Removal& r : frozen.registration.removals)
    out.push_back(to_rfc3339(r.at) + ": task " + r.task + " was taken out" +
                  (r.by.empty() ? "" : " by " + r.by) + ": " + r.reason);
  for (const BudgetRaised& r : raises)
    out.push_back(to_rfc3339(r.at) + ": envelope " + r.name + " was raised from " +
                  format_usd(r.from) + " to " + format_usd(r.to) + " " +
                  money_word(frozen.campaign.cost_model) + (r.by.empty() ? "" : " by " + r.by) +
                  ": " + r.reason);
  for (std::string& act : choices_of(standing)) out.push_back(std::move(act));
  return out;
}

Result<std::vector<std::string>> approvals_of(const std::vector<Note>& standing) {
  std::vector<std::string> out;
  for (const Note& note : standing) {
    if (note.kind == OperatorFact::kNote) {
      PROCTOR_TRY(const OperatorFact fact, fact_of<OperatorFact>(note));
      if (fact.act.kind == OperatorActKind::kApproveStage)
        out.push_back(fmt::format("{}: stage {} was approved by {} by the digest {}: {}",
                                  to_rfc3339(note.at), fact.act.stage, fact.act.by, fact.act.digest,
                                  fact.act.reason));
    } else if (note.kind == StageOpened::kNote) {
      PROCTOR_TRY(const StageOpened fact, fact_of<StageOpened>(note));
      out.push_back(
          fmt::format("{}: stage {} was opened by the digest {}, which {} had approved",
                      to_rfc3339(note.at), fact.stage, fact.digest.hex(),
                      fact.by.empty() ? "nobody" : fmt::format("{}", fmt::join(fact.by, ", "))));
    }
  }
  return out;
}

Result<std::string> raises_for(const std::string& folder, const FrozenCampaign& frozen,
                               const std::vector<RunId>& runs) {
  PROCTOR_TRY(const MoneyInput money, read_money(frozen));
  const MoneyView view = build_money(money);
  std::set<std::uint32_t> scopes;
  for (const MoneyInput::Parked& p : money.parked)
    if (std::ranges::find(runs, RunId(p.run)) != runs.end()) scopes.insert(p.scope);
  std::string out;
  for (const std::uint32_t s : scopes) {
    const EnvelopeMoney& e = view.envelopes[s];
    out += "\n  proctor budget raise " + folder + " " + e.name + " " +
           format_usd(e.cap + e.wanted) + " --reason \"...\"    (" + e.name + " is short by " +
           format_usd(e.short_least) + " " + money.unit + " at least; " + std::to_string(e.parked) +
           (e.parked == 1 ? " run is" : " runs are") + " parked there)";
  }
  return out;
}

std::string copy_command(const std::string& folder) {
  std::filesystem::path named = std::filesystem::path(folder).lexically_normal();
  if (named.has_parent_path() && !named.has_filename()) named = named.parent_path();
  std::error_code ec;
  // Beside "." is no name: it would lie in what is copied.
  if (named == "." || named.filename() == "..") named = std::filesystem::canonical(folder, ec);
  return "proctor copy " + folder + " " + named.string() + "-2";
}

std::string resume_command(const std::string& folder, const Campaign& campaign) {
  const bool asks = std::ranges::any_of(
      campaign.methods, [](const Method& m) { return m.gateway || !m.call.model.empty(); });
  return "proctor resume " + folder + (asks && 0 < campaign.workers ? " --models FILE" : "");
}

std::string mends_for(const std::string& folder, const std::string& run, Broken what,
                      const std::string& go_on) {
  const bool method = what == Broken::kMethod;
  const std::string task = run.substr(0, run.find('/'));
  return std::string("  If ") + (method ? "the agent" : "the task") +
         " itself is wrong: it is registered as it is, so mend it in a copy of the campaign:\n"
         "    " +
         copy_command(folder) + "\n" +
         (method ? ""
                 : "  or go on without it:\n    proctor remove-task " + folder + " " + task +
                       " --reason \"...\"\n") +
         "  If the host lacked something" +
         (method ? ", or a provider of models, its address or the operator's key was at fault"
                 : "") +
         ": mend that, then\n    proctor requeue " + folder + " " + run + " && " + go_on + "\n";
}
}  // namespace proctor::cli
