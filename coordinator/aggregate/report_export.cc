// The report for programs: JSON and CSV.
#include <algorithm>
#include <charconv>

#include "common/base/csv.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
namespace {
using namespace aggregate;

Ordered share_json(const Share& s) {
  return {
      {"x", s.x}, {"n", s.n}, {"rate", or_null(s.rate)}, {"interval", interval_json(s.interval)}};
}

Ordered cost_json(const Cost& cost) {
  return {{"model", money_json(cost.model)},
          {"execution", money_json(cost.execution)},
          {"human", money_json(cost.human)},
          {"overhead", money_json(cost.overhead)},
          {"total", money_json(cost.total())}};
}

Ordered self_reported_json(const SelfReported& s) {
  return {{"cost", money_json(s.usd)}, {"calls", s.calls}, {"tokens", s.tokens}};
}

Ordered times_json(const Times& t) {
  return {{"median", or_null(t.median_ms)}, {"longest", or_null(t.longest_ms)}};
}

// With the interval that the plan has for it, as everywhere.
Ordered by_task_json(const std::optional<ClusteredRate>& r,
                     const std::optional<Interval>& interval) {
  if (!r) return nullptr;
  return {{"tasks", r->tasks},
          {"mean", r->mean},
          {"standard_error", or_null(r->standard_error)},
          {"interval", interval_json(interval)}};
}

Ordered row_json(const ReportRow& r) {
  Ordered out = {{"method", r.method},
                 {"control", r.is_control},
                 {"stratum", r.key.empty() ? Ordered(nullptr) : Ordered(r.key)},
                 {"value", r.key.empty() ? Ordered(nullptr) : Ordered(r.value)},
                 {"planned", r.planned},
                 {"ended", r.ended()},
                 {"scorable", r.scorable()},
                 {"success", r.success},
                 {"failure", r.failure},
                 {"acceptance_error", r.acceptance_error},
                 {"invalid", r.invalid},
                 {"agent_unavailable", r.agent_unavailable},
                 {"model_unavailable", r.model_unavailable},
                 {"model_overloaded", r.model_overloaded},
                 {"parked", r.parked},
                 {"open", r.open},
                 {"cancelled", r.cancelled},
                 {"removed", r.removed},
                 {"success_rate", share_json(r.success_rate)},
                 {"success_rate_started", share_json(r.success_rate_started)},
                 {"acceptance_error_rate", share_json(r.acceptance_error_rate)},
                 {"invalid_rate", share_json(r.invalid_rate)},
                 {"bounds", interval_json(r.bounds)},
                 {"satisfied", r.satisfied},
                 {"over_tasks", by_task_json(r.by_task, r.interval)},
                 {"over_tasks_interval", interval_json(r.interval)},
                 {"over_tasks_bounds", interval_json(r.bounds_by_task)},
                 {"cost", cost_json(r.cost)},
                 {"self_reported", self_reported_json(r.self_reported)},
                 {"unmetered", r.unmetered()},
                 {"unmetered_runs", r.unmetered_runs},
                 {"model_use", model_use_json(r.model_use)}};
  out["cost_per_success"] = money_or_null(r.cost_per_success);
  out["time_ms"] = {{"all", times_json(r.time)},
                    {"success", times_json(r.time_of_success)},
                    {"failure", times_json(r.time_of_failure)}};
  Ordered terminations = Ordered::object();
  for (const auto& [termination, n] : r.terminations)
    terminations[std::string(to_string(termination))] = n;
  out["terminations"] = std::move(terminations);
  return out;
}

Ordered report_digest(const RunRecord& run) {
  return run.report == Digest() ? Ordered(nullptr) : Ordered(run.report.hex());
}

Ordered run_json(const RunRecord& run, const std::vector<std::string>& keys) {
  Ordered strata = Ordered::object();
  for (std::size_t k = 0; k < keys.size(); ++k) strata[keys[k]] = run.strata[k];
  Ordered out = {
      {"order", run.run.raw()},       {"run", run.name},    {"task", run.task},
      {"method", run.method},         {"stage", run.stage}, {"strata", std::move(strata)},
      {"state", to_string(run.state)}};
  const bool ended = run.state == RunRecord::State::kEnded;
  out["outcome"] = ended ? Ordered(to_string(run.outcome)) : Ordered(nullptr);
  out["satisfied"] = ended ? Ordered(run.satisfied()) : Ordered(nullptr);
  out["violations"] = run.violations;
  out["termination"] = ended ? Ordered(to_string(run.termination)) : Ordered(nullptr);
  out["agent_exit"] = run.agent_exit ? Ordered(*run.agent_exit) : Ordered(nullptr);
  if (!run.patch.empty()) out["patch"] = run.patch;
  out["attempts"] = run.attempts;
  out["cost"] = cost_json(run.cost);
  out["self_reported"] = self_reported_json(run.self_reported);
  out["metered_calls"] = run.metered_calls;
  out["model_use"] = model_use_json(run.model_use);
  out["reviews"] = run.reviews;
  out["reserved"] = money_json(run.asked);
  out["wasted"] = money_json(run.wasted);
  out["time_ms"] = {{"wall", run.wall_ms},
                    {"setup", run.setup_ms},
                    {"agent", run.agent_ms},
                    {"acceptance", run.acceptance_ms}};
  out["why"] = printable(run.rationale, limits::kDetailBytes);
  if (run.state == RunRecord::State::kParked && !run.parked_why.empty())
    out["parked"] = {{"why", printable(run.parked_why, limits::kDetailBytes)}};
  else if (run.state == RunRecord::State::kParked)
    out["parked"] = {{"scope", run.parked_scope}, {"short_by", money_json(run.short_by)}};
  out["report"] = report_digest(run);
  out["set_aside"] = Ordered::array();
  for (const SetAside& s : run.set_aside)
    out["set_aside"].push_back(
        {{"attempt", s.attempt},
         {"outcome", to_string(RunOutcome::kInvalid)},
         {"termination", to_string(s.termination)},
         {"why", printable(s.why, limits::kDetailBytes)},
         {"report", s.report == Digest() ? Ordered(nullptr) : Ordered(s.report.hex())},
         {"by", s.by},
         {"reason", printable(s.reason, limits::kDetailBytes)}});
  return out;
}

// "attempt 1: invalid, infrastructure: the disk was full | ...": what a spreadsheet can show.
std::string set_aside_cell(const RunRecord& run) {
  std::string out;
  for (const SetAside& s : run.set_aside)
    out += (out.empty() ? "attempt " : " | attempt ") + std::to_string(s.attempt) + ": invalid, " +
           std::string(to_string(s.termination)) + ": " + s.why;
  return printable(out, limits::kDetailBytes);
}

Ordered cost_row_json(const CostRow& r) {
  return {{"by", r.by},
          {"name", r.name},
          {"runs", r.runs},
          {"ended", r.ended},
          {"successes", r.successes},
          {"cost", cost_json(r.cost)},
          {"self_reported", self_reported_json(r.self_reported)},
          {"reserved", money_json(r.asked)},
          {"overrun", money_json(r.overrun)},
          {"wasted", money_json(r.wasted)},
          {"wasted_attempts", r.wasted_attempts},
          {"reviews", r.reviews},
          {"reviewed", money_json(r.reviewed)},
          {"median", money_or_null(r.median)},
          {"p90", money_or_null(r.p90)},
          {"most", money_or_null(r.most)},
          {"per_success", money_or_null(r.per_success)},
          {"model_use", model_use_json(r.model_use)}};
}

Ordered comparison_json(const Comparison& c) {
  Ordered rows = Ordered::array();
  for (const ComparisonRow& r : c.rows)
    rows.push_back({{"by", r.by},
                    {"name", r.name},
                    {"projected", money_json(r.expected)},
                    {"projected_of_paid_runs", money_json(r.of_paid)},
                    {"actual", money_json(r.actual)},
                    {"ratio_thousandths", or_null(r.ratio_thousandths)}});
  return {{"inputs", c.inputs}, {"registered", c.registered}, {"abstract_units", c.abstract},
          {"runs", c.runs},     {"paid_runs", c.paid},        {"rows", std::move(rows)}};
}

// The sets behind the counts of the row, by what each counts; null: nobody asked for sets.
Ordered sets_json(const CampaignReport& report, std::size_t row) {
  if (!report.details) return nullptr;
  const std::vector<RunSet>& sets = report.details->sets.sets;
  const auto by_row = [](const RunSet& s, std::size_t r) { return s.row < r; };
  const auto first = std::lower_bound(sets.begin(), sets.end(), row, by_row);
  Ordered out = Ordered::object();
  for (auto it = first; it != sets.end() && it->row == row; ++it)
    out[std::string(class_word(it->classes))] =
        set_name(static_cast<std::size_t>(it - sets.begin()));
  return out;
}

// The runs behind a row are written straight into the text: a row of a large campaign has a
// million.
void append_row_with_runs(std::string& out, const ReportRow& row,
                          const std::vector<RunRecord>& runs) {
  std::string text = dumped(row_json(row));
  text.pop_back();  // the closing brace
  out += text + ",\"runs\":[";
  const char* comma = "";
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = runs[position];
    out += comma;
    out += "{\"run\":" + dumped(run.name) + ",\"report\":" + dumped(report_digest(run)) + "}";
    comma = ",";
  }
  out += "]}";
}

