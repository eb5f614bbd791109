#include "coordinator/aggregate/task_cells.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace proctor {
namespace {

using Codes = std::unordered_map<std::string_view, std::size_t>;

// The names in order, and the position of each.
Codes codes_of(std::span<const RunRecord> runs, std::string RunRecord::*what,
               std::vector<std::string>& names) {
  Codes codes;
  for (const RunRecord& run : runs)
    if (codes.emplace(run.*what, 0).second) names.push_back(run.*what);
  std::ranges::sort(names);
  for (std::size_t i = 0; i < names.size(); ++i) codes[names[i]] = i;
  return codes;
}

void count(TaskCell& cell, RunOutcome outcome) {
  cell.scorable += outcome == RunOutcome::kInvalid ? 0 : 1;
  cell.success += outcome == RunOutcome::kSuccess ? 1 : 0;
  cell.error += outcome == RunOutcome::kAcceptanceError ? 1 : 0;
  cell.invalid += outcome == RunOutcome::kInvalid ? 1 : 0;
}

}  // namespace

std::size_t TaskCells::method(const std::string& name) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(methods, name) - methods.begin());
}

TaskCells task_cells(std::span<const RunRecord> runs, std::optional<std::size_t> key) {
  TaskCells out;
  // The keys of both maps are texts of `runs`, which outlives them.
  const Codes tasks = codes_of(runs, &RunRecord::task, out.tasks);
  const Codes methods = codes_of(runs, &RunRecord::method, out.methods);
  out.cells.resize(out.tasks.size() * out.methods.size());
  out.repositories.resize(out.tasks.size());
  if (key) out.levels.resize(out.tasks.size());
  for (const RunRecord& run : runs) {
    const std::size_t task = tasks.at(run.task);
    if (key) out.levels[task] = run.strata[*key];
    if (out.repositories[task] == 0) out.repositories[task] = run.repository;
    TaskCell& cell = out.cells[task * out.methods.size() + methods.at(run.method)];
    if (run.state == RunRecord::State::kEnded) count(cell, run.outcome);
    if (run.state == RunRecord::State::kCancelled || run.state == RunRecord::State::kParked)
      ++cell.never;
  }
  return out;
}

}  // namespace proctor
