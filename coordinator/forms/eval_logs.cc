#include "coordinator/forms/eval_logs.h"

#include <archive.h>
#include <archive_entry.h>
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/score/graded_score.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
using ZipEntry = Owned<archive_entry, archive_entry_free>;

constexpr std::time_t kFirstZipDay = 315'532'800;  // 1980-01-01: zip knows no earlier one

// A zip file that is written member by member: the container of an Inspect log.  Adapter (file
// system, libarchive).
class ZipFile {
 public:
  // Nothing lies at `path` until finish(); what is written before is beside it.
  static Result<ZipFile> create(const fs::path& path) {
    ZipFile file(path);
    archive* out = file.out_.get();
    if (out == nullptr) return Error{Errc::kUnavailable, path.string() + ": no memory"};
    // libarchive makes files of its own umask; what is made here is its owner's.
    PROCTOR_CHECK_OK(write_file(file.temporary_, "", Durability::kLazy));
    if (archive_write_set_format_zip(out) != ARCHIVE_OK ||
        archive_write_open_filename(out, file.temporary_.c_str()) != ARCHIVE_OK)
      return file.failed("it cannot be written");
    return file;
  }
  ZipFile(ZipFile&&) = default;
  ZipFile& operator=(ZipFile&&) = delete;
  // Without finish(): as if there had been none.
  ~ZipFile() {
    if (out_ == nullptr) return;
    out_.reset();
    std::error_code ec;
    fs::remove(temporary_, ec);
  }
  // Members have no time: the same members give the same bytes.
  Status add(const std::string& name, std::string_view bytes) {
    archive* out = out_.get();
    const ZipEntry entry(archive_entry_new());
    if (entry == nullptr) return Error{Errc::kUnavailable, path_.string() + ": no memory"};
    archive_entry_set_pathname_utf8(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), kOpenFile);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_mtime(entry.get(), kFirstZipDay, 0);
    if (archive_write_header(out, entry.get()) != ARCHIVE_OK)
      return failed("a member cannot be written");
    while (!bytes.empty()) {
      const la_ssize_t n = archive_write_data(out, bytes.data(), bytes.size());
      if (n <= 0) return failed("a member cannot be written");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return ok_status();
  }
  Status finish() {
    if (archive_write_close(out_.get()) != ARCHIVE_OK) return failed("it cannot be finished");
    PROCTOR_CHECK_OK(sync_path(temporary_));
    PROCTOR_CHECK_OK(rename_path(temporary_, path_));
    out_.reset();
    return sync_path(path_.parent_path());
  }

 private:
  explicit ZipFile(const fs::path& path)
      : path_(path), temporary_(path.native() + ".part"), out_(archive_write_new()) {}
  Error failed(const char* what) const {
    const char* why = archive_error_string(out_.get());
    return Error{Errc::kUnavailable, path_.string() + ": " + what + ": " +
                                         (why == nullptr ? "no reason was given" : why)};
  }
  fs::path path_, temporary_;
  Owned<archive, archive_write_free> out_;
};
}  // namespace

ExportedMethod exported(const ExportFacts& facts, const CampaignReport& report,
                        const ExportFacts::OfMethod& method) {
  ExportedMethod out{facts, report, method, {}, 0, 0};
  for (const RunRecord& run : report.runs) {
    if (run.method != method.name || run.state != RunRecord::State::kEnded) continue;
    out.runs.push_back(&run);
    if (run.started_ms <= 0) continue;
    if (out.started_ms == 0 || run.started_ms < out.started_ms) out.started_ms = run.started_ms;
    out.ended_ms = std::max(out.ended_ms, run.started_ms + static_cast<std::int64_t>(run.wall_ms));
  }
  if (out.started_ms == 0) out.started_ms = out.ended_ms = facts.registered_ms;
  return out;
}

namespace {
// The number N of a run named TASK/METHOD/rN.
std::uint64_t replicate_of(const RunRecord& run) {
  const auto n = whole_number<std::uint64_t>(run.name.substr(run.name.rfind("/r") + 2));
  return std::max<std::uint64_t>(n.value_or(1), 1);
}

// "developer/model", or "proctor/METHOD" where nobody says which model it asks.
std::string model_name(const ExportFacts::OfMethod& method) {
  if (method.model.empty()) return "proctor/" + method.name;
  return (method.developer.empty() ? "unknown" : method.developer) + "/" + method.model;
}

// A UUID (version 4 by its form) that depends on nothing but this text.
std::string uuid_of(std::string_view text) {
  std::string hex = sha256(text).hex().substr(0, 32);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<std::size_t>(hex[16]) % 4];
  for (const std::size_t at : {20U, 16U, 12U, 8U}) hex.insert(at, "-");
  return hex;
}

