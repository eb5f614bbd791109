#include "coordinator/cli/selfcheck_campaign.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/contract/contract_digest.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"

namespace proctor::cli {
namespace {

// It is the machine's time that is priced here: no model is called, nobody waits for it.
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

std::vector<CheckSeen> checks_of(const fs::path& attempt) {
  std::vector<CheckSeen> out;
  const Result<std::string> bytes = read_file(attempt / kReportFile, kReportBytes);
  if (!bytes.ok()) return out;
  const Result<RunReport> report = parse_report(*bytes);
  if (!report.ok()) return out;
  for (const CheckReport& c : report->checks) out.push_back({c.id, c.outcome, c.failing, c.why});
  return out;
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
  out.checks = checks_of(frozen.folder.attempt(run.name, AttemptNo(run.attempts)));
  return out;
}

}  // namespace

StateFolder selfcheck_folder(const fs::path& campaign) {
  return {StateFolder{campaign}.state() / "selfcheck"};
}

Campaign selfcheck_campaign(const Campaign& campaign, const std::vector<TaskVariants>& tasks,
                            const SelfcheckSettings& settings, std::optional<MicroUsd> usd) {
  Campaign out = campaign;
  out.contracts.clear();
  out.methods = {baseline(kVariantNoop, Method::Kind::kNoop),
                 baseline(kVariantReference, Method::Kind::kReference)};
  for (const TaskVariants& task : tasks) {
    out.contracts.push_back(*task.contract);
    for (const Variant& v : task.variants) {
      if (is_own(v)) continue;
      out.contracts.push_back(with_patch(*task.contract, v));
      const auto caps = campaign.task_caps.find(task.contract->id);
      if (caps != campaign.task_caps.end()) out.task_caps[out.contracts.back().id] = caps->second;
    }
  }
  out.replicates = settings.repeats;
  out.stages.resize(1);
  out.stages.front().usd.reset();
  out.stages.front().rules = {};
  out.envelopes = {};
  out.envelopes.run = campaign.envelopes.run;
  out.envelopes.global = usd.value_or(MicroUsd::from_micros(kNoLimitMicros));
  out.rates = {};
  out.ledger = Campaign::LedgerKind::kJournal;
  out.redis.clear();
  out.cost_inputs.reset();
  out.analysis.reset();
  // A task that cannot run says so by its outcomes; neither it nor its worker is set aside.
  constexpr std::uint32_t kNever = 1'000'000;
  out.infrastructure_retries = 1;
  out.retries = {};
  out.retries.park_after = out.retries.quarantine_after = kNever;
  return out;
}

Result<FrozenCampaign> selfcheck_frozen(Campaign derived, const std::vector<TaskVariants>& tasks,
                                        StateFolder folder) {
  std::set<std::pair<std::string, std::string>> wanted;  // task, method
  for (const TaskVariants& task : tasks)
    for (const Variant& v : task.variants)
      wanted.insert({task_of(task.contract->id, v), method_of(v)});
  PROCTOR_TRY(Plan plan, draw_plan(shape_of(derived)));
  // Of no time: the same variants are the same campaign, which goes on where it was.
  PROCTOR_TRY(Registration registration,
              make_registration(derived, sha256(to_csv(plan)), WallTime(0)));
  FrozenCampaign out{
      std::move(derived), std::move(plan), std::move(registration), "", std::move(folder), {}};
  out.id = campaign_id(out.registration);
  for (std::uint32_t r = 0; r < out.plan.size(); ++r)
    if (!wanted.contains({out.plan.task(RunId(r)).id, out.plan.method(RunId(r))}))
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

}  // namespace proctor::cli
