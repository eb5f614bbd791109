// The report for programs: JSON and CSV.
#include <algorithm>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/warnings.h"

namespace proctor {
namespace {
using namespace aggregate;

std::string comparison_json(const Comparison& c) {
  return filled(R"({"inputs":$,"registered":$,"abstract_units":$,"runs":$,"paid_runs":$,"rows":@})",
                {c.inputs, c.registered, c.abstract, c.runs, c.paid,
                 listed_rows(comparison_columns(), c.rows)});
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
  Ordered definitions = Ordered::object();
  for (const Definition& d : report_definitions()) definitions[std::string(d.word)] = d.meaning;
  std::vector<std::string> notes = report_limits(report);
  for (const std::string_view note : report_notes()) notes.emplace_back(note);
  std::string out = filled(
      R"({"schema_version":$,"campaign":$,"alpha":$,"strata":$,"stages":$,"warnings":$,"part":$,)"
      R"("definitions":$,"notes":$,"total_cost":$,"deviations":$,"approvals":$,"alerts":$,)"
      R"("journal_head":$,"costs":@,"projection":@,"analysis":@,"details":@)",
      {static_cast<int>(form), report.campaign, report.alpha, report.strata_keys, report.stages,
       report.warnings, or_null(report.part), definitions, notes,
       row_columns().json(report.total)["cost"], report.deviations, report.approvals, report.alerts,
       or_null(report.journal_head), listed_rows(cost_columns(), report.costs),
       report.projection ? comparison_json(*report.projection) : "null",
       analysis_json(*report.analysis),
       report.details ? details_json(*report.details, form) : "null"});
  if (form != JsonForm::kFirst && has_runs) out += R"(,"runs_file":null)";
  if (form != JsonForm::kFirst && !has_runs)
    out += filled(
        R"(,"runs_file":{"name":"runs.csv","runs":$,"digest":$})",
        {report.runs.size(), sha256(runs_csv.empty() ? render_runs_csv(report) : runs_csv).hex()});
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
