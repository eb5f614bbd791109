#include "coordinator/cli/report_files.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <tuple>

#include "common/base/file_lock.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/cost_model.h"
#include "common/score/graded_score.h"
#include "common/score/outcome.h"
#include "common/trace/judgement.h"
#include "common/trace/manifest.h"
#include "common/trace/model_calls.h"
#include "common/trace/recorded_run.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/campaign_notes.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/report.h"
#include "coordinator/core/notes.h"
#include "coordinator/forms/forms.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/page/page.h"
#include "coordinator/shell/campaign_view.h"

namespace proctor::cli {
namespace {
constexpr std::uint64_t kOneUnit = 1'000'000;

// Runs that are alike share a kind; so do expected actions.
void add_kinds(const Campaign& campaign, const Plan& plan, ProjectionInput& out) {
  const PlanView view = make_plan_view(campaign, plan);
  for (const ScopeSpec& s : view.scopes) out.scopes.push_back({s.name, s.cap});
  std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint16_t>, std::uint32_t> kinds;
  std::map<const std::vector<ExpectedAction>*, std::uint32_t> usages;  // looked up, never iterated
  // Requires: the inputs were checked, so that every run has an entry.
  const auto usage_of = [&](const std::string& task, const std::string& method) {
    const std::vector<ExpectedAction>* entry = campaign.cost_inputs->find(task, method);
    PROCTOR_ASSERT(entry != nullptr);
    const auto [it, added] = usages.emplace(entry, static_cast<std::uint32_t>(out.usages.size()));
    if (!added) return it->second;
    out.usages.push_back(*entry);
    if (0 < campaign.cost_model.run)
      out.usages.back().push_back({"run", "run", "", "", kOneUnit, campaign.cost_model.run,
                                   ExpectedAction::Price::kRow, CostCategory::kOverhead});
    return it->second;
  };
  for (std::uint32_t r = 0; r < plan.size(); ++r) {
    const RunId run(r);
    const PlanRow& row = plan.row(run);
    const auto [it, added] = kinds.emplace(std::tuple(row.stage, row.task, row.method),
                                           static_cast<std::uint32_t>(out.kinds.size()));
    out.runs.push_back({it->second, row.replicate});
    if (!added) continue;
    out.kinds.push_back({plan.stage(run), plan.task(run).id, plan.method(run), {}, {}, 0});
    ProjectionInput::Kind& kind = out.kinds.back();
    for (const ScopeId s : view.path(run)) kind.path.push_back(s.raw());
    kind.ask = view.task_of(run).ask;
    if (campaign.cost_inputs) kind.usage = usage_of(kind.task, kind.method);
  }
}
}  // namespace

ProjectionInput projection_input(const Campaign& campaign, const Plan& plan,
                                 const Registration* registration) {
  ProjectionInput out;
  out.campaign = registration == nullptr ? campaign.name : campaign_id(*registration);
  out.abstract = campaign.cost_model.abstract();
  out.prices = out.abstract
                   ? campaign.cost_model.version
                   : std::string(kCostModelFile) + " " + campaign.cost_model.digest.short_hex();
  out.registered = registration != nullptr;
  if (campaign.cost_inputs) {
    out.inputs = campaign.cost_inputs->digest.short_hex();
    out.lost_micro = campaign.cost_inputs->lost_micro;
    out.inputs_registered =
        registration != nullptr && registration->cost_inputs == campaign.cost_inputs->digest;
  }
  out.attempts_max = 1 + campaign.infrastructure_retries + campaign.retries.overload;
  out.slots = campaign.workers * campaign.slots;
  out.reviews_priced = human_minute_price(campaign.cost_model).ok();
  add_kinds(campaign, plan, out);
  return out;
}

Status has_digest(const fs::path& file, const Digest& found, const Digest& expected,
                  const std::string& run) {
  if (found == expected) return ok_status();
  return Error{Errc::kInvalid, run + ": " + file.string() + " has the digest " + found.hex() +
                                   ", and was recorded with " + expected.hex() +
                                   ": put it back as it was (proctor verify says what changed)"};
}

Result<std::string> bound_file(const fs::path& file, const Digest& expected, std::size_t bytes_max,
                               const std::string& run) {
  Result<std::string> bytes = read_file(file, bytes_max);
  if (!bytes.ok())
    return Error{bytes.error().code,
                 run + ": " + bytes.error().detail + "; its digest must be " + expected.hex()};
  PROCTOR_CHECK_OK(has_digest(file, sha256(*bytes), expected, run));
  return bytes;
}

Result<RunReport> bound_report(const StateFolder& folder, const std::string& run, AttemptNo no,
                               const Digest& expected) {
  const fs::path file = folder.attempt(run, no) / kReportFile;
  PROCTOR_TRY(const std::string bytes, bound_file(file, expected, kReportBytes, run));
  Result<RunReport> report = parse_report(bytes);
  if (!report.ok()) return in_context(file.string(), report.error());
  return report;
}

namespace {
std::string kind_words(const Method& method) {
  std::string out(method.container ? "container" : word_of(method.kind));
  const std::string& model =
      method.kind == Method::Kind::kToolLoop ? method.gateway->model().name : method.call.model;
  const bool asks = method.kind == Method::Kind::kToolLoop ||
                    (method.kind == Method::Kind::kSingleShot && !model.empty());
  return asks ? out + ", model " + model : out;
}

// "pilot: 8 runs; main (every task, 3 replicates, by rounds): 24 runs".
std::string stages_of(const FrozenCampaign& frozen) {
  const PlanShape& shape = frozen.plan.shape();
  std::string out;
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const PlanStage& stage = shape.stages[s];
    const auto draw = frozen.registration.stage_draws.find(stage.name);
    const std::uint64_t runs =
        frozen.plan.tasks_of(s).size() * shape.methods.size() * std::uint64_t{stage.replicates};
    out += (out.empty() ? "" : "; ") + stage.name;
    if (draw != frozen.registration.stage_draws.end()) out += " (" + describe(draw->second) + ")";
    out += ": " + counted(runs, "run");
  }
  return out;
}

// "2", or "1 of feasibility, 2 of full" where stages have their own.
std::string replicates_of(const FrozenCampaign& frozen) {
  const std::vector<PlanStage>& stages = frozen.plan.shape().stages;
  const auto as_all = [&](const PlanStage& s) {
    return s.replicates == frozen.registration.replicates;
  };
  if (std::ranges::all_of(stages, as_all)) return std::to_string(frozen.registration.replicates);
  std::string out;
  for (const PlanStage& stage : stages)
    out += (out.empty() ? "" : ", ") + std::to_string(stage.replicates) + " of " + stage.name;
  return out;
}

std::vector<PageFacts::Fact> asked_of(const FrozenCampaign& frozen) {
  const Registration& r = frozen.registration;
  return {{"campaign", r.campaign},
          {"tasks", std::to_string(r.contracts.size())},
          {"replicates of each stage", replicates_of(frozen)},
          {"stages", stages_of(frozen)},
          {"planned runs", std::to_string(frozen.plan.size())},
          {"reported by strata",
           r.strata.empty() ? "none" : fmt::format("{}", fmt::join(r.strata, ", "))},
          {"seed of the plan", std::to_string(r.seed)}};
}

// A cap with the line it came from: the envelope's or the cap's name in campaign.yaml.
std::vector<PageFacts::Fact> caps_of(const FrozenCampaign& frozen) {
  const Registration& r = frozen.registration;
  const std::string unit = " " + money_word(frozen.campaign.cost_model);
  std::vector<PageFacts::Fact> out;
  for (const auto& [name, amount] : r.envelopes)
    out.push_back({"envelope " + name, amount == kLedgerMax.micros()
                                           ? "none"
                                           : format_usd(MicroUsd::from_micros(amount)) + unit});
  std::ranges::move(cap_facts(frozen.campaign), std::back_inserter(out));
  out.push_back({"new attempts after a failure of infrastructure",
                 std::to_string(frozen.campaign.infrastructure_retries)});
  return out;
}

std::vector<PageFacts::Fact> origins_of(const FrozenCampaign& frozen) {
  constexpr std::size_t kListed = 200;
  const Registration& r = frozen.registration;
  std::vector<PageFacts::Fact> out = {
      {"registered", to_rfc3339(r.at) + " by proctor " + r.tool_version},
      {"registration", frozen_digest(r).hex()},
      {"plan", r.plan.hex()},
      {"price table", r.cost_model_version + ", " + r.cost_model.hex()}};
  if (r.cost_inputs) out.push_back({"inputs of the projection", r.cost_inputs->hex()});
  for (const auto& [name, digest] : r.methods) out.push_back({"method " + name, digest.hex()});
  std::size_t n = 0;
  for (const auto& [id, digest] : r.contracts)
    if (++n <= kListed) out.push_back({"contract " + id, digest.hex()});
  if (kListed < n)
    out.push_back({"further contracts", std::to_string(n - kListed) + ", in registration.json"});
  return out;
}
}  // namespace

