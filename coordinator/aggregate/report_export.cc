// The report for programs: JSON and CSV.
#include <algorithm>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
using namespace aggregate;

Ordered comparison_json(const Comparison& c) {
  Ordered rows = Ordered::array();
  for (const ComparisonRow& r : c.rows) rows.push_back(comparison_columns().json(r));
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
  std::string text = dumped(row_columns().json(row));
  text.pop_back();  // the closing brace
  out += text + ",\"runs\":[";
  const char* comma = "";
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = runs[position];
    out += comma;
    const std::string report = run.report == Digest() ? "null" : '"' + run.report.hex() + '"';
    out += "{\"run\":" + dumped(run.name) + ",\"report\":" + report + "}";
    comma = ",";
  }
  out += "]}";
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
  head["total_cost"] = row_columns().json(report.total)["cost"];
  head["deviations"] = report.deviations;
  head["approvals"] = report.approvals;
  head["alerts"] = report.alerts;
  head["journal_head"] =
      report.journal_head.empty() ? Ordered(nullptr) : Ordered(report.journal_head);
  Ordered costs = Ordered::array();
  for (const CostRow& row : report.costs) costs.push_back(cost_columns().json(row));
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
    Ordered row = row_columns().json(report.rows[i]);
    row["sets"] = sets_json(report, i);
    out += dumped(row);
  }
  if (!has_runs) return out + "\n],\n\"runs\":null}\n";
  out += "\n],\n\"runs\":[";
  comma = "\n";
  const Columns<RunRecord> columns = run_columns(report.strata_keys);
  for (const RunRecord& run : report.runs) {
    out += comma + dumped(columns.json(run));
    comma = ",\n";
  }
  return out + "\n]}\n";
}

std::string render_csv(const CampaignReport& report) {
  return csv_of(row_columns(), report.rows);
}

std::string render_runs_csv(const CampaignReport& report) {
  return csv_of(run_columns(report.strata_keys), report.runs);
}

std::string render_costs_csv(const CampaignReport& report) {
  return csv_of(cost_columns(), report.costs);
}

std::string render_projection_comparison_csv(const Comparison& comparison) {
  return csv_of(comparison_columns(), comparison.rows);
}
}  // namespace proctor
