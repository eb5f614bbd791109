#pragma once
// The answer to what a campaign was for: each method's rate over tasks, and the comparisons of its
// plan of analysis, each paired over tasks (docs/analysis.md; R176).  Pure: the same runs give the
// same bytes.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/words.h"
#include "common/contract/analysis_plan.h"
#include "common/stats/clustered.h"
#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/rerun.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// Runs as cells of tasks x methods: every comparison starts from these.

// One task under one method: its ended runs; and those that never came to an end, for they were
// cancelled or are parked, which are in no rate and in no bound.
struct TaskCell {
  std::uint64_t scorable = 0, success = 0, error = 0, invalid = 0, never = 0;
  Cluster rate() const { return {scorable, success}; }
  // Its part of the scorable runs.  Requires: there is one.
  double share() const { return static_cast<double>(success) / static_cast<double>(scorable); }
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
  // Position of a task; its number of tasks: there is none.
  std::size_t place(const std::string& task) const;
  // An empty one where nothing ended, or there is no such task or method.
  TaskCell cell(const std::string& task, std::size_t method) const;
};
// `key`: which key of strata their levels are wanted of.
TaskCells task_cells(std::span<const RunRecord> runs, std::optional<std::size_t> key = {});

// An estimate of task means that speaks for the plan's shares of strata.
struct Weighted {
  Stratified of;
  double worth = 0;            // how many equally weighted tasks it is worth (Kish)
  std::uint64_t tasks = 0;     // of levels that have a share
  std::uint64_t left_out = 0;  // of levels that have none
  // Levels with a share that have no task, or a single one.
  std::vector<std::string> missing, single;
};

// One method's primary endpoint.
struct MethodRate {
  std::string method;
  bool is_control = false;            // RunRecord::is_control; a report sets it
  std::uint64_t tasks = 0, runs = 0;  // scorable
  Estimate rate;                      // by the plan's estimand and interval
  std::optional<Interval> bounds;     // had errors and invalid runs ended either way
  std::vector<PassEstimate> pass;     // by the plan's pass_k
  Reliability reliability;
  RerunNoise rerun;                  // how far the rate moves where nothing changes
  std::optional<Weighted> weighted;  // nothing: the plan has no weights
};

// What a contrast shows at the plan's level, its family taken together.
enum class ContrastVerdict : std::uint8_t {
  kNone,         // there is no p: nothing in common, or no task separates the two
  kNotShown,     // neither a difference nor that there is none which matters
  kBetter,       // a is better than b
  kWorse,        // a is worse than b
  kEquivalent,   // within the minimum effect, either way
  kNotInferior,  // a is not worse by more than the plan's margin
};
constexpr auto words(ContrastVerdict) {
  return std::to_array<Word<ContrastVerdict>>({{"nothing to compare", ContrastVerdict::kNone},
                                               {"no difference shown", ContrastVerdict::kNotShown},
                                               {"better", ContrastVerdict::kBetter},
                                               {"worse", ContrastVerdict::kWorse},
                                               {"equivalent", ContrastVerdict::kEquivalent},
                                               {"not inferior", ContrastVerdict::kNotInferior}});
}
struct Contrast;
// The verdict for people: "no difference shown: too few tasks" where no outcome could show one.
std::string verdict_words(const Contrast& contrast);

// The difference with repositories as units: tasks of one repository are alike.
struct ByRepository {
  GroupedMean mean;
  Significance flips;  // of whole repositories
};

// How many outcomes that nobody knows would turn the verdict.
struct Tipping {
  std::uint64_t unknown = 0;  // acceptance errors and invalid runs of both methods
  // So many of them suffice, those first that move the difference most, had each come out in favour
  // of one method; nothing: the verdict stands even if all of them had, for either.
  std::optional<std::uint64_t> turned;
  bool tried = true;   // false: it would take too long
  bool for_a = false;  // in whose favour
  ContrastVerdict becomes = ContrastVerdict::kNone;
};