// From what is registered of a campaign to the facts on its page (coordinator/page/page.h).
PageFacts page_facts(const FrozenCampaign& frozen) {
  PageFacts out;
  for (const Method& m : frozen.campaign.methods) out.methods.push_back({m.name, kind_words(m)});
  out.asked = asked_of(frozen);
  // A copy in a folder of another name gives the same page, which `proctor verify` holds it to.
  out.folder = frozen.registration.campaign;
  if (frozen.campaign.derived_from) out.folder += "/regrades/NAME";
  out.caps = caps_of(frozen);
  out.judged = judging_facts(frozen.campaign);
  out.origins = origins_of(frozen);
  for (const Removal& r : frozen.registration.removals) out.removals.push_back({r.task, r.reason});
  if (!frozen.registration.seed_deviation.empty())
    out.provisional = "The plan was drawn with another seed than the planned one: " +
                      frozen.registration.seed_deviation;
  return out;
}

std::vector<PageFacts::Seen> seen_in(const fs::path& attempt, const std::string& run) {
  using enum PageFacts::Seen::Kind;
  constexpr std::size_t kOfRun = 10;
  // Lower ones first: mere words, the same again, how many of its violation and kind were before,
  // not critical, number.
  std::map<std::array<std::uint64_t, 5>, PageFacts::Seen> chosen;
  std::map<std::pair<PageFacts::Seen::Kind, std::string>, std::uint64_t> before;
  std::uint64_t all = 0;
  const auto on = [&](const TraceEvent& event) {
    if (event.type != events::kAlert.type) return;
    const auto alert = events::kAlert.read(event.payload);
    if (!alert) return;
    const auto& [code, signals, stage, why] = *alert;
    const std::string segment = text_in(signals, "segment");
    const std::optional<AlertMeaning> meaning = meaning_of(code, signals, stage);
    if (!meaning && segment.empty()) return;
    const PageFacts::Seen seen{
        run, meaning ? meaning->violation : "command: " + text_in(signals, "pattern"),
        meaning ? meaning->format : text_in(signals, "form"),
        segment.empty() ? text_in(signals, "target") : segment,
        meaning ? (meaning->critical ? kCritical : kOther) : kWords};
    const bool again = std::ranges::any_of(chosen, [&](auto& one) { return one.second == seen; });
    // A program that runs again is one more act.
    if (again && (code != events::kOsRisk || seen.form != "executed")) return;
    const std::uint64_t same = before[{seen.kind, seen.violation}]++;
    chosen[{seen.kind == kWords, again, same, seen.kind != kCritical, ++all}] = seen;
    if (kOfRun < chosen.size()) chosen.erase(std::prev(chosen.end()));
  };
  static_cast<void>(each_event(attempt, on));
  std::vector<PageFacts::Seen> out;
  for (const auto& [rank, seen] : chosen) out.push_back(seen);
  std::ranges::stable_sort(out, {}, &PageFacts::Seen::kind);
  if (out.size() < all) out.back().more = all - out.size();
  return out;
}