std::string decimal(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);  // shortest that reads back
  return {text, end.ptr};
}
std::string cell(const std::optional<double>& value) {
  return value ? decimal(*value) : "";
}
std::string cell(std::uint64_t value) {
  return std::to_string(value);
}
void append_share(std::vector<std::string>& cells, const Share& share) {
  cells.push_back(cell(share.rate));
  cells.push_back(share.interval ? decimal(share.interval->low) : "");
  cells.push_back(share.interval ? decimal(share.interval->high) : "");
}
// Of a method over all tasks, where the plan has weights.
void append_weighted_rate(std::vector<std::string>& cells, const CampaignReport& report,
                          const ReportRow& row) {
  Estimate e;
  for (const MethodRate& r : report.analysis->rates)
    if (row.key.empty() && r.method == row.method && r.weighted) e = r.weighted->of.estimate;
  cells.push_back(cell(e.value));
  cells.push_back(e.interval ? decimal(e.interval->low) : "");
  cells.push_back(e.interval ? decimal(e.interval->high) : "");
}
// Their columns are the last.
std::vector<std::string> with_model_use(std::vector<std::string> header,
                                        std::initializer_list<std::string> last = {}) {
  header.insert(header.end(), model_use_columns().begin(), model_use_columns().end());
  header.insert(header.end(), last);
  return header;
}
void append_cost(std::vector<std::string>& cells, const Cost& cost) {
  for (const MicroUsd amount :
       {cost.model, cost.execution, cost.human, cost.overhead, cost.total()})
    cells.push_back(format_usd_exact(amount));
}
}  // namespace

