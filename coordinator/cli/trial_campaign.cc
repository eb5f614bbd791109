#include "coordinator/cli/trial_campaign.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/text.h"
#include "common/contract/contract_digest.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
namespace {
constexpr std::int64_t kNoLimitMicros = 1'000'000'000'000'000;

bool is_own(const Variant& v) {  // of the contract as it is
  return v.name == kVariantReference || v.name == kVariantNoop;
}
std::string method_of(const Variant& v) {
  return v.name == kVariantNoop ? kVariantNoop : kVariantReference;
}
std::string task_of(const std::string& contract, const Variant& v) {
  return is_own(v) ? contract : contract + "--" + v.name;
}

Method baseline(const char* name, Method::Kind kind) {
  Method out;
  out.name = name;
  out.kind = kind;
  out.digest = digest_of(out);
  return out;
}

Contract with_patch(Contract contract, const Variant& v) {
  contract.id = task_of(contract.id, v);
  if (contract.reference_patch.empty()) {
    contract.reference_patch = "proctor-selfcheck.patch";
    const auto place = std::ranges::lower_bound(contract.files, contract.reference_patch, {},
                                                &ReferencedFile::path);
    contract.files.insert(place, {contract.reference_patch, 0644, ""});
  }
  const auto file =
      std::ranges::find(contract.files, contract.reference_patch, &ReferencedFile::path);
  if (file != contract.files.end()) file->bytes = v.patch;
  contract.digest = digest_of(contract);
  return contract;
}

Repeat repeat_of(const FrozenCampaign& frozen, const RunRecord& run) {
  Repeat out;
  out.why = run.rationale;
  if (run.state != RunRecord::State::kEnded) {
    if (run.state == RunRecord::State::kParked)
      out.why = run.parked_why.empty() ? "no money was left for it" : run.parked_why;
    if (out.why.empty()) out.why = "it has not run";
    return out;
  }
  out.outcome = run.outcome;
  out.passes = run.passes;
  for (const CheckReport& c : checks_in(frozen.folder.attempt(run.name, AttemptNo(run.attempts))))
    out.checks.push_back({c.id, c.outcome, c.failing, c.why});
  return out;
}

struct Names {
  std::string task, method;
};

std::optional<Names> names_of(const std::string& run) {
  const std::size_t slash = run.find('/');
  if (slash == std::string::npos) return std::nullopt;
  Names out{run.substr(0, slash), run.substr(slash + 1)};
  if (const std::size_t end = out.method.find('/'); end != std::string::npos) {
    if (out.method.substr(end) != "/r1") return std::nullopt;
    out.method.resize(end);
  }
  const bool safe = is_safe_relative(out.task) && is_safe_relative(out.method);
  return safe ? std::optional(std::move(out)) : std::nullopt;
}
}  // namespace

Error no_such(const std::string& whose, const std::string& what, const std::string& name,
              const std::vector<std::string_view>& names) {
  return {Errc::kInvalid,
          whose + " has no " + what + " " + printable(name) + did_you_mean(name, names)};
}

Status has_method(const std::string& whose, const Registration& campaign,
                  const std::string& method) {
  if (campaign.methods.contains(method)) return ok_status();
  std::vector<std::string_view> all;
  for (const auto& [name, digest] : campaign.methods) all.push_back(name);
  return no_such(whose, "method", method, all);
}

StateFolder selfcheck_folder(const fs::path& campaign) {
  return StateFolder::trials(campaign, ".proctor/selfcheck");
}

Campaign trial_campaign(const Campaign& campaign, Trials trials) {
  Campaign out;
  out.folder = campaign.folder;
  out.origin = campaign.origin;
  out.name = campaign.name;
  out.contracts = std::move(trials.contracts);
  out.methods = std::move(trials.methods);
  if (out.methods.empty())
    out.methods = {baseline(kVariantNoop, Method::Kind::kNoop),
                   baseline(kVariantReference, Method::Kind::kReference)};
  out.replicates = trials.repeats;
  out.seed = campaign.seed;
  out.seed_deviation = campaign.seed_deviation;
  out.stages = {{"main", std::nullopt, std::move(trials.caps)}};
  out.envelopes.run = campaign.envelopes.run;
  out.envelopes.global = trials.usd.value_or(MicroUsd::from_micros(kNoLimitMicros));
  out.watch.dominance = campaign.watch.dominance;
  out.caps = campaign.caps;
  out.task_caps = campaign.task_caps;
  out.rates = campaign.rates;
  out.isolation = campaign.isolation;
  out.strata = campaign.strata;
  out.workers = campaign.workers;
  out.slots = campaign.slots;
  out.ledger = Campaign::LedgerKind::kJournal;
  out.infrastructure_retries = trials.infrastructure_retries;
  constexpr std::uint32_t kNever = 1'000'000;
  out.retries.overload = 0;
  out.retries.park_after = out.retries.quarantine_after = kNever;
  out.weights = campaign.weights;
  out.safety = campaign.safety;
  out.rerun = campaign.rerun;
  out.failure_modes = campaign.failure_modes;
  out.cost_model = campaign.cost_model;
  return out;
}