namespace {
// Caps of runs that only a metered call counts against, where nobody but the method's program can
// say that there was one: of every other kind the worker makes the calls itself, or there are none.
class UnseenCaps {
 public:
  explicit UnseenCaps(const FrozenCampaign& frozen)
      : frozen_(frozen), rules_(frozen.campaign.cap_rules()) {
    for (const Contract& c : frozen.campaign.contracts) contracts_.emplace(c.id, &c);
    for (const std::string& name : frozen.plan.shape().methods) {
      const Method* m = frozen.campaign.find_method(name);
      is_program_.push_back(m != nullptr && m->kind == Method::Kind::kCommand);
    }
  }
  const std::string& of(RunId run) {
    static const std::string kNone;
    const PlanRow& row = frozen_.plan.row(run);
    if (!is_program_[row.method]) return kNone;
    const auto [it, added] = known_.try_emplace({row.task, row.stage});
    const auto contract = contracts_.find(frozen_.plan.task(run).id);
    if (added && contract != contracts_.end())
      it->second =
          caps_on_calls(effective_caps(rules_, frozen_.plan.stage(run), *contract->second).caps);
    return it->second;
  }

 private:
  const FrozenCampaign& frozen_;
  CapRules rules_;
  std::map<std::string_view, const Contract*> contracts_;
  std::vector<bool> is_program_;                                          // by method of the plan
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> known_;  // by task and stage
};

// By task; 0: it is not known.
using Repositories = std::map<std::string, std::uint32_t>;

RunRecord planned_run(const FrozenCampaign& frozen, UnseenCaps& unseen, Repositories& repositories,
                      RunId run) {
  RunRecord r;
  r.run = run;
  r.name = frozen.plan.run_name(run);
  r.task = frozen.plan.task(run).id;
  r.repository = repositories[r.task];
  r.method = frozen.plan.method(run);
  r.strata = frozen.plan.task(run).strata;
  r.stage = frozen.plan.stage(run);
  if (const Method* m = frozen.campaign.find_method(r.method)) {
    if (m->acts_as() == Method::Kind::kNoop) r.baseline = RunRecord::Baseline::kNoop;
    if (m->acts_as() == Method::Kind::kReference) r.baseline = RunRecord::Baseline::kReference;
    const ReferencedFile* recorded = m->find_file(recorded_facts(r.name));
    if (recorded != nullptr)
      if (const auto facts = parse_recorded_run(recorded->bytes); facts.ok())
        r.old_outcome = facts->outcome;
  }
  r.unseen_caps = unseen.of(run);
  return r;
}

// Empty: it is no number from 0 to 1.
std::optional<double> score_of(std::string_view text) {
  double out = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool is_score = error == std::errc() && end == text.data() + text.size();
  return is_score && 0 <= out && out <= 1 ? std::optional(out) : std::nullopt;
}

// Attempts come in order, so the last one that has a say about where the run stands says it.
// `ends`: its run ended with it.
void add_attempt(RunRecord& run, const AttemptRecord& a, bool ends) {
  run.attempts = a.core.attempt.no.raw();
  if (run.attempts == 1) run.first_asked_ms = a.intent_at.raw();
  run.cost = run.cost + a.cost;
  if (a.core.settled) {
    run.asked = run.asked + a.core.ask;
    run.overrun = run.overrun + a.core.overrun;
  }
  if (is_wasted(a)) {
    run.wasted = run.wasted + a.cost.total();
    ++run.wasted_attempts;
  }
  const bool out =
      a.core.state == AttemptState::kGranted || a.core.state == AttemptState::kReserving;
  if (run.state != RunRecord::State::kEnded)
    run.state = out ? RunRecord::State::kRunning : RunRecord::State::kPlanned;
  if (a.core.has_result) {
    run.rationale = a.rationale;
    run.cap = a.facts.cap;
    run.no_model = a.facts.no_model;
    run.not_judged = a.facts.not_judged;
  }
  if (a.core.state != AttemptState::kLost) {
    const Usage& u = a.core.usage;
    run.metered_calls += u.model_calls;
    run.model_use = run.model_use + model_use_of(u);
    run.tool_calls += u.tool_calls;
    run.failed_cycles += u.failed_cycles;
    run.self_reported = run.self_reported + SelfReported{self_reported_cost(u).total(),
                                                         u.reported_calls, u.reported_tokens};
  }
  if (!a.core.has_result || a.core.state == AttemptState::kLost || !ends) return;
  run.termination = a.core.termination;
  run.agent_exit = a.facts.agent_exit;
  run.patch = a.facts.patch;
  run.violations = a.facts.violations;
  run.violated = a.facts.violated;
  run.gates = read_gates(a.facts.gates);
  run.score = score_of(a.facts.score);
  run.tags = a.facts.tags;
  run.configuration = a.facts.configuration;
  run.networked = a.facts.networked;
  run.worker = a.core.worker.raw();
  run.started_ms = a.started_ms;
  run.setup_ms = a.core.usage.setup_ms;
  run.agent_ms = a.core.usage.agent_ms;
  run.acceptance_ms = a.core.usage.acceptance_ms;
  run.wall_ms =
      a.finished_ms < a.started_ms ? 0 : static_cast<std::uint64_t>(a.finished_ms - a.started_ms);
  run.report = a.report;
}

// What an operator said who put invalid runs in line again, by the attempt that had ended each.
using Reopened = std::map<AttemptId, OperatorAct>;
Result<Reopened> reopened_runs(const RestoredState& state) {
  Reopened out;
  for (const Note& note : state.standing) {
    if (note.kind != OperatorFact::kNote) continue;
    PROCTOR_TRY(const OperatorFact fact, fact_of<OperatorFact>(note));
    for (const AttemptId& id : fact.set_aside) out.emplace(id, fact.act);
  }
  return out;
}

void add_set_aside(RunRecord& run, const AttemptRecord& a, const Reopened& reopened) {
  const auto it = reopened.find(a.core.attempt);
  if (it == reopened.end()) return;
  run.set_aside.push_back({a.core.attempt.no.raw(),
                           a.core.has_result ? a.core.termination : Termination::kInfrastructure,
                           a.core.has_result ? a.rationale : a.reason, a.report, it->second.by,
                           it->second.reason});
}

// Before its first attempt, or between two.
void add_fault(RunRecord& run, const Scheduler& core) {
  if (run.state != RunRecord::State::kPlanned) return;
  const PlanView::Run& row = core.plan().runs[run.run.raw()];
  using Kind = FaultSubject::Kind;
  for (const FaultSubject& subject :
       {FaultSubject{Kind::kTask, row.task}, FaultSubject{Kind::kMethod, row.method}}) {
    if (!core.faults().is_parked(subject)) continue;
    run.state = RunRecord::State::kParked;
    run.parked_why = std::string(subject.kind == Kind::kTask ? "its task " : "its method ") +
                     core.faults().describe(subject);
    return;
  }
}

// From the evidence: no row of the journal has them.
void add_last_words(const FrozenCampaign& frozen, RunRecord& run) {
  const fs::path attempt = frozen.folder.attempt(run.name, AttemptNo(run.attempts));
  std::string lines = last_lines_of(attempt / "agent" / "stderr", "");
  while (lines.ends_with('\n')) lines.pop_back();
  run.last_words = lines.substr(lines.rfind('\n') + 1);
}

// By class its parts, of the first few: from the first manifest of each that is there.
Configurations configurations_of(const FrozenCampaign& frozen, std::span<const RunRecord> runs) {
  constexpr std::size_t kRead = 16;
  Configurations out;
  for (const RunRecord& run : runs) {
    if (run.configuration.empty()) continue;
    if (out.size() == kRead && !out.contains(run.configuration)) break;
    auto& parts = out[run.configuration];
    if (!parts.empty()) continue;
    const fs::path attempt = frozen.folder.attempt(run.name, AttemptNo(run.attempts));
    const Result<ManifestInputs> m = manifest_of(attempt);
    if (m.ok() && configuration_word(*m) == run.configuration) parts = configuration_parts(*m);
  }
  std::erase_if(out, [](const auto& one) { return one.second.empty(); });
  return out;
}

// Alerts of the first runs that have a violation, in the order of the page.
std::vector<PageFacts::Seen> seen_of(const FrozenCampaign& frozen, const CampaignReport& report) {
  std::vector<PageFacts::Seen> out;
  std::size_t read = 0;
  for (const ReportRow& row : report.rows)
    for (const std::uint32_t i : row.key.empty() ? row.runs : std::vector<std::uint32_t>()) {
      const RunRecord& run = report.runs[i];
      if (run.state != RunRecord::State::kEnded || run.violations == 0 || kSeenRuns < ++read)
        continue;
      for (auto& seen : seen_in(frozen.folder.attempt(run.name, AttemptNo(run.attempts)), run.name))
        out.push_back(std::move(seen));
    }
  return out;
}

// Nothing: nobody has run anything yet.  What it says stays as it is now, so that money, runs and
// head of one report are of one moment, though a coordinator goes on writing.
Result<std::optional<JournalReader>> held_journal(const FrozenCampaign& frozen) {
  const bool has_file = is_there(frozen.folder.journal());
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(frozen.folder));
  if (!journal && has_file) return not_begun(frozen.folder.campaign);
  if (journal) PROCTOR_CHECK_OK(journal->hold());
  return journal;
}