// Part of a file name: what is not a letter, digit, '.' or '-' becomes '-'.
std::string file_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || (c == '.' && !out.empty());
    out += plain ? c : '-';
  }
  return out.empty() ? "-" : out;
}

using aggregate::dumped;
using aggregate::filled;
using aggregate::Ordered;

constexpr std::size_t kInstanceReason = 2'000;
constexpr std::string_view kEverySchema = "0.3.0", kScorer = "acceptance";

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
             : word_of(plan.interval);
}

std::string uncertainty_of(const MethodRate& rate, const AnalysisPlan& plan) {
  std::string out = filled(R"({"num_samples":$)", {rate.runs});
  if (rate.rate.standard_error)
    out += filled(R"(,"standard_error":{"value":$,"method":"clustered by task"})",
                  {*rate.rate.standard_error});
  if (const auto& interval = rate.rate.interval)
    out += filled(R"(,"confidence_interval":{"lower":$,"upper":$,"confidence_level":$,"method":$})",
                  {interval->low, interval->high, 1 - plan.alpha.real(), interval_method(plan)});
  return out + "}";
}

// Counts as texts: details of the schema are texts.
std::string counts_of(const ExportedMethod& m, const MethodRate& rate) {
  std::uint64_t counts[4] = {}, satisfied = 0;
  for (const RunRecord* run : m.runs) {
    ++counts[static_cast<std::size_t>(run->outcome)];
    satisfied += run->satisfied() ? 1 : 0;
  }
  const auto n = [&](RunOutcome o) { return counts[static_cast<std::size_t>(o)]; };
  return filled(
      R"({"tasks":"$","success":"$","satisfied":"$","failure":"$","acceptance_error":"$",)"
      R"("invalid":"$","open":"$","parked":"$"})",
      {rate.tasks, n(RunOutcome::kSuccess), satisfied, n(RunOutcome::kFailure),
       n(RunOutcome::kAcceptanceError), n(RunOutcome::kInvalid), m.report.total.open,
       m.report.total.parked});
}

std::string briefing_of(const ExportedMethod& m, const RunRecord& run) {
  const auto briefing = m.facts.briefings.find(run.task);
  return briefing == m.facts.briefings.end() ? "" : briefing->second;
}

Ordered strata_of(const ExportedMethod& m, const RunRecord& run, const std::string& before = "") {
  Ordered out = Ordered::object();
  for (std::size_t k = 0; k < m.report.strata_keys.size(); ++k)
    out[before + m.report.strata_keys[k]] = run.strata[k];
  return out;
}

// A member where the run has a report, behind others.
std::string report_member(const RunRecord& run) {
  return run.report == Digest() ? "" : filled(R"(,"report_sha256":$)", {run.report.hex()});
}

// Its gates ("pass,pass,fail,pass"), score and tags, behind others, where gates are known.
std::string judged_members(const RunRecord& run) {
  if (!run.gates) return "";
  std::string gates;
  for (const GateOutcome o : *run.gates)
    gates += (gates.empty() ? "" : ",") + std::string(word_of(o));
  std::string out = filled(R"(,"gates":$)", {gates});
  if (run.score) out += filled(R"(,"graded_score":$)", {score_text(*run.score)});
  if (!run.tags.empty()) out += filled(R"(,"failure_modes":$)", {run.tags});
  return out;
}

std::string instance(const ExportedMethod& m, const RunRecord& run) {
  const std::string input = briefing_of(m, run), patch = m.facts.patch(run);
  const bool passed = run.outcome == RunOutcome::kSuccess;
  std::string out = filled(
      R"({"schema_version":$,"evaluation_id":$,"model_id":$,"evaluation_name":$,)"
      R"("sample_id":$,"interaction_type":"agentic","input":{"raw":$,"reference":[]},)"
      R"("messages":[{"turn_idx":0,"role":"user","content":$},)"
      R"({"turn_idx":1,"role":"assistant","content":$}],)"
      R"("answer_attribution":[{"turn_idx":1,"source":"messages.content","extracted_value":$,)"
      R"("extraction_method":"workspace_patch","is_terminal":true}],)"
      R"("evaluation":{"score":$,"is_correct":$,"num_turns":2},"performance":{"latency_ms":$})",
      {kEverySchema, evaluation_id(m), model_name(m.method), m.facts.name, run.task, input, input,
       patch, patch, passed ? 1.0 : 0.0, passed, run.wall_ms});
  if (run.outcome == RunOutcome::kAcceptanceError)
    out +=
        filled(R"(,"error":$)", {"acceptance_error: " + printable(run.rationale, kInstanceReason)});
  out += filled(R"(,"metadata":{"run":$,"outcome":$,"satisfied":$,"termination":$,"cost_usd":$)",
                {run.name, to_string(run.outcome), run.satisfied() ? "yes" : "no",
                 to_string(run.termination), format_usd_exact(run.cost.total())});
  out += report_member(run) + judged_members(run);
  if (!run.strata.empty()) out += "," + dumped(strata_of(m, run, "stratum ")).substr(1);
  return out + (run.strata.empty() ? "}}\n" : "}\n");
}

