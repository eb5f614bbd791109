// The tables of the report by task, on a terminal.
#include <algorithm>
#include <map>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr std::size_t kTasksShown = 200;

struct Tally {
  std::uint64_t planned = 0, success = 0, failure = 0, acceptance_error = 0, invalid = 0;
  MicroUsd cost, self_reported;
  std::uint64_t scorable() const { return success + failure + acceptance_error; }
};

void add_outcome(Tally& tally, RunOutcome outcome) {
  tally.success += outcome == RunOutcome::kSuccess ? 1 : 0;
  tally.failure += outcome == RunOutcome::kFailure ? 1 : 0;
  tally.acceptance_error += outcome == RunOutcome::kAcceptanceError ? 1 : 0;
  tally.invalid += outcome == RunOutcome::kInvalid ? 1 : 0;
}

// "2/3": of scorable runs, those that succeeded.
std::string part(const Tally& tally) {
  if (tally.scorable() == 0) return "-";
  return std::to_string(tally.success) + "/" + std::to_string(tally.scorable());
}

void and_more(std::string& out, std::size_t all, std::size_t most) {
  if (most < all) out += "  and " + std::to_string(all - most) + " more tasks: runs.csv has all\n";
}

// What was counted of removed tasks before they left: their money is spent, their outcomes are in
// no rate.
void removed(std::string& out, const CampaignReport& report) {
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  for (const RunRecord& run : report.runs) {
    if (!run.ended_before_removal) continue;
    Tally& tally = tallies[{run.task, run.method}];
    add_outcome(tally, run.outcome);
    tally.cost = tally.cost + run.cost.total();
  }
  if (tallies.empty()) return;
  Table table({"task", "method", "success", "failure", "acceptance error", "invalid", "total"});
  for (const auto& [names, t] : tallies)
    table.add({printable(names.first), printable(names.second), std::to_string(t.success),
               std::to_string(t.failure), std::to_string(t.acceptance_error),
               std::to_string(t.invalid), format_usd(t.cost)});
  out += "\nEnded runs of removed tasks (in no rate; their cost is in the totals)\n\n";
  table.append_to(out);
}

}  // namespace

void append_task_matrix(std::string& out, const CampaignReport& report, std::size_t most) {
  std::map<std::string, std::map<std::string, Tally>> tasks;
  for (const RunRecord& run : report.runs) {
    if (run.state == RunRecord::State::kRemoved) continue;
    Tally& tally = tasks[run.task][run.method];
    if (run.state == RunRecord::State::kEnded) add_outcome(tally, run.outcome);
  }
  if (tasks.empty()) return;
  const std::vector<MethodRate>& rates = report.analysis->rates;
  std::vector<std::string> header{"task"},
      all{"all, " + std::string(over_words(report.analysis->plan))};
  for (const MethodRate& r : rates) {
    header.push_back(printable(r.method));
    all.push_back(r.rate.value ? percent(*r.rate.value) + " %" : "-");
  }
  Table matrix(std::move(header), 1);
  std::size_t n = 0;
  for (auto& [name, cells] : tasks) {
    if (most < ++n) break;
    std::vector<std::string> row{printable(name)};
    for (const MethodRate& r : rates) row.push_back(part(cells[r.method]));
    matrix.add(std::move(row));
  }
  matrix.group("all");
  matrix.add(std::move(all));
  out += "\nTasks by methods (success of scorable runs)\n\n";
  matrix.append_to(out);
  and_more(out, tasks.size(), most);
}

void append_task_tables(std::string& out, const CampaignReport& report) {
  std::map<std::string, Tally> tasks;
  for (const RunRecord& run : report.runs) {
    if (run.state == RunRecord::State::kRemoved) continue;
    Tally& task = tasks[run.task];
    ++task.planned;
    task.cost = task.cost + run.cost.total();
    task.self_reported = task.self_reported + run.self_reported.usd;
    if (run.state == RunRecord::State::kEnded) add_outcome(task, run.outcome);
  }
  if (!tasks.empty()) {
    const bool told = shows_self_reported(report);
    std::vector<std::string> columns = {"task",    "planned",          "scorable", "success",
                                        "failure", "acceptance error", "invalid",  "total"};
    if (told) columns.emplace_back("self_reported");
    Table table(std::move(columns), 1);
    std::size_t n = 0;
    for (const auto& [name, t] : tasks) {
      if (kTasksShown < ++n) break;
      std::vector<std::string> line = {
          printable(name),           std::to_string(t.planned), std::to_string(t.scorable()),
          std::to_string(t.success), std::to_string(t.failure), std::to_string(t.acceptance_error),
          std::to_string(t.invalid), format_usd(t.cost)};
      if (told) line.push_back(format_usd(t.self_reported));
      table.add(std::move(line));
    }
    out += "\nTasks (number of runs; cost in " + report.unit + ")\n\n";
    table.append_to(out);
    and_more(out, tasks.size(), kTasksShown);
    append_task_matrix(out, report, kTasksShown);
  }
  removed(out, report);
}

}  // namespace proctor
