// proctor rubric sensitivity CAMPAIGN: does the order of methods rest on the weights of the score?
#include <fmt/format.h>

#include "common/base/text.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/rubric.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {
constexpr const char* kSensitivityFile = "rubric_sensitivity.csv";

struct SensitivityArgs {
  std::string folder;
  bool json = false;
};

struct Scored {
  std::vector<ScoredRun> runs;  // agents' runs
  std::uint64_t gone = 0;       // runs whose evidence is not here
};

// The journal has the score alone; its dimensions are in the report that the journal names.
Result<Scored> scored_runs(const FrozenCampaign& frozen, const std::vector<RunRecord>& runs) {
  Scored out;
  for (const RunRecord& run : runs) {
    if (run.state != RunRecord::State::kEnded || !run.score || run.is_control()) continue;
    const Result<RunReport> report =
        bound_report(frozen.folder, run.name, AttemptNo(run.attempts), run.report);
    if (!report.ok() && report.error().code == Errc::kNotFound) {
      ++out.gone;
      continue;
    }
    PROCTOR_CHECK_OK(report);
    if (report->score) out.runs.push_back({run.method, *report->score});
  }
  return out;
}

// Names of the weights under which two methods change places; each once.
std::vector<std::string> turning(const std::vector<SensitivityRow>& rows) {
  std::vector<std::string> out;
  for (const SensitivityRow& row : rows)
    if (row.turned && (out.empty() || out.back() != row.name)) out.push_back(row.name);
  return out;
}

std::string sensitivity_text(const std::vector<SensitivityRow>& rows, const Scored& scored) {
  std::vector<std::string> head{"weights", "minimal", "trace", "maint"};
  for (const SensitivityRow& row : rows)
    if (row.name == rows.front().name)
      head.push_back(printable(row.method) + " (" + std::to_string(row.runs) + ")");
  const auto share = [](std::uint64_t of) {
    return fmt::format("{:.3f}", static_cast<double>(of) / static_cast<double>(kMillion));
  };
  const std::size_t methods = head.size() - 4;
  aggregate::Table table(std::move(head), 1);
  for (std::size_t i = 0; i < rows.size(); i += methods) {
    const RubricWeights& w = rows[i].weights;
    std::vector<std::string> cells{rows[i].name, share(w.minimal), share(w.trace), share(w.maint)};
    for (std::size_t m = 0; m < methods; ++m)
      cells.push_back(fmt::format("{:.3f}", rows[i + m].mean));
    table.add(std::move(cells));
  }
  std::string out =
      "Mean graded score of each method (its runs that pass all gates) under other "
      "weights.\nExploratory: no plan has registered this comparison.\n\n";
  table.append_to(out);
  const std::vector<std::string> turned = turning(rows);
  out += turned.empty() ? "\nThe order of the methods is the same under all of them.\n"
                        : fmt::format("\nThe order of the methods changes under: {}.\n",
                                      fmt::join(turned, ", "));
  if (0 < scored.gone)
    out += counted(scored.gone, "scored run") + " left out: the evidence is not here.\n";
  return out;
}

Result<std::string> sensitivity(const SensitivityArgs& args) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const ReportInput input, read_runs(frozen));
  PROCTOR_CHECK_OK(may_be_compared(args.folder, input.runs));
  PROCTOR_TRY(const Scored scored, scored_runs(frozen, input.runs));
  if (scored.runs.empty())
    return Error{Errc::kInvalid,
                 "no run of an agent has a graded score here: a score needs `rubric` in the "
                 "contract, and all gates passed (proctor report " +
                     args.folder + " shows the gates)"};
  const std::vector<SensitivityRow> rows = rubric_sensitivity(scored.runs, frozen.campaign.weights);
  PROCTOR_CHECK_OK(write_listed(frozen.folder, kSensitivityFile,
                                aggregate::csv_of(aggregate::sensitivity_columns(), rows)));
  if (!args.json)
    return sensitivity_text(rows, scored) +
           "Written: " + (frozen.folder.reports() / kSensitivityFile).string() + "\n";
  return aggregate::filled(
      R"({"exploratory":true,"order_changes":$,"scored_runs":$,"runs_without_evidence":$,"rows":@})"
      "\n",
      {!turning(rows).empty(), scored.runs.size(), scored.gone,
       aggregate::listed_rows(aggregate::sensitivity_columns(), rows)});
}
}  // namespace

void add_rubric(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("rubric", "the graded score of patches that pass all gates",
                         "Example:\n  proctor rubric sensitivity my-campaign");
  command.require_subcommand(1);
  const Command inner = command.add_subcommand(
      "sensitivity", "mean scores under other weights: does an order of methods change?",
      "Each dimension alone, and each weight 0.1 larger and smaller. Exploratory. Writes\n"
      "reports/rubric_sensitivity.csv.\n"
      "Example:\n  proctor rubric sensitivity my-campaign\n"
      "  proctor rubric sensitivity my-campaign --json | jq .order_changes");
  const auto args = arguments<SensitivityArgs>(inner, exit_code, sensitivity);
  inner.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  inner.add_flag("--json", args->json, "for scripts");
}
}  // namespace proctor::cli
