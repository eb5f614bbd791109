#pragma once
// Runs as cells of tasks x methods: what every comparison starts from.  Pure.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/stats/bounds.h"
#include "common/stats/clustered.h"
#include "coordinator/aggregate/report.h"

namespace proctor {

// One task under one method: its ended runs; and those that never came to an end, for they were
// cancelled or are parked, which are in no rate and in no bound.
struct TaskCell {
  std::uint64_t scorable = 0, success = 0, error = 0, invalid = 0, never = 0;
  Cluster rate() const { return {scorable, success}; }
  // Of all attempted runs, with errors and invalid runs as not known; or errors alone.
  PartlyKnown known(bool with_invalid) const {
    return {scorable + (with_invalid ? invalid : 0), success, error + (with_invalid ? invalid : 0)};
  }
};

// Tasks and methods by name; every task has a cell per method, empty where nothing ended.
struct TaskCells {
  std::vector<std::string> tasks, methods;
  std::vector<std::uint32_t> repositories;  // of each task (RunRecord::repository)
  std::vector<std::string> levels;          // of each task; empty: no key of strata was asked for
  std::vector<TaskCell> cells;              // of task i and method m at [i * methods.size() + m]
  const TaskCell& at(std::size_t task, std::size_t method) const {
    return cells[task * methods.size() + method];
  }
  // Position of a method; its number of methods: there is none.
  std::size_t method(const std::string& name) const;
};
// `key`: which key of strata their levels are wanted of.
TaskCells task_cells(std::span<const RunRecord> runs, std::optional<std::size_t> key = {});

}  // namespace proctor