// Method a less method b, over the tasks that are scorable under both.
struct Contrast {
  std::string a, b;
  bool is_control = false;  // both are, so that no agent is compared; a report sets it
  std::uint64_t tasks = 0;
  std::uint64_t units = 0;                     // those tasks, or the repositories that have one
  std::uint64_t fewest_units = 0;              // with fewer no outcome whatever is better or worse
  std::uint64_t dropped_a = 0, dropped_b = 0;  // tasks that one of them has no scorable run of
  std::uint64_t never_a = 0, never_b = 0;      // runs that were cancelled or are parked
  std::uint64_t a_better = 0, b_better = 0;    // tasks; the others are alike
  Difference difference;                       // Student's t over units, by the plan's estimand
  std::optional<Significance> flips;           // sign flips of units, by the plan's estimand
  std::optional<double> adjusted;              // that p for all the plan's contrasts together
  std::optional<Interval> simultaneous;        // by max_t: holds together with the others'
  std::optional<Equivalence> equivalence;      // at the minimum effect
  std::optional<double> not_inferior;          // p at the plan's margin
  // Had errors and invalid runs ended either way; over these tasks, and with those that both tried
  // and one has no scorable run of, whichever is wider.
  std::optional<Bounds> bounds;
  double loss = 0;               // mean share of invalid runs, a less b
  std::optional<double> loss_p;  // by sign flips: did one lose more runs?
  ContrastVerdict verdict = ContrastVerdict::kNone;
  bool too_few = false;  // its p would be above alpha even if every task differed the same way
  // What two equal methods differ by, runs of each task dealt out anew; never the verdict's
  // business.
  std::optional<EqualGap> equals;
  // Chance alone reaches this difference in more than 5 of 100 cases.
  bool is_tie() const;
  std::optional<ByRepository> by_repository;  // nothing: repositories are not known
  std::optional<Tipping> tipping;             // nothing: there is no verdict
  std::optional<Weighted> weighted;           // nothing: the plan has no weights
};

// How the comparisons were adjusted for being several.
struct Adjustment {
  enum class Instead : std::uint8_t {
    kNo,        // as the plan says
    kFewTasks,  // Holm instead of max_t: a comparison has too few tasks for replicates
    kTooLarge,  // Holm instead of max_t: replicates of so many tasks and comparisons take too long
  };
  AnalysisPlan::Multiplicity used = AnalysisPlan::Multiplicity::kHolm;
  Instead instead = Instead::kNo;
  double critical = 0;      // of max_t: half a simultaneous interval in standard errors
  std::uint32_t draws = 0;  // of max_t: replicates behind the intervals
  std::uint32_t flips = 0;  // of max_t: assignments of signs behind the p values
  std::string_view units = "tasks";
};
// Behind it, where they are few: how many of which units it needs.
constexpr auto words(Adjustment::Instead) {
  using enum Adjustment::Instead;
  return std::to_array<Word<Adjustment::Instead>>(
      {{"Holm", kNo},
       {"Holm, for max-t needs", kFewTasks},
       {"Holm, for max-t of so many tasks and comparisons would take minutes", kTooLarge}});
}
// "max-t (2000 joint replicates of tasks, 9999 common sign flips)", or Holm, and why it is.
std::string words(const Adjustment& adjustment);

struct Analysis {
  AnalysisPlan plan;
  bool registered = false;  // the plan; else it is the default
  bool of_part = false;     // of the campaign's runs: no plan is of that, so it is exploratory
  std::vector<MethodRate> rates;  // by method, a report's controls last
  // In the plan's order, those of two controls last.
  // Empty while runs are open or parked for money, `open` of them together and `for_money` of those
  // parked: an interim comparison needs registered looks.
  std::vector<Contrast> contrasts;
  std::uint64_t open = 0, for_money = 0;
  bool again = false;  // some of `open` are runs of recorded patches that are not judged again
  Adjustment adjustment;
  // Of tasks that were taken out after some of their runs had ended: how many, and the comparisons
  // as they are with those runs.  What was seen before may be why a task went.
  std::uint64_t removed_tasks = 0;
  std::vector<Contrast> with_removed{};
};

// nullptr: it has no such method.
const MethodRate* rate_of(const Analysis& analysis, std::string_view method);

