#include "common/contract/campaign.h"

#include <algorithm>
#include <tuple>

#include "common/base/git_program.h"
#include "common/base/limits.h"
#include "common/contract/fields.h"

namespace proctor {
CapRules Campaign::cap_rules() const {
  CapRules rules{caps, {}, task_caps, envelopes.run};
  for (const Stage& stage : stages) rules.stages.emplace(stage.name, stage.caps);
  return rules;
}

MicroUsd Campaign::run_cap(const Contract& contract) const {
  const CapRules rules = cap_rules();
  if (stages.empty()) return *effective_caps(rules, "", contract).caps.usd;
  MicroUsd most;
  for (const Stage& stage : stages)
    most = std::max(most, *effective_caps(rules, stage.name, contract).caps.usd);
  return most;
}

MicroUsd Campaign::task_envelope(const std::string& contract_id) const {
  const auto it = envelopes.tasks.find(contract_id);
  return it != envelopes.tasks.end() ? it->second : envelopes.task.value_or(envelopes.global);
}

std::uint64_t Campaign::tasks_of(const Stage& stage) const {
  if (stage.draw.has_every_task()) return contracts.size();
  if (!stage.draw.per_stratum) return stage.draw.tasks.size();
  std::uint64_t out = 0;
  for (const auto& [values, tasks] : tasks_by_stratum(*this))
    out += std::min<std::uint64_t>(tasks.size(), *stage.draw.per_stratum);
  return out;
}

std::uint64_t Campaign::run_count() const {
  std::uint64_t out = 0;
  for (const Stage& stage : stages) out += tasks_of(stage) * replicates_of(stage);
  return out * methods.size();
}

std::map<std::vector<std::string>, std::vector<const Contract*>> tasks_by_stratum(
    const Campaign& campaign) {
  std::map<std::vector<std::string>, std::vector<const Contract*>> out;
  for (const Contract& contract : campaign.contracts)
    out[stratum_values(campaign.strata, contract)].push_back(&contract);
  return out;
}

std::vector<std::uint32_t> repositories_of(const Campaign& campaign) {
  std::map<std::string, std::uint32_t> codes;
  std::vector<std::uint32_t> out;
  for (const Contract& c : campaign.contracts) {
    const std::string name = repository_name(c.repository.source, c.origin.folder);
    out.push_back(codes.emplace(name, static_cast<std::uint32_t>(codes.size() + 1)).first->second);
  }
  return out;
}

std::vector<std::string> stratum_values(const std::vector<std::string>& keys,
                                        const Contract& contract) {
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    const auto found = contract.strata.find(key);
    out.push_back(found == contract.strata.end() ? "none" : found->second);
  }
  return out;
}

const Contract* Campaign::find_contract(const std::string& id) const {
  const auto it = std::ranges::find(contracts, id, &Contract::id);
  return it == contracts.end() ? nullptr : &*it;
}

const Method* Campaign::find_method(const std::string& method) const {
  const auto it = std::ranges::find(methods, method, &Method::name);
  return it == methods.end() ? nullptr : &*it;
}

namespace {
std::uint64_t ms(std::chrono::milliseconds d) {
  return static_cast<std::uint64_t>(d.count());
}

// Patch and events at their bounds, and every stream of output at its own: of each setup step in
// both workspaces, of each check (with its result file and services) and of the agent.
std::uint64_t stored_worst_case(const Contract& contract, std::uint64_t times) {
  const std::uint64_t steps = 2 * contract.setup.size(), checks = 2 * contract.checks.size();
  std::uint64_t bytes = (steps + checks) * limits::kCheckOutputBytes;
  for (const Check& c : contract.checks)
    bytes +=
        2 * services_of(contract.services, c).size() * (kServiceOutputBytes + kReadyOutputBytes);
  for (const Check& c : contract.checks)
    if (c.reader != ResultReader::kExitCode) bytes += limits::kResultFileBytes;
  return times * bytes + limits::kPatchBytes + limits::kEventLogBytes +
         (steps + 2) * limits::kCheckOutputBytes;
}
}  // namespace

Usage acceptance_worst_case(const Contract& contract, std::uint32_t rerun) {
  const std::uint64_t times = 1 + std::uint64_t{rerun};
  Usage out;
  for (const SetupStep& s : contract.setup) out.setup_ms += times * ms(s.timeout);
  for (const Check& c : contract.checks) out.acceptance_ms += times * ms(c.timeout);
  out.stored_bytes = stored_worst_case(contract, times);
  return out;
}