// A record of filled() is JSON in UTF-8, small and shallow: reading it again cannot fail.
std::string indented(std::string_view json) {
  return parse_json(json)->dump_as_built(2);
}
}  // namespace

std::optional<EveryEvalFiles> every_eval(const ExportedMethod& m) {
  const Analysis& analysis = *m.report.analysis;
  const MethodRate* rate = rate_of(analysis, m.method.name);
  if (rate == nullptr || !rate->rate.value) return std::nullopt;
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
  const std::string result = filled(
      R"({"evaluation_name":$,"source_data":{"dataset_name":$,)"
      R"("source_type":"other","additional_details":)"
      R"({"campaign":$,"registration":$,"plan":$}},"evaluation_timestamp":$,)"
      R"("metric_config":{"evaluation_description":$,"metric_id":"proctor.success_rate",)"
      R"("metric_name":"success rate","metric_kind":"accuracy","metric_unit":"proportion",)"
      R"("lower_is_better":false,"score_type":"continuous","min_score":0.0,"max_score":1.0},)"
      R"("score_details":{"score":$,"details":@,"uncertainty":@}})",
      {m.facts.name, m.facts.name, m.report.campaign, m.facts.registration, m.facts.plan,
       every_time(m.started_ms), rate_sentence(analysis.plan), *rate->rate.value,
       counts_of(m, *rate), uncertainty_of(*rate, analysis.plan)});
  const std::string record =
      filled(R"({"schema_version":$,"evaluation_id":$,"evaluation_timestamp":$,)"
             R"("retrieved_timestamp":$,"source_metadata":{"source_name":"proctor",)"
             R"("source_type":"evaluation_run","source_organization_name":"unknown",)"
             R"("evaluator_relationship":"other","additional_details":{"journal_head":$}},)"
             R"("eval_library":{"name":"proctor","version":$},)"
             R"("model_info":{"name":$,"id":$,"developer":$,"additional_details":)"
             R"({"deployment_type":"unknown","model_availability":"unknown","method":$,"kind":$}},)"
             R"("evaluation_results":[@],)"
             R"("detailed_evaluation_results":{"format":"jsonl","file_path":$,)"
             R"("hash_algorithm":"sha256","checksum":$,"total_rows":$}})",
             {kEverySchema, evaluation_id(m), every_time(m.started_ms), every_time(m.ended_ms),
              m.report.journal_head, m.facts.tool_version, model, id, developer, m.method.name,
              m.method.kind, result, out.samples_path, sha256(out.samples).hex(), rows});
  out.record = indented(record) + "\n";
  return out;
}