std::string render_json(const CampaignReport& report, JsonForm form, std::string_view runs_csv) {
  const bool has_runs = form == JsonForm::kFirst || report.runs.size() <= kJsonRuns;
  Ordered head = {{"schema_version", static_cast<int>(form)},
                  {"campaign", report.campaign},
                  {"alpha", report.alpha}};
  head["strata"] = report.strata_keys;
  head["stages"] = report.stages;
  head["warnings"] = report.warnings;
  head["part"] = report.part.empty() ? Ordered(nullptr) : Ordered(report.part);
  Ordered definitions = Ordered::object();
  for (const Definition& d : report_definitions()) definitions[std::string(d.word)] = d.meaning;
  head["definitions"] = std::move(definitions);
  head["notes"] = report_notes();
  head["total_cost"] = cost_json(report.total.cost);
  head["deviations"] = report.deviations;
  head["approvals"] = report.approvals;
  head["alerts"] = report.alerts;
  head["journal_head"] =
      report.journal_head.empty() ? Ordered(nullptr) : Ordered(report.journal_head);
  Ordered costs = Ordered::array();
  for (const CostRow& row : report.costs) costs.push_back(cost_row_json(row));
  head["costs"] = std::move(costs);
  head["projection"] = report.projection ? comparison_json(*report.projection) : Ordered(nullptr);
  head["analysis"] = analysis_json(*report.analysis);
  head["details"] = report.details ? details_json(*report.details, form) : Ordered(nullptr);
  if (form != JsonForm::kFirst && has_runs) head["runs_file"] = nullptr;
  if (form != JsonForm::kFirst && !has_runs) {
    const Digest digest = sha256(runs_csv.empty() ? render_runs_csv(report) : runs_csv);
    head["runs_file"] = {
        {"name", "runs.csv"}, {"runs", report.runs.size()}, {"digest", digest.hex()}};
  }
  std::string out = dumped(head);
  out.pop_back();
  out += ",\n\"rows\":[";
  const char* comma = "\n";
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    out += comma;
    comma = ",\n";
    if (form == JsonForm::kFirst) {
      append_row_with_runs(out, report.rows[i], report.runs);
      continue;
    }
    Ordered row = row_json(report.rows[i]);
    row["sets"] = sets_json(report, i);
    out += dumped(row);
  }
  if (!has_runs) return out + "\n],\n\"runs\":null}\n";
  out += "\n],\n\"runs\":[";
  comma = "\n";
  for (const RunRecord& run : report.runs) {
    out += comma + dumped(run_json(run, report.strata_keys));
    comma = ",\n";
  }
  return out + "\n]}\n";
}