// A journal that has something in it, and the campaign by it.
struct Source {
  JournalReader& journal;
  const CampaignView& view;
};

// Without a source: as it was planned.  With the campaign's money, and inputs of a projection, the
// two stand side by side.
Result<ReportInput> input_of(const FrozenCampaign& frozen, const std::optional<Source>& source,
                             const MoneyInput* money) {
  ReportInput input;
  input.campaign = frozen.id;
  input.again = again_of(frozen.campaign);
  input.unit = money_word(frozen.campaign.cost_model);
  input.strata_keys = frozen.plan.shape().strata_keys;
  UnseenCaps unseen(frozen);
  Repositories repositories;
  const std::vector<std::uint32_t> of_tasks = repositories_of(frozen.campaign);
  for (std::size_t i = 0; i < of_tasks.size(); ++i)
    repositories.emplace(frozen.campaign.contracts[i].id, of_tasks[i]);
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r)
    input.runs.push_back(planned_run(frozen, unseen, repositories, RunId(r)));
  input.plan = registered_plan(frozen.registration);
  input.plan_registered = frozen.registration.analysis_plan.has_value();
  input.contrasts = comparisons_of(frozen.campaign, input.plan);
  input.alpha = input.plan.alpha.real();
  // Refused where the campaign was read.
  if (auto own = parse_tag_rules(frozen.campaign.failure_modes); own.ok())
    input.failure_modes = std::move(own).value();
  for (const RunId run : frozen.removed) {
    input.runs[run.raw()].state = RunRecord::State::kRemoved;
    input.runs[run.raw()].unjudged = !input.again.empty();
  }
  for (const auto& [task, why] : frozen.registration.distrusted)
    if (!is_removed(frozen.registration, task))
      input.warnings.push_back("task " + task + " was registered although it was judged " + why);
  input.deviations = deviations_of(frozen, {}, {});
  if (!source) return input;
  const auto& [journal, view] = *source;
  // None has a journal from before rows were sealed.
  PROCTOR_TRY(const std::optional<Digest> head, journal.head());
  if (head) input.journal_head = head->hex();
  const RestoredState& state = view.state;
  input.deviations = deviations_of(frozen, state.raises, state.standing);
  PROCTOR_TRY(input.approvals, approvals_of(state.standing));
  if (const auto again = std::ranges::find(state.meta, kMetaRunAgain, &MetaSet::key);
      again != state.meta.end())
    input.deviations.insert(input.deviations.begin(), again->value + ": " + kRunBefore);
  input.alerts = alerts_of(frozen, state);
  const auto known = [&](RunId run) { return run.raw() < input.runs.size(); };
  std::vector<AttemptNo> last(input.runs.size());
  for (const EndedRun& e : state.ended) {
    if (!known(e.run)) return Error{Errc::kCorrupt, "journal: a run the plan does not have"};
    input.runs[e.run.raw()].state = RunRecord::State::kEnded;
    input.runs[e.run.raw()].outcome = e.outcome;
    last[e.run.raw()] = e.attempt;
    input.runs[e.run.raw()].termination =
        Termination::kInfrastructure;  // unless a result says more
  }
  PROCTOR_TRY(const Reopened reopened, reopened_runs(state));
  PROCTOR_CHECK_OK(journal.each_attempt([&](const AttemptRecord& a) {
    if (!known(a.core.attempt.run)) return;
    RunRecord& run = input.runs[a.core.attempt.run.raw()];
    add_attempt(run, a, last[run.run.raw()] == a.core.attempt.no);
    add_set_aside(run, a, reopened);
  }));
  for (const RunReviewed& r : state.reviews) {
    if (!known(r.run)) return Error{Errc::kCorrupt, "journal: a run the plan does not have"};
    RunRecord& run = input.runs[r.run.raw()];
    run.cost.human = run.cost.human + r.charged;
    run.reviewed = run.reviewed + r.charged;
    ++run.reviews;
  }
  for (const ParkedRun& p : state.parked) {
    if (!known(p.run)) return Error{Errc::kCorrupt, "journal: a run the plan does not have"};
    RunRecord& run = input.runs[p.run.raw()];
    // Under way: a resume found the money for it.
    if (run.state == RunRecord::State::kEnded || run.state == RunRecord::State::kRunning) continue;
    run.state = RunRecord::State::kParked;
    run.parked_scope = p.scope.raw() < state.scopes.size() ? state.scopes[p.scope.raw()].name : "?";
    run.short_by = p.short_by;
  }
  for (RunRecord& run : input.runs) {
    add_fault(run, *view.core);
    run.reopens = view.core->reopens(run.run) == Scheduler::Reopens::kYes;
    if (view.core->phase(run.run) == RunPhase::kCancelled) run.state = RunRecord::State::kCancelled;
    if (run.is_control() && run.state == RunRecord::State::kEnded &&
        (run.outcome == RunOutcome::kFailure || run.outcome == RunOutcome::kAcceptanceError))
      run.passes = passes_before(frozen.folder.attempt(run.name, AttemptNo(run.attempts)));
  }
  for (const RunId run : frozen.removed) {
    RunRecord& record = input.runs[run.raw()];
    record.ended_before_removal = record.state == RunRecord::State::kEnded;
    if (record.ended_before_removal || view.core->phase(run) == RunPhase::kRemoved)
      record.state = RunRecord::State::kRemoved;
  }
  for (const EarlyEnd& early : early_ends(input.runs))
    add_last_words(frozen, input.runs[early.first]);
  input.configurations = configurations_of(frozen, input.runs);
  if (money != nullptr && frozen.campaign.cost_inputs)
    input.projection =
        comparison(projection_input(frozen.campaign, frozen.plan, &frozen.registration), *money);
  return input;
}
}  // namespace