Result<Campaign> try_campaign(const Campaign& campaign, const std::string& task,
                              const std::string& method) {
  std::vector<std::string_view> tasks, methods;
  for (const Contract& c : campaign.contracts) tasks.push_back(c.id);
  for (const Method& m : campaign.methods) methods.push_back(m.name);
  const Contract* contract = campaign.find_contract(task);
  if (contract == nullptr) return no_such("the campaign", "task", task, tasks);
  const Method* one = campaign.find_method(method);
  if (one == nullptr) return no_such("the campaign", "method", method, methods);
  // The campaign's own limit holds; none of its money is spent.
  Trials trials{{*contract}, {*one}, 1, campaign.envelopes.global};
  const auto has_it = [&](const Stage& s) {
    return s.draw.tasks.empty() || std::ranges::find(s.draw.tasks, task) != s.draw.tasks.end();
  };
  if (const auto stage = std::ranges::find_if(campaign.stages, has_it);
      stage != campaign.stages.end())
    trials.caps = stage->caps;
  return trial_campaign(campaign, std::move(trials));
}

Campaign selfcheck_campaign(const Campaign& campaign, const std::vector<TaskVariants>& tasks,
                            std::uint32_t repeats, std::optional<MicroUsd> usd) {
  Trials trials{.repeats = repeats, .usd = usd, .infrastructure_retries = 1};
  for (const TaskVariants& task : tasks) {
    trials.contracts.push_back(*task.contract);
    for (const Variant& v : task.variants)
      if (!is_own(v)) trials.contracts.push_back(with_patch(*task.contract, v));
  }
  Campaign out = trial_campaign(campaign, std::move(trials));
  for (const TaskVariants& task : tasks)
    if (const auto caps = campaign.task_caps.find(task.contract->id);
        caps != campaign.task_caps.end())
      for (const Variant& v : task.variants)
        out.task_caps.emplace(task_of(task.contract->id, v), caps->second);
  return out;
}

Result<FrozenCampaign> freeze_trials(Campaign derived, const std::vector<TaskVariants>& tasks,
                                     StateFolder folder) {
  std::set<std::pair<std::string, std::string>> wanted;  // task, method
  for (const TaskVariants& task : tasks)
    for (const Variant& v : task.variants)
      wanted.insert({task_of(task.contract->id, v), method_of(v)});
  PROCTOR_TRY(Plan plan, draw_plan(shape_of(derived)));
  PROCTOR_TRY(Registration registration,
              make_registration(derived, sha256(to_csv(plan)), WallTime(0)));
  FrozenCampaign out{
      std::move(derived), std::move(plan), std::move(registration), "", std::move(folder), {}};
  out.id = campaign_id(out.registration);
  for (std::uint32_t r = 0; r < out.plan.size(); ++r)
    if (!tasks.empty() && !wanted.contains({out.plan.task(RunId(r)).id, out.plan.method(RunId(r))}))
      out.removed.emplace_back(r);
  return out;
}

std::vector<VariantRuns> runs_of(const FrozenCampaign& frozen, const CampaignReport& report,
                                 const TaskVariants& task) {
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::vector<VariantRuns> out;
  for (const Variant& v : task.variants) {
    places[{task_of(task.contract->id, v), method_of(v)}] = out.size();
    out.push_back({v.name, v.what, {}});
  }
  for (const RunRecord& run : report.runs) {
    const auto place = places.find({run.task, run.method});
    if (place != places.end() && run.state != RunRecord::State::kRemoved)
      out[place->second].repeats.push_back(repeat_of(frozen, run));
  }
  return out;
}

StateFolder try_folder(const fs::path& campaign, const std::string& task,
                       const std::string& method) {
  return StateFolder::trials(campaign, ".proctor/try/" + task + "/" + method);
}

Result<TriedRun> find_try(const std::string& campaign, const std::string& run) {
  const std::optional<Names> names = names_of(run);
  if (!names)
    return Error{Errc::kInvalid, printable(run) + " names no try: TASK/METHOD, as in proctor try"};
  TriedRun out{try_folder(campaign, names->task, names->method),
               names->task + "/" + names->method + "/r1"};
  if (!is_there(out.folder.journal()))
    return Error{Errc::kNotFound, names->task + " with " + names->method +
                                      " has not been tried: proctor try " + campaign + " " +
                                      names->task + " " + names->method};
  return out;
}

Result<FrozenCampaign> load_try(const std::string& campaign, const std::string& run) {
  PROCTOR_TRY(TriedRun tried, find_try(campaign, run));
  const Names names = *names_of(run);
  PROCTOR_TRY(const Campaign all, load_checked(campaign, Outside::kSkip));
  PROCTOR_TRY(Campaign one, try_campaign(all, names.task, names.method));
  return freeze_trials(std::move(one), {}, std::move(tried.folder));
}

Result<AskedRun> find_asked(const std::string& campaign, const std::string& run, Whose whose) {
  if (whose == Whose::kTry) {
    PROCTOR_TRY(FrozenCampaign tried, load_try(campaign, run));
    return AskedRun{std::move(tried), RunId(0)};
  }
  Result<FrozenCampaign> frozen = load_registered(campaign);
  if (!frozen.ok()) return with_try_hint(std::move(frozen).error(), campaign, run);
  Result<RunId> found = find_run(frozen->plan, run);
  if (!found.ok()) return with_try_hint(std::move(found).error(), campaign, run);
  return AskedRun{std::move(frozen).value(), *found};
}

Error with_try_hint(Error error, const std::string& campaign, const std::string& run) {
  if (find_try(campaign, run).ok())
    error.detail += "\nWhat proctor try made of it is there: the same command with --try";
  return error;
}
}  // namespace proctor::cli