std::string render_csv(const CampaignReport& report) {
  std::string out;
  csv_append_record(out, with_model_use({"method",
                                         "stratum",
                                         "value",
                                         "planned",
                                         "ended",
                                         "scorable",
                                         "success",
                                         "failure",
                                         "acceptance_error",
                                         "invalid",
                                         "parked",
                                         "open",
                                         "cancelled",
                                         "removed",
                                         "success_rate",
                                         "success_rate_low",
                                         "success_rate_high",
                                         "acceptance_error_rate",
                                         "acceptance_error_rate_low",
                                         "acceptance_error_rate_high",
                                         "invalid_rate",
                                         "invalid_rate_low",
                                         "invalid_rate_high",
                                         "bound_low",
                                         "bound_high",
                                         "over_tasks_mean",
                                         "over_tasks_low",
                                         "over_tasks_high",
                                         "model_usd",
                                         "execution_usd",
                                         "human_usd",
                                         "overhead_usd",
                                         "total_usd",
                                         "per_success_usd",
                                         "median_ms",
                                         "longest_ms",
                                         "agent_unavailable",
                                         "success_rate_started",
                                         "success_rate_started_low",
                                         "success_rate_started_high",
                                         "self_reported_usd",
                                         "unmetered_runs",
                                         "satisfied",
                                         "model_unavailable",
                                         "weighted_rate",
                                         "weighted_rate_low",
                                         "weighted_rate_high"},
                                        {"control", "model_overloaded"}));
  for (const ReportRow& r : report.rows) {
    std::vector<std::string> cells = {r.method, r.key.empty() ? "all" : r.key, r.value};
    for (const std::uint64_t n :
         {r.planned, r.ended(), r.scorable(), r.success, r.failure, r.acceptance_error, r.invalid,
          r.parked, r.open, r.cancelled, r.removed})
      cells.push_back(cell(n));
    append_share(cells, r.success_rate);
    append_share(cells, r.acceptance_error_rate);
    append_share(cells, r.invalid_rate);
    cells.push_back(r.bounds ? decimal(r.bounds->low) : "");
    cells.push_back(r.bounds ? decimal(r.bounds->high) : "");
    cells.push_back(r.by_task ? decimal(r.by_task->mean) : "");
    cells.push_back(r.interval ? decimal(r.interval->low) : "");
    cells.push_back(r.interval ? decimal(r.interval->high) : "");
    append_cost(cells, r.cost);
    cells.push_back(r.cost_per_success ? format_usd_exact(*r.cost_per_success) : "");
    cells.push_back(cell(r.time.median_ms));
    cells.push_back(r.time.longest_ms ? cell(*r.time.longest_ms) : "");
    cells.push_back(cell(r.agent_unavailable));
    append_share(cells, r.success_rate_started);
    cells.push_back(format_usd_exact(r.self_reported.usd));
    cells.push_back(cell(r.unmetered_runs));
    cells.push_back(cell(r.satisfied));
    cells.push_back(cell(r.model_unavailable));
    append_weighted_rate(cells, report, r);
    append_model_use(cells, r.model_use);
    cells.emplace_back(r.is_control ? "yes" : "no");
    cells.push_back(cell(r.model_overloaded));
    csv_append_record(out, cells);
  }
  return out;
}