std::string again_of(const Campaign& campaign) {
  const auto& from = campaign.derived_from;
  if (!from) return "";
  const bool same = std::ranges::all_of(campaign.contracts, [&](const Contract& c) {
    const auto was = from->contracts.find(c.id);
    return was != from->contracts.end() && was->second == c.digest.hex();
  });
  return (same ? "replay of " : "regrade of ") + from->campaign;
}

Result<ReportInput> read_runs(const FrozenCampaign& frozen) {
  PROCTOR_TRY(std::optional<JournalReader> journal, held_journal(frozen));
  if (!journal) return input_of(frozen, std::nullopt, nullptr);
  PROCTOR_TRY(const CampaignView view, view_of(frozen, *journal));
  return input_of(frozen, Source{*journal, view}, nullptr);
}

Result<CampaignReport> read_report(const FrozenCampaign& frozen) {
  PROCTOR_TRY(ReportInput input, read_runs(frozen));
  return build_report(std::move(input));
}

Result<CampaignReport> read_report(const FrozenCampaign& frozen, JournalReader& journal,
                                   const CampaignView& view) {
  PROCTOR_TRY(ReportInput input, input_of(frozen, Source{journal, view}, nullptr));
  return build_report(std::move(input));
}

Result<CampaignReport> read_stage_report(const FrozenCampaign& frozen, const std::string& stage) {
  PROCTOR_TRY(ReportInput input, read_runs(frozen));
  PROCTOR_CHECK_OK(keep_stage(input, stage));
  CampaignReport report = build_report(std::move(input));
  report.details = std::make_shared<const ReportDetails>(report_details(report));
  return report;
}

