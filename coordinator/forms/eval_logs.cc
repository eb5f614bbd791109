#include "coordinator/forms/eval_logs.h"

#include <archive.h>
#include <archive_entry.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
// A zip file that is written member by member: the container of an Inspect log.  Adapter (file
// system, libarchive).
class ZipFile {
 public:
  // Nothing lies at `path` until finish(); what is written before is beside it.
  static Result<ZipFile> create(const fs::path& path);
  ZipFile(ZipFile&&) noexcept;
  ZipFile& operator=(ZipFile&&) = delete;
  ~ZipFile();  // without finish(): as if there had been none
  // Members have no time: the same members give the same bytes.
  Status add(const std::string& name, std::string_view bytes);
  Status finish();

 private:
  struct Writer;
  explicit ZipFile(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

using WriteArchive = Owned<archive, archive_write_free>;
using ZipEntry = Owned<archive_entry, archive_entry_free>;

constexpr std::time_t kFirstZipDay = 315'532'800;  // 1980-01-01: zip knows no earlier one

struct ZipFile::Writer {
  fs::path path, temporary;
  WriteArchive out;

  Error failed(const char* what) const {
    const char* why = archive_error_string(out.get());
    return Error{Errc::kUnavailable, path.string() + ": " + what + ": " +
                                         (why == nullptr ? "no reason was given" : why)};
  }
};

ZipFile::ZipFile(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
ZipFile::ZipFile(ZipFile&&) noexcept = default;

ZipFile::~ZipFile() {
  if (writer_ == nullptr || writer_->out == nullptr) return;
  writer_->out.reset();
  std::error_code ec;
  fs::remove(writer_->temporary, ec);
}

Result<ZipFile> ZipFile::create(const fs::path& path) {
  auto writer = std::make_unique<Writer>();
  writer->path = path;
  writer->temporary = path;
  writer->temporary += ".part";
  writer->out.reset(archive_write_new());
  archive* out = writer->out.get();
  if (out == nullptr) return Error{Errc::kUnavailable, path.string() + ": no memory"};
  // libarchive makes files of its own umask; what is made here is its owner's.
  if (const Status empty = write_file(writer->temporary, "", Durability::kLazy); !empty.ok())
    return empty.error();
  if (archive_write_set_format_zip(out) != ARCHIVE_OK ||
      archive_write_open_filename(out, writer->temporary.c_str()) != ARCHIVE_OK)
    return writer->failed("it cannot be written");
  return ZipFile(std::move(writer));
}

Status ZipFile::add(const std::string& name, std::string_view bytes) {
  archive* out = writer_->out.get();
  const ZipEntry entry(archive_entry_new());
  if (entry == nullptr) return Error{Errc::kUnavailable, writer_->path.string() + ": no memory"};
  archive_entry_set_pathname_utf8(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kOpenFile);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_mtime(entry.get(), kFirstZipDay, 0);
  if (archive_write_header(out, entry.get()) != ARCHIVE_OK)
    return writer_->failed("a member cannot be written");
  while (!bytes.empty()) {
    const la_ssize_t n = archive_write_data(out, bytes.data(), bytes.size());
    if (n <= 0) return writer_->failed("a member cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

Status ZipFile::finish() {
  if (archive_write_close(writer_->out.get()) != ARCHIVE_OK)
    return writer_->failed("it cannot be finished");
  PROCTOR_CHECK_OK(sync_path(writer_->temporary));
  PROCTOR_CHECK_OK(rename_path(writer_->temporary, writer_->path));
  writer_->out.reset();
  return sync_path(writer_->path.parent_path());
}

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

std::uint64_t replicate_of(const RunRecord& run) {
  std::uint64_t n = 0;
  for (std::size_t at = run.name.rfind("/r") + 2; at < run.name.size(); ++at) {
    if (run.name[at] < '0' || '9' < run.name[at]) return 1;
    n = n * 10 + static_cast<std::uint64_t>(run.name[at] - '0');
  }
  return std::max<std::uint64_t>(n, 1);
}

std::string model_name(const ExportFacts::OfMethod& method) {
  if (method.model.empty()) return "proctor/" + method.name;
  return (method.developer.empty() ? "unknown" : method.developer) + "/" + method.model;
}

std::string uuid_of(std::string_view text) {
  std::string hex = sha256(text).hex().substr(0, 32);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<std::size_t>(hex[16]) % 4];
  for (const std::size_t at : {20U, 16U, 12U, 8U}) hex.insert(at, "-");
  return hex;
}

std::string file_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || (c == '.' && !out.empty());
    out += plain ? c : '-';
  }
  return out.empty() ? "-" : out;
}

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
             : word_of(plan.interval);
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

namespace {
constexpr std::size_t kReasonInLog = 2'000, kSummaryBytes = 1'000, kSummariesAtOnce = 1'000;
const char* const kScorer = "acceptance";

std::string log_time(std::int64_t ms) {
  std::string out = to_rfc3339(WallTime(ms));
  return out.substr(0, out.find_first_of(".Z")) + "+00:00";
}

std::string log_id(const ExportedMethod& m) {
  return sha256(m.facts.registration + "\n" + m.method.name).hex().substr(0, 22);
}

// The cap that ended the run, as Inspect has them; null: none did.
Ordered limit_of(const ExportedMethod& m, const RunRecord& run) {
  const auto cap = [&](const char* name) {
    const auto found = m.facts.caps.find(name);
    return found == m.facts.caps.end() ? 0.0 : static_cast<double>(found->second);
  };
  if (run.termination == Termination::kAgentTimeout)
    return {{"type", "time"}, {"limit", static_cast<double>(run.agent_ms) / 1000}};
  if (run.termination == Termination::kOperatorCancel) return {{"type", "operator"}, {"limit", 1}};
  if (run.termination != Termination::kBudgetExceeded) return nullptr;
  if (run.cap == "usd") return {{"type", "cost"}, {"limit", cap("micro_usd") / 1e6}};
  if (run.cap == "tokens") return {{"type", "token"}, {"limit", cap("tokens")}};
  if (run.cap == "wall") return {{"type", "time"}, {"limit", cap("wall_ms") / 1000}};
  return {{"type", "custom"}, {"limit", 1}};
}

bool is_scored(const RunRecord& run) {
  return run.outcome == RunOutcome::kSuccess || run.outcome == RunOutcome::kFailure;
}

// The score's value is the bare word NaN where a run is unscored, which is no JSON, but what
// Inspect writes and reads; so it is put in front of what the library makes.
std::string scores_text(const RunRecord& run, const Ordered& rest) {
  const char* value = !is_scored(run)                       ? "NaN"
                      : run.outcome == RunOutcome::kSuccess ? "\"C\""
                                                            : "\"I\"";
  return std::string("{\"") + kScorer + "\":{\"value\":" + value + "," + dumped(rest).substr(1) +
         "}";
}
std::string with_scores(const Ordered& object, const std::string& scores) {
  std::string out = dumped(object);
  out.pop_back();
  return out + ",\"scores\":" + scores + "}";
}

Ordered sample_metadata(const ExportedMethod& m, const RunRecord& run) {
  Ordered out = {{"run", run.name},
                 {"outcome", to_string(run.outcome)},
                 {"satisfied", run.satisfied()},
                 {"violations", run.violations},
                 {"termination", to_string(run.termination)},
                 {"attempts", run.attempts},
                 {"cost_usd", format_usd_exact(run.cost.total())}};
  if (run.report != Digest()) out["report_sha256"] = run.report.hex();
  Ordered strata = Ordered::object();
  for (std::size_t k = 0; k < m.report.strata_keys.size(); ++k)
    strata[m.report.strata_keys[k]] = run.strata[k];
  out["strata"] = std::move(strata);
  return out;
}

// What sample and summary share.
Ordered sample_head(const ExportedMethod& m, const RunRecord& run, std::size_t input_bytes) {
  const auto briefing = m.facts.briefings.find(run.task);
  const std::string input = briefing == m.facts.briefings.end() ? "" : briefing->second;
  Ordered out = {{"id", run.task},
                 {"epoch", replicate_of(run)},
                 {"input", input.substr(0, std::min(input.size(), input_bytes))},
                 {"target", ""},
                 {"metadata", sample_metadata(m, run)},
                 {"model_usage", Ordered::object()}};
  if (0 < run.started_ms) {
    out["started_at"] = log_time(run.started_ms);
    out["completed_at"] = log_time(run.started_ms + static_cast<std::int64_t>(run.wall_ms));
  }
  out["total_time"] = static_cast<double>(run.wall_ms) / 1000;
  out["working_time"] = static_cast<double>(run.agent_ms) / 1000;
  out["uuid"] = uuid_of(m.facts.registration + "\n" + run.name).substr(0, 22);
  return out;
}

std::string sample_text(const ExportedMethod& m, const RunRecord& run) {
  Ordered out = sample_head(m, run, std::string::npos);
  const std::string patch = m.facts.patch(run);
  const std::string model = model_name(m.method);
  const Ordered said = {
      {"role", "assistant"}, {"content", patch}, {"source", "generate"}, {"model", model}};
  out["messages"] = Ordered::array(
      {Ordered{{"role", "user"}, {"content", out["input"]}, {"source", "input"}}, said});
  out["output"] = {
      {"model", model},
      {"choices", Ordered::array({Ordered{{"message", said}, {"stop_reason", "stop"}}})}};
  out["store"] = Ordered::object();
  out["events"] = Ordered::array();
  out["attachments"] = Ordered::object();
  const std::string why = printable(run.rationale, kReasonInLog);
  if (run.outcome == RunOutcome::kInvalid)
    out["error"] = {{"message", why}, {"traceback", ""}, {"traceback_ansi", ""}};
  if (Ordered limit = limit_of(m, run); !limit.is_null()) out["limit"] = std::move(limit);
  return with_scores(
      out,
      scores_text(run, {{"answer", patch},
                        {"explanation", why},
                        {"metadata",
                         {{"outcome", to_string(run.outcome)}, {"satisfied", run.satisfied()}}}}));
}

std::string summary_text(const ExportedMethod& m, const RunRecord& run) {
  Ordered out = sample_head(m, run, kSummaryBytes);
  const std::string why = printable(run.rationale, kSummaryBytes);
  if (run.outcome == RunOutcome::kInvalid) out["error"] = why;
  if (const Ordered limit = limit_of(m, run); !limit.is_null()) out["limit"] = limit["type"];
  out["retries"] = run.attempts == 0 ? 0 : run.attempts - 1;
  out["completed"] = true;
  out["message_count"] = 2;
  return with_scores(out, scores_text(run, {{"explanation", why}}));
}

Ordered eval_spec(const ExportedMethod& m) {
  std::vector<std::string> tasks;
  for (const RunRecord* run : m.runs)
    if (std::ranges::find(tasks, run->task) == tasks.end()) tasks.push_back(run->task);
  std::ranges::sort(tasks);
  const std::string id = log_id(m);
  return {{"eval_id", id},
          {"run_id", m.facts.registration.substr(0, 22)},
          {"created", log_time(m.started_ms)},
          {"task", m.facts.name},
          {"task_id", id},
          {"task_version", 0},
          {"solver", m.method.name},
          {"dataset",
           {{"name", m.facts.name},
            {"samples", tasks.size()},
            {"sample_ids", tasks},
            {"shuffled", true}}},
          {"model", model_name(m.method)},
          {"config", {{"epochs", m.facts.replicates}}},
          {"packages", {{"proctor", m.facts.tool_version}}},
          {"scorers", Ordered::array({Ordered{{"name", kScorer}}})},
          {"metadata",
           {{"proctor",
             {{"campaign", m.report.campaign},
              {"method", m.method.name},
              {"kind", m.method.kind},
              {"registration", m.facts.registration},
              {"plan", m.facts.plan},
              {"journal_head", m.report.journal_head}}}}}};
}

Ordered metric(const char* name, double value) {
  return {{"name", name}, {"value", value}};
}

Ordered results_of(const ExportedMethod& m) {
  std::size_t scored = 0, correct = 0;
  for (const RunRecord* run : m.runs) {
    scored += is_scored(*run) ? 1 : 0;
    correct += run->outcome == RunOutcome::kSuccess ? 1 : 0;
  }
  Ordered metrics = Ordered::object();
  if (0 < scored) {
    const double p = static_cast<double>(correct) / static_cast<double>(scored);
    metrics["accuracy"] = metric("accuracy", p);
    if (1 < scored)
      metrics["stderr"] =
          metric("stderr", std::sqrt(p * (1 - p) / static_cast<double>(scored - 1)));
  }
  const auto& rates = m.report.analysis->rates;
  const auto rate = std::ranges::find(rates, m.method.name, &MethodRate::method);
  if (rate != rates.end() && rate->rate.value) {
    metrics["rate_over_tasks"] = metric("rate_over_tasks", *rate->rate.value);
    if (rate->rate.interval) {
      metrics["rate_over_tasks_low"] = metric("rate_over_tasks_low", rate->rate.interval->low);
      metrics["rate_over_tasks_high"] = metric("rate_over_tasks_high", rate->rate.interval->high);
    }
  }
  return {{"total_samples", m.runs.size()},
          {"completed_samples", m.runs.size()},
          {"scores", Ordered::array({Ordered{{"name", kScorer},
                                             {"scorer", kScorer},
                                             {"scored_samples", scored},
                                             {"unscored_samples", m.runs.size() - scored},
                                             {"params", Ordered::object()},
                                             {"metrics", std::move(metrics)}}})}};
}

Ordered plan_of(const ExportedMethod& m) {
  return {
      {"name", "plan"},
      {"steps",
       Ordered::array({Ordered{{"solver", m.method.name}, {"params", {{"kind", m.method.kind}}}}})},
      {"config", Ordered::object()}};
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
  const Ordered eval = eval_spec(m), plan = plan_of(m);
  PROCTOR_CHECK_OK(zip.add("_journal/start.json",
                           dumped(Ordered{{"version", 2}, {"eval", eval}, {"plan", plan}})));
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
  const Ordered header = {{"version", 2},
                          {"status", 0 < m.report.total.open ? "cancelled" : "success"},
                          {"eval", eval},
                          {"plan", plan},
                          {"results", results_of(m)},
                          {"stats",
                           {{"started_at", log_time(m.started_ms)},
                            {"completed_at", log_time(m.ended_ms)},
                            {"model_usage", Ordered::object()}}}};
  PROCTOR_CHECK_OK(zip.add("header.json", dumped(header)));
  return zip.finish();
}
}  // namespace proctor
