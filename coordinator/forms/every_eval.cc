#include "coordinator/forms/every_eval.h"

#include <algorithm>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {

using aggregate::dumped;
using aggregate::Ordered;

constexpr const char* kEverySchema = "0.3.0";
constexpr std::size_t kInstanceReason = 2'000;

// Seconds since 1970, as a text: what the schema wants.
std::string every_time(std::int64_t ms) {
  return std::to_string(ms / 1000);
}

std::string evaluation_id(const ExportedMethod& m) {
  return "proctor/" + m.report.campaign + "/" + m.method.name + "/" + every_time(m.started_ms);
}

std::string rate_sentence(const AnalysisPlan& plan) {
  return plan.estimand == AnalysisPlan::Estimand::kTaskMean
             ? "successes over scorable runs, mean over tasks: every task counts equally"
             : "successes over scorable runs: every run counts equally";
}

std::string_view interval_method(const AnalysisPlan& plan) {
  const bool by_run = plan.estimand == AnalysisPlan::Estimand::kRunMean;
  return by_run && plan.interval == AnalysisPlan::RateInterval::kT
             ? "cluster-robust t (CR2) over tasks"
             : to_string(plan.interval);
}

Ordered uncertainty_of(const MethodRate& rate, const AnalysisPlan& plan) {
  Ordered out = {{"num_samples", rate.runs}};
  if (rate.rate.standard_error)
    out["standard_error"] = {{"value", *rate.rate.standard_error}, {"method", "clustered by task"}};
  if (rate.rate.interval)
    out["confidence_interval"] = {{"lower", rate.rate.interval->low},
                                  {"upper", rate.rate.interval->high},
                                  {"confidence_level", 1 - plan.alpha.real()},
                                  {"method", interval_method(plan)}};
  return out;
}

// Counts as texts: details of the schema are texts.
Ordered counts_of(const ExportedMethod& m, const MethodRate& rate) {
  std::uint64_t counts[4] = {}, satisfied = 0;
  for (const RunRecord* run : m.runs) {
    ++counts[static_cast<std::size_t>(run->outcome)];
    satisfied += run->satisfied() ? 1 : 0;
  }
  const auto n = [&](RunOutcome o) { return std::to_string(counts[static_cast<std::size_t>(o)]); };
  return {{"tasks", std::to_string(rate.tasks)},
          {"success", n(RunOutcome::kSuccess)},
          {"satisfied", std::to_string(satisfied)},
          {"failure", n(RunOutcome::kFailure)},
          {"acceptance_error", n(RunOutcome::kAcceptanceError)},
          {"invalid", n(RunOutcome::kInvalid)},
          {"open", std::to_string(m.report.total.open)},
          {"parked", std::to_string(m.report.total.parked)}};
}

std::string instance(const ExportedMethod& m, const RunRecord& run) {
  const auto briefing = m.facts.briefings.find(run.task);
  const std::string input = briefing == m.facts.briefings.end() ? "" : briefing->second;
  const std::string patch = m.facts.patch(run);
  const bool passed = run.outcome == RunOutcome::kSuccess;
  Ordered metadata = {{"run", run.name},
                      {"outcome", to_string(run.outcome)},
                      {"satisfied", run.satisfied() ? "yes" : "no"},
                      {"termination", to_string(run.termination)},
                      {"cost_usd", format_usd_exact(run.cost.total())}};
  if (run.report != Digest()) metadata["report_sha256"] = run.report.hex();
  for (std::size_t k = 0; k < m.report.strata_keys.size(); ++k)
    metadata["stratum " + m.report.strata_keys[k]] = run.strata[k];
  Ordered out = {
      {"schema_version", kEverySchema},
      {"evaluation_id", evaluation_id(m)},
      {"model_id", model_name(m.method)},
      {"evaluation_name", m.facts.name},
      {"sample_id", run.task},
      {"interaction_type", "agentic"},
      {"input", {{"raw", input}, {"reference", Ordered::array()}}},
      {"messages",
       Ordered::array({Ordered{{"turn_idx", 0}, {"role", "user"}, {"content", input}},
                       Ordered{{"turn_idx", 1}, {"role", "assistant"}, {"content", patch}}})},
      {"answer_attribution", Ordered::array({Ordered{{"turn_idx", 1},
                                                     {"source", "messages.content"},
                                                     {"extracted_value", patch},
                                                     {"extraction_method", "workspace_patch"},
                                                     {"is_terminal", true}}})},
      {"evaluation", {{"score", passed ? 1.0 : 0.0}, {"is_correct", passed}, {"num_turns", 2}}},
      {"performance", {{"latency_ms", run.wall_ms}}}};
  if (run.outcome == RunOutcome::kAcceptanceError)
    out["error"] = "acceptance_error: " + printable(run.rationale, kInstanceReason);
  out["metadata"] = std::move(metadata);
  return dumped(out) + "\n";
}

}  // namespace