namespace {
constexpr std::size_t kReasonInLog = 2'000, kSummaryBytes = 1'000, kSummariesAtOnce = 1'000;

std::string log_time(std::int64_t ms) {
  std::string out = to_rfc3339(WallTime(ms));
  return out.substr(0, out.find_first_of(".Z")) + "+00:00";
}

std::string log_id(const ExportedMethod& m) {
  return sha256(m.facts.registration + "\n" + m.method.name).hex().substr(0, 22);
}

// The cap that ended a run, as Inspect has them.
struct Limit {
  std::string_view type;  // empty: none did
  Ordered limit = 1;
};
Limit limit_of(const ExportedMethod& m, const RunRecord& run) {
  const auto cap = [&](const char* name) {
    const auto found = m.facts.caps.find(name);
    return found == m.facts.caps.end() ? 0.0 : static_cast<double>(found->second);
  };
  if (run.termination == Termination::kAgentTimeout)
    return {"time", static_cast<double>(run.agent_ms) / 1000};
  if (run.termination == Termination::kOperatorCancel) return {"operator"};
  if (run.termination != Termination::kBudgetExceeded) return {};
  if (run.cap == "usd") return {"cost", cap("micro_usd") / 1e6};
  if (run.cap == "tokens") return {"token", cap("tokens")};
  if (run.cap == "wall") return {"time", cap("wall_ms") / 1000};
  return {"custom"};
}

bool is_scored(const RunRecord& run) {
  return run.outcome == RunOutcome::kSuccess || run.outcome == RunOutcome::kFailure;
}

// The bare word NaN where a run is unscored, which is no JSON, but what Inspect writes and reads.
const char* score_of(const RunRecord& run) {
  if (!is_scored(run)) return "NaN";
  return run.outcome == RunOutcome::kSuccess ? R"("C")" : R"("I")";
}

// The members that sample and summary share, the first ones of both.
std::string sample_head(const ExportedMethod& m, const RunRecord& run, std::size_t input_bytes) {
  std::string out = filled(
      R"({"id":$,"epoch":$,"input":$,"target":"","metadata":{"run":$,"outcome":$,"satisfied":$,)"
      R"("violations":$,"termination":$,"attempts":$,"cost_usd":$)",
      {run.task, replicate_of(run), briefing_of(m, run).substr(0, input_bytes), run.name,
       to_string(run.outcome), run.satisfied(), run.violations, to_string(run.termination),
       run.attempts, format_usd_exact(run.cost.total())});
  out += report_member(run) + judged_members(run) +
         filled(R"(,"strata":$},"model_usage":{})", {strata_of(m, run)});
  if (0 < run.started_ms)
    out += filled(R"(,"started_at":$,"completed_at":$)",
                  {log_time(run.started_ms),
                   log_time(run.started_ms + static_cast<std::int64_t>(run.wall_ms))});
  return out +
         filled(R"(,"total_time":$,"working_time":$,"uuid":$)",
                {static_cast<double>(run.wall_ms) / 1000, static_cast<double>(run.agent_ms) / 1000,
                 uuid_of(m.facts.registration + "\n" + run.name).substr(0, 22)});
}

std::string sample_text(const ExportedMethod& m, const RunRecord& run) {
  const std::string patch = m.facts.patch(run), model = model_name(m.method);
  const std::string why = printable(run.rationale, kReasonInLog);
  const std::string said =
      filled(R"({"role":"assistant","content":$,"source":"generate","model":$})", {patch, model});
  std::string out = sample_head(m, run, std::string::npos);
  out += filled(R"(,"messages":[{"role":"user","content":$,"source":"input"},@],)"
                R"("output":{"model":$,"choices":[{"message":@,"stop_reason":"stop"}]},)"
                R"("store":{},"events":[],"attachments":{})",
                {briefing_of(m, run), said, model, said});
  if (run.outcome == RunOutcome::kInvalid)
    out += filled(R"(,"error":{"message":$,"traceback":"","traceback_ansi":""})", {why});
  if (const Limit limit = limit_of(m, run); !limit.type.empty())
    out += filled(R"(,"limit":{"type":$,"limit":$})", {limit.type, limit.limit});
  return out +
         filled(R"(,"scores":{$:{"value":@,"answer":$,"explanation":$,)"
                R"("metadata":{"outcome":$,"satisfied":$}}}})",
                {kScorer, score_of(run), patch, why, to_string(run.outcome), run.satisfied()});
}

std::string summary_text(const ExportedMethod& m, const RunRecord& run) {
  const std::string why = printable(run.rationale, kSummaryBytes);
  std::string out = sample_head(m, run, kSummaryBytes);
  if (run.outcome == RunOutcome::kInvalid) out += filled(R"(,"error":$)", {why});
  if (const Limit limit = limit_of(m, run); !limit.type.empty())
    out += filled(R"(,"limit":$)", {limit.type});
  return out + filled(R"(,"retries":$,"completed":true,"message_count":2,)"
                      R"("scores":{$:{"value":@,"explanation":$}}})",
                      {run.attempts == 0 ? 0 : run.attempts - 1, kScorer, score_of(run), why});
}

std::string eval_spec(const ExportedMethod& m) {
  std::vector<std::string> tasks;
  for (const RunRecord* run : m.runs)
    if (std::ranges::find(tasks, run->task) == tasks.end()) tasks.push_back(run->task);
  std::ranges::sort(tasks);
  const std::string id = log_id(m);
  return filled(
      R"({"eval_id":$,"run_id":$,"created":$,"task":$,"task_id":$,"task_version":0,"solver":$,)"
      R"("dataset":{"name":$,"samples":$,"sample_ids":$,"shuffled":true},"model":$,)"
      R"("config":{"epochs":$},"packages":{"proctor":$},"scorers":[{"name":$}],)"
      R"("metadata":{"proctor":{"campaign":$,"method":$,"kind":$,"registration":$,"plan":$,)"
      R"("journal_head":$}}})",
      {id, m.facts.registration.substr(0, 22), log_time(m.started_ms), m.facts.name, id,
       m.method.name, m.facts.name, tasks.size(), tasks, model_name(m.method), m.facts.replicates,
       m.facts.tool_version, kScorer, m.report.campaign, m.method.name, m.method.kind,
       m.facts.registration, m.facts.plan, m.report.journal_head});
}

std::string results_of(const ExportedMethod& m) {
  std::size_t scored = 0, correct = 0;
  for (const RunRecord* run : m.runs) {
    scored += is_scored(*run) ? 1 : 0;
    correct += run->outcome == RunOutcome::kSuccess ? 1 : 0;
  }
  std::string metrics;
  const auto add = [&](const char* name, double value) {
    metrics += metrics.empty() ? "" : ",";
    metrics += filled(R"($:{"name":$,"value":$})", {name, name, value});
  };
  if (0 < scored) {
    const double p = static_cast<double>(correct) / static_cast<double>(scored);
    add("accuracy", p);
    if (1 < scored) add("stderr", std::sqrt(p * (1 - p) / static_cast<double>(scored - 1)));
  }
  const MethodRate* rate = rate_of(*m.report.analysis, m.method.name);
  if (rate != nullptr && rate->rate.value) {
    add("rate_over_tasks", *rate->rate.value);
    if (const auto& interval = rate->rate.interval) {
      add("rate_over_tasks_low", interval->low);
      add("rate_over_tasks_high", interval->high);
    }
  }
  return filled(
      R"({"total_samples":$,"completed_samples":$,"scores":[{"name":$,"scorer":$,)"
      R"("scored_samples":$,"unscored_samples":$,"params":{},"metrics":{@}}]})",
      {m.runs.size(), m.runs.size(), kScorer, kScorer, scored, m.runs.size() - scored, metrics});
}

std::string listed(const std::vector<std::string>& texts, std::size_t begin, std::size_t end) {
  std::string out = "[";
  for (std::size_t i = begin; i < end; ++i) out += (i == begin ? "" : ",\n") + texts[i];
  return out + "]";
}
}  // namespace