Result<RenderedReport> render_report_files(const FrozenCampaign& frozen) {
  PROCTOR_TRY(std::optional<JournalReader> journal, held_journal(frozen));
  std::optional<CampaignView> view;
  std::optional<Source> source;
  std::optional<MoneyInput> money;  // before the first run there is none to show
  if (journal) {
    PROCTOR_TRY(view, view_of(frozen, *journal));
    source.emplace(Source{*journal, *view});
    PROCTOR_TRY(money, read_money(frozen, *journal, *view));
  }
  PROCTOR_TRY(ReportInput input, input_of(frozen, source, money ? &*money : nullptr));
  CampaignReport report = build_report(std::move(input));
  report.details = std::make_shared<const ReportDetails>(report_details(report));
  RenderedReport out{std::move(report), {}, money && money->running, {}};
  out.tables = render_tables(out.report);
  std::string runs_csv = render_runs_csv(out.report);
  out.files = {{"report.txt", with_words(out.tables, Words::kShown)},
               {"report.json", render_json(out.report, JsonForm::kSecond, runs_csv)},
               {"report.csv", render_csv(out.report)},
               {"costs.csv", render_costs_csv(out.report)},
               {"success.svg", render_svg(out.report)},
               {"contrasts.csv", render_contrasts_csv(*out.report.analysis)},
               {"junit.xml", render_junit(out.report)},
               {"summary.md", render_markdown(out.report)},
               {"badge.svg", render_badge(out.report, badge_method(out.report))}};
  out.files["runs.csv"] = std::move(runs_csv);
  out.files["run_records.jsonl"] = render_run_records(out.report, frozen.registration.contracts);
  out.files["gated_rubric_schema.json"] =
      rubric_schema(frozen.campaign.weights).dump_as_built(1) + "\n";
  PageFacts facts = page_facts(frozen);
  facts.seen = seen_of(frozen, out.report);
  out.files["report.html"] =
      render_html({.report = out.report, .facts = facts, .money = money ? &*money : nullptr});
  if (!out.report.moves.empty())
    out.files["judged_again.csv"] =
        aggregate::csv_of(aggregate::transition_columns(), out.report.moves);
  if (out.report.projection)
    out.files["projection.csv"] = render_projection_comparison_csv(*out.report.projection);
  if (money) out.files["burndown.svg"] = render_burndown_svg(*money);
  return out;
}