// The first of them: those that compare an agent.
std::span<const Contrast> of_agents(const std::vector<Contrast>& contrasts);

// "open", "parked for money" or both, as `for_money` of `open` runs are; `again`: as in Analysis.
std::string_view awaited_words(std::uint64_t open, std::uint64_t for_money, bool again);

// Requires: the contrasts of the plan name methods of `cells`, or are left out with them.
Analysis analyse(const TaskCells& cells, const AnalysisPlan& plan, bool registered,
                 const std::vector<std::pair<std::string, std::string>>& contrasts,
                 std::uint64_t open);

// The mean of the tasks' rates with the plan's interval, whatever the plan's estimand.
Estimate rate_over_tasks(std::span<const Cluster> tasks, const AnalysisPlan& plan);
// All successes over all runs with the plan's interval, likewise.
Estimate rate_over_runs(std::span<const Cluster> tasks, const AnalysisPlan& plan);

// One contrast of two columns of tasks in the same order, without an adjustment: `adjusted` is its
// own p, and the verdict follows.  `repositories`: of the tasks; empty: not known, and tasks are
// the units whatever the plan says.
Contrast contrast_of(std::span<const TaskCell> a, std::span<const TaskCell> b,
                     const AnalysisPlan& plan, std::span<const std::uint32_t> repositories = {});
// The part of it that its verdict rests on.
// `flips`: what their signs come to, from who has it already; else they are flipped here.
Contrast judged_contrast(std::span<const TaskCell> a, std::span<const TaskCell> b,
                         const AnalysisPlan& plan, std::span<const std::uint32_t> repositories,
                         std::optional<Significance> flips = {});
// "over tasks" or "over runs": what rates and differences of the plan's estimand are means over.
std::string_view over_words(const AnalysisPlan& plan);
// "tasks" or "repositories": what the comparisons take for independent.
std::string_view unit_words(const AnalysisPlan& plan);
// "python 0.5, rust 0.5"; empty: the plan has none.
std::string weights_words(const AnalysisPlan& plan);
// "no task of rust: no estimate", or what else has to be known beside it; empty: nothing.
std::string weighted_note(const Weighted& weighted);
// After `adjusted` was set.
ContrastVerdict verdict_of(const Contrast& contrast, const AnalysisPlan& plan);

// Sections of the text report, and the JSON and CSV of the same.
void append_analysis(std::string& out, const Analysis& analysis);
// A line for each of so many comparisons at most.
void append_asked(std::string& out, const Analysis& analysis, std::size_t most);
std::string turned_words(const Contrast& contrast);  // "2 of 9 for a: better"
// Which test the verdict is by, where the interval beside it is not that test's or says otherwise;
// empty: the two agree.
std::string verdict_note(const Contrast& contrast, const AnalysisPlan& plan);
// "not inferior by its lower bound +29.4 at one-sided 0.05 ...".  Requires: an equivalence.
std::string one_sided_words(const Contrast& contrast, double alpha, double margin);
std::string contrast_sentence(const Contrast& contrast, const AnalysisPlan& plan);
std::string render_contrasts_csv(const Analysis& analysis);
}  // namespace proctor

namespace proctor::aggregate {
// Positions of the names among `names`, which are sorted, of the runs that count.  Views of `runs`.
using Codes = std::unordered_map<std::string_view, std::size_t>;
Codes codes_of(std::span<const RunRecord> runs, std::string RunRecord::*what,
               std::vector<std::string>& names, bool (*counts)(const RunRecord&));

// Estimates with the plan's weights of strata.  Private to the room.

// For one method, or for its differences to another over the tasks that both have; nothing: the
// plan has no weights, or the levels of the tasks are not known.
std::optional<Weighted> weighted_rate(const TaskCells& cells, std::size_t method,
                                      const AnalysisPlan& plan);
std::optional<Weighted> weighted_difference(const TaskCells& cells, std::size_t a, std::size_t b,
                                            const AnalysisPlan& plan);
// Sections of the text report.
void append_weighted(std::string& out, const Analysis& analysis);
}  // namespace proctor::aggregate
