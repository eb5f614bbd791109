#pragma once
// Where the variance of a comparison is: between tasks, between methods within a task, between runs
// of the same method and task; and what the next dollar buys.  Pure; thread-safe.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {

// Two-way analysis of variance of tasks x methods with repeats.  Components are as computed: one
// below 0 is shown as it is, and counts as 0 in planning.
struct VarianceComponents {
  Why why = Why::kOk;  // kTooFew: below two methods or two runs; kOneTask; kNothing
  double ms_method = 0, ms_task = 0, ms_interaction = 0, ms_repeat = 0;
  double task = 0, interaction = 0, repeat = 0;
  // Of "the methods are alike": mean square of methods over that of the interaction.
  std::optional<Significance> methods;
  double runs = 0;           // per task and method; their harmonic mean where they differ
  bool approximate = false;  // they differ
};
// `cells`: of task i and method m at [i * methods + m], each with at least one run.
VarianceComponents variance_components(std::span<const Cluster> cells, std::size_t methods);

// Standard error of a paired difference with so many tasks and runs per task.
double error_of_difference(const VarianceComponents& parts, double tasks, double runs);
// Runs per task that give the smallest error for the money, where a task costs `task_cost` to
// prepare and a run `run_cost`.  Nothing where runs of a task are all alike or not alike at all.
std::optional<double> best_runs_per_task(double rho, double task_cost, double run_cost);

}  // namespace proctor