Result<WrittenReport> write_report_files(const FrozenCampaign& frozen, Words words) {
  PROCTOR_CHECK_OK(make_private_dirs(frozen.folder.state()));
  // Taken before the journal is read: the later of two reports is also the one of the later
  // journal.
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(frozen.folder.reports_lock()));
  PROCTOR_TRY(RenderedReport made, render_report_files(frozen));
  PROCTOR_CHECK_OK(write_with_digests(frozen, made));
  const fs::path dir = frozen.folder.reports();
  const CampaignReport& report = made.report;
  std::string shown =
      with_words(made.tables, words) +
      (words == Words::kShown ? ""
                              : "\nWhat the words mean: proctor report --words " +
                                    frozen.folder.campaign.string() + ", and report.txt\n") +
      "\nThe report:      " + (dir / "report.html").string() + " (open it in a browser)\n" +
      "Report files:    " + dir.string() +
      "/ (report.html, .txt, .json, .csv, contrasts.csv, runs.csv, run_records.jsonl, costs.csv, "
      "junit.xml, summary.md, badge.svg, success.svg, burndown.svg" +
      (report.projection ? ", projection.csv" : "") + ")\n" +
      "Run directories: " + frozen.folder.runs().string() + "/TASK/METHOD/rN/attempt-K/\n" +
      "Journal:         " + frozen.folder.journal().string() + " (open it with sqlite3; head " +
      report.journal_head.substr(0, 12) + ")\n";
  return WrittenReport{std::move(made.report), std::move(shown)};
}
}  // namespace proctor::cli