std::string inspect_log_name(const ExportedMethod& m) {
  return file_word(log_time(m.started_ms)) + "_" + file_word(m.facts.name + "-" + m.method.name) +
         "_" + log_id(m) + ".eval";
}

Status write_inspect_log(const ExportedMethod& m, const fs::path& path) {
  PROCTOR_TRY(ZipFile zip, ZipFile::create(path));
  const std::string eval = eval_spec(m);
  const std::string plan =
      filled(R"({"name":"plan","steps":[{"solver":$,"params":{"kind":$}}],"config":{}})",
             {m.method.name, m.method.kind});
  PROCTOR_CHECK_OK(
      zip.add("_journal/start.json", filled(R"({"version":2,"eval":@,"plan":@})", {eval, plan})));
  std::vector<std::string> summaries;
  for (const RunRecord* run : m.runs) {
    PROCTOR_CHECK_OK(
        zip.add("samples/" + run->task + "_epoch_" + std::to_string(replicate_of(*run)) + ".json",
                sample_text(m, *run)));
    summaries.push_back(summary_text(m, *run));
  }
  for (std::size_t i = 0, n = 1; i < summaries.size(); i += kSummariesAtOnce, ++n)
    PROCTOR_CHECK_OK(
        zip.add("_journal/summaries/" + std::to_string(n) + ".json",
                listed(summaries, i, std::min(i + kSummariesAtOnce, summaries.size()))));
  PROCTOR_CHECK_OK(zip.add("summaries.json", listed(summaries, 0, summaries.size())));
  // Runs that are still open are missing from it, as from a log that somebody ended early.
  PROCTOR_CHECK_OK(zip.add("header.json",
                           filled(R"({"version":2,"status":$,"eval":@,"plan":@,"results":@,)"
                                  R"("stats":{"started_at":$,"completed_at":$,"model_usage":{}}})",
                                  {0 < m.report.total.open ? "cancelled" : "success", eval, plan,
                                   results_of(m), log_time(m.started_ms), log_time(m.ended_ms)})));
  return zip.finish();
}
}  // namespace proctor