std::optional<EveryEvalFiles> every_eval(const ExportedMethod& m) {
  const Analysis& analysis = *m.report.analysis;
  const auto rate = std::ranges::find(analysis.rates, m.method.name, &MethodRate::method);
  if (rate == analysis.rates.end() || !rate->rate.value) return std::nullopt;
  EveryEvalFiles out;
  std::size_t rows = 0;
  for (const RunRecord* run : m.runs) {
    if (run->outcome == RunOutcome::kInvalid) continue;
    out.samples += instance(m, *run);
    ++rows;
  }
  // The folder is the identity, part for part: readers find records by path.
  const std::string id = model_name(m.method);
  const std::string developer = id.substr(0, id.find('/')), model = id.substr(id.find('/') + 1);
  const std::string base = "data/" + file_word(m.facts.name) + "/" + file_word(developer) + "/" +
                           file_word(model) + "/" +
                           uuid_of(m.facts.registration + "\n" + m.method.name);
  out.record_path = base + ".json";
  out.samples_path = base + "_samples.jsonl";
  const Ordered result = {{"evaluation_name", m.facts.name},
                          {"source_data",
                           {{"dataset_name", m.facts.name},
                            {"source_type", "other"},
                            {"additional_details",
                             {{"campaign", m.report.campaign},
                              {"registration", m.facts.registration},
                              {"plan", m.facts.plan}}}}},
                          {"evaluation_timestamp", every_time(m.started_ms)},
                          {"metric_config",
                           {{"evaluation_description", rate_sentence(analysis.plan)},
                            {"metric_id", "proctor.success_rate"},
                            {"metric_name", "success rate"},
                            {"metric_kind", "accuracy"},
                            {"metric_unit", "proportion"},
                            {"lower_is_better", false},
                            {"score_type", "continuous"},
                            {"min_score", 0.0},
                            {"max_score", 1.0}}},
                          {"score_details",
                           {{"score", *rate->rate.value},
                            {"details", counts_of(m, *rate)},
                            {"uncertainty", uncertainty_of(*rate, analysis.plan)}}}};
  const Ordered record = {
      {"schema_version", kEverySchema},
      {"evaluation_id", evaluation_id(m)},
      {"evaluation_timestamp", every_time(m.started_ms)},
      {"retrieved_timestamp", every_time(m.ended_ms)},
      {"source_metadata",
       {{"source_name", "proctor"},
        {"source_type", "evaluation_run"},
        {"source_organization_name", "unknown"},
        {"evaluator_relationship", "other"},
        {"additional_details", {{"journal_head", m.report.journal_head}}}}},
      {"eval_library", {{"name", "proctor"}, {"version", m.facts.tool_version}}},
      {"model_info",
       {{"name", model},
        {"id", id},
        {"developer", developer},
        {"additional_details",
         {{"deployment_type", "unknown"},
          {"model_availability", "unknown"},
          {"method", m.method.name},
          {"kind", m.method.kind}}}}},
      {"evaluation_results", Ordered::array({result})},
      {"detailed_evaluation_results",
       {{"format", "jsonl"},
        {"file_path", out.samples_path},
        {"hash_algorithm", "sha256"},
        {"checksum", sha256(out.samples).hex()},
        {"total_rows", rows}}}};
  out.record = record.dump_as_built(2, Json::Utf8::kReplace) + "\n";
  return out;
}

}  // namespace proctor
