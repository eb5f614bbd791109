#pragma once
// What a plan of so many tasks and runs can show, at every point of what is assumed: the least
// favourable one decides.  Text, JSON and a picture of it (docs/pilots.md).  Pure: the same
// assumptions give the same bytes.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/contract/analysis_plan.h"
#include "common/stats/power.h"
#include "common/stats/power_plan.h"

namespace proctor {
struct PowerInput {
  enum class Test : std::uint8_t { kPairedT, kMcNemar };
  std::string campaign;  // its name; empty: none
  std::vector<std::pair<std::string, std::string>> comparisons;
  double p = 0.4, effect = 0.1;  // the lesser rate, and the difference that matters
  double rho_low = 0.5, rho_high = 0.5;
  double r = 0.5;  // the low end of what is assumed: the least favourable one
  std::uint32_t runs = 1;
  std::optional<std::uint64_t> tasks;  // nothing: as many as it takes
  // Where these are the unit, every number of tasks here and in the study is one of repositories.
  struct Repositories {
    double tasks = 1;  // each has so many
    // The methods' difference varies from one to the next by this, a standard deviation.
    double spread = 0.1;
  };
  std::optional<Repositories> repositories;
  // "1 task", "4 repositories".
  std::string counted_units(std::uint64_t n) const {
    return proctor::counted_units(
        repositories ? AnalysisPlan::Unit::kRepository : AnalysisPlan::Unit::kTask, n);
  }
  double alpha = 0.05, power = 0.8;
  std::uint32_t family = 1;  // comparisons that share alpha
  // Of one comparison, alone in being a difference: the first step of Holm.
  double level() const { return alpha / family; }
  Test test = Test::kPairedT;
  std::optional<PlannedLooks> looks;
  std::optional<PilotVariance> pilot;  // of an earlier stage
  std::string pilot_from;              // which one, for people
  bool exact = false;                  // also beyond kExactRuns
  // An empty list: no curve.
  std::vector<std::int64_t> budgets;
  RunCosts costs;
  std::uint64_t tasks_max = 0;  // there are no more of them
};

// Exact power is computed unasked up to so many runs of a method.
inline constexpr std::uint64_t kExactRuns = 400;

struct PowerPoint {
  std::optional<Design> design;  // nothing: it is the earlier stage's variance
  double variance = 0;           // one unit's difference has it
  double power_normal = 0;
  double power = 0;  // by Student's t, or McNemar's exact test; 0: too few tasks for any verdict
  std::optional<double> sequential;  // with looks
  std::optional<double> exact;       // of the t test
  std::optional<double> flips;       // of the report's sign flips; nothing: it would take too long
  std::optional<double> mid_p;
  double exact_total = 1;  // of all chances
  // For the power that was asked for, looks and all.  Nothing: more than a million tasks, or no
  // difference at all.
  std::optional<std::uint64_t> tasks;
  std::optional<double> difference;
  double least() const {
    return std::min({power, sequential.value_or(power), flips.value_or(power)});
  }
};

struct PowerStudy {
  PowerInput input;
  std::uint64_t tasks = 0;       // as given, else as many as it takes
  std::vector<double> looks_at;  // fractions
  std::vector<std::optional<double>> bounds;
  std::vector<PowerPoint> points;  // at least one
  std::size_t worst = 0;
  bool supported = false;
  // No outcome whatever is called a difference by so few tasks; there should be `fewest_tasks`.
  bool is_hopeless() const { return tasks < fewest_tasks; }
  std::uint64_t fewest_tasks = 2;
  // What would do at every point; nothing: it is supported, or nothing of that kind would.
  std::optional<std::uint64_t> needs_tasks;
  std::optional<double> needs_difference;
  std::vector<BudgetPoint> curve;  // at the least favourable assumed point; budgets that show
                                   // nothing are left out
};
// Fails with kInvalid where there is no number of tasks to speak of: none was given, and no million
// of them shows the difference.  Requires: rates in (0, 1), shares that exist (settled_shares).
Result<PowerStudy> study_power(const PowerInput& input);

// Twelve digits, never with an exponent: as every file of a study writes numbers.
std::string twelve_digits(double value);

std::string render_power_text(const PowerStudy& study);
// power_analysis.json and the files that go with it; `of` in them is the digest of the first.
std::string render_power_json(const PowerStudy& study);
std::string render_power_values_json(const PowerStudy& study, const std::string& of);
// Is power monotone where theory says so, and do identities hold?
std::string render_power_sweeps_json(const PowerStudy& study, const std::string& of);
std::string render_power_checks_json(const PowerStudy& study, const std::string& of,
                                     const std::optional<SimulatedPower>& simulated,
                                     std::uint64_t campaigns);
// Requires: there is a curve.
std::string render_power_curve_json(const PowerStudy& study);
std::string render_power_curve_svg(const PowerStudy& study);

// The design of the point that its curve and checks are of: the worst of those that were assumed.
Design assumed_worst(const PowerStudy& study);
}  // namespace proctor