std::string runs_csv_header(std::span<const std::string> strata_keys) {
  std::string out;
  std::vector<std::string> header = {"order", "run_id", "task", "method"};
  header.insert(header.end(), strata_keys.begin(), strata_keys.end());
  for (const char* column : {"state",
                             "outcome",
                             "termination",
                             "attempts",
                             "model_usd",
                             "execution_usd",
                             "human_usd",
                             "overhead_usd",
                             "total_usd",
                             "wall_ms",
                             "setup_ms",
                             "agent_ms",
                             "acceptance_ms",
                             "agent_exit",
                             "patch",
                             "why",
                             "report",
                             "metered_calls",
                             "self_reported_usd",
                             "self_reported_calls",
                             "self_reported_tokens",
                             "set_aside",
                             "satisfied",
                             "violations",
                             "worker",
                             "started_ms",
                             "stage"})
    header.emplace_back(column);
  csv_append_record(out, with_model_use(std::move(header)));
  return out;
}

void append_run_csv(std::string& out, const RunRecord& run) {
  const bool ended = run.state == RunRecord::State::kEnded;
  std::vector<std::string> cells = {cell(run.run.raw()), run.name, run.task, run.method};
  cells.insert(cells.end(), run.strata.begin(), run.strata.end());
  cells.emplace_back(to_string(run.state));
  cells.emplace_back(ended ? to_string(run.outcome) : "");
  cells.emplace_back(ended ? to_string(run.termination) : "");
  cells.push_back(cell(run.attempts));
  append_cost(cells, run.cost);
  for (const std::uint64_t ms : {run.wall_ms, run.setup_ms, run.agent_ms, run.acceptance_ms})
    cells.push_back(cell(ms));
  cells.push_back(run.agent_exit ? std::to_string(*run.agent_exit) : "");
  cells.push_back(run.patch);
  cells.push_back(
      printable(run.parked_why.empty() ? run.rationale : run.parked_why, limits::kDetailBytes));
  cells.push_back(run.report == Digest() ? "" : run.report.hex());
  cells.push_back(cell(run.metered_calls));
  cells.push_back(format_usd_exact(run.self_reported.usd));
  cells.push_back(cell(run.self_reported.calls));
  cells.push_back(cell(run.self_reported.tokens));
  cells.push_back(set_aside_cell(run));
  cells.emplace_back(!ended ? "" : run.satisfied() ? "yes" : "no");
  cells.push_back(cell(run.violations));
  cells.push_back(run.worker);
  cells.push_back(run.started_ms == 0 ? "" : std::to_string(run.started_ms));
  cells.push_back(run.stage);
  append_model_use(cells, run.model_use);
  csv_append_record(out, cells);
}

std::string render_runs_csv(const CampaignReport& report) {
  std::string out = runs_csv_header(report.strata_keys);
  for (const RunRecord& run : report.runs) append_run_csv(out, run);
  return out;
}

std::string render_costs_csv(const CampaignReport& report) {
  std::string out;
  csv_append_record(out, with_model_use({"by",
                                         "name",
                                         "runs",
                                         "ended",
                                         "successes",
                                         "model_usd",
                                         "execution_usd",
                                         "human_usd",
                                         "overhead_usd",
                                         "total_usd",
                                         "median_usd",
                                         "p90_usd",
                                         "most_usd",
                                         "per_success_usd",
                                         "reserved_usd",
                                         "overrun_usd",
                                         "wasted_usd",
                                         "wasted_attempts",
                                         "reviews",
                                         "self_reported_usd"}));
  const auto amount = [](const std::optional<MicroUsd>& m) {
    return m ? format_usd_exact(*m) : std::string();
  };
  for (const CostRow& r : report.costs) {
    std::vector<std::string> cells = {r.by, r.name, cell(r.runs), cell(r.ended), cell(r.successes)};
    append_cost(cells, r.cost);
    for (const auto& m : {r.median, r.p90, r.most, r.per_success}) cells.push_back(amount(m));
    for (const MicroUsd m : {r.asked, r.overrun, r.wasted}) cells.push_back(format_usd_exact(m));
    cells.push_back(cell(r.wasted_attempts));
    cells.push_back(cell(r.reviews));
    cells.push_back(format_usd_exact(r.self_reported.usd));
    append_model_use(cells, r.model_use);
    csv_append_record(out, cells);
  }
  return out;
}
}  // namespace proctor