Usage acceptance_worst_case(const Contract& contract, const Method& method, std::uint32_t rerun) {
  Usage out = acceptance_worst_case(contract, rerun);
  out.stored_bytes += 2 * method.environment.setup.size() * limits::kCheckOutputBytes;
  if (!method.keep.empty()) out.stored_bytes += kKeptBytes;
  if (method.gateway) out.stored_bytes += kGatewayBytes;
  return out;
}

Usage worst_case(const Contract& contract, const Method& method, std::chrono::milliseconds wall,
                 std::uint32_t rerun) {
  Usage out = acceptance_worst_case(contract, method, rerun);
  for (const SetupStep& s : contract.setup) out.setup_ms += ms(s.timeout);
  for (const SetupStep& s : method.environment.setup) out.setup_ms += ms(s.timeout);
  out.agent_ms = ms(wall);
  return out;
}

// The plan of analysis.

namespace {
constexpr std::uint64_t kWhole = 1'000'000;
}  // namespace

std::string Millionths::to_text() const {
  return format_decimal(value, kMillionthDigits);
}

bool Millionths::from_text(std::string_view text) {
  const auto read = parse_decimal(text, kMillionthDigits, kWhole);
  if (read.ok()) value = static_cast<std::uint32_t>(*read);
  return read.ok();
}

std::string counted_units(AnalysisPlan::Unit unit, std::uint64_t n) {
  if (unit == AnalysisPlan::Unit::kTask) return std::to_string(n) + (n == 1 ? " task" : " tasks");
  return std::to_string(n) + (n == 1 ? " repository" : " repositories");
}

PlanWeights weights_of(const AnalysisPlan& plan) {
  if (plan.weights.empty()) return {};
  return {{plan.weights_key, plan.weights}};
}

bool set_weights(AnalysisPlan& plan, const PlanWeights& weights) {
  if (weights.empty()) return true;
  std::tie(plan.weights_key, plan.weights) = *weights.begin();
  std::uint64_t sum = 0;
  for (const auto& [level, share] : plan.weights) sum += share.value;
  return weights.size() == 1 && sum == kWhole;
}

std::vector<std::pair<std::string, std::string>> contrasts_of(
    const AnalysisPlan& plan, const std::vector<std::string>& methods,
    const std::vector<bool>& is_noop) {
  if (!plan.contrasts.empty()) return plan.contrasts;
  std::vector<std::pair<std::string, std::string>> out;
  if (methods.empty()) return out;
  std::string baseline = plan.baseline;
  if (baseline.empty()) {
    const auto noop = std::ranges::find(is_noop, true);
    baseline =
        methods[noop == is_noop.end() ? 0 : static_cast<std::size_t>(noop - is_noop.begin())];
  }
  for (const std::string& method : methods)
    if (method != baseline) out.emplace_back(method, baseline);
  return out;
}

// Stages, in words.

std::string describe(const StageDraw& draw) {
  std::string out = "every task";
  if (draw.per_stratum) out = std::to_string(*draw.per_stratum) + " of each stratum";
  for (std::size_t i = 0; i < draw.tasks.size(); ++i)
    out = (i == 0 ? "" : out + " ") + draw.tasks[i];
  out += ", ";
  if (!draw.replicates) out += "the campaign's replicates";
  if (draw.replicates)
    out +=
        std::to_string(*draw.replicates) + (*draw.replicates == 1 ? " replicate" : " replicates");
  return out + ", by " + std::string(word_of(draw.order));
}

namespace {
std::string list_of(const std::vector<StageCriterion>& criteria) {
  std::string out;
  for (const StageCriterion& c : criteria) {
    const std::string parameter = parameter_of(c);
    out += (out.empty() ? "" : ", ") + std::string(word_of(c.is)) +
           (parameter.empty() ? "" : " " + parameter);
  }
  return out.empty() ? "none" : out;
}
}  // namespace

std::string parameter_of(const StageCriterion& c) {
  if (c.is == StagePredicate::kClosed) return c.stage;
  if (!is_share(c.is)) return "";
  return format_usd(MicroUsd::from_micros(c.millionths));  // millionths of one, as of a dollar
}

std::string describe(const StageRules& rules) {
  return "entry " + list_of(rules.entry) + "; exit " + list_of(rules.exit) + "; approval of " +
         std::to_string(rules.approvals());
}
}  // namespace proctor
