#include "coordinator/aggregate/analysis.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "common/base/result.h"
#include "common/base/text.h"
#include "common/stats/power.h"
#include "coordinator/aggregate/family.h"
#include "coordinator/aggregate/format.h"

namespace proctor {
aggregate::Codes aggregate::codes_of(std::span<const RunRecord> runs, std::string RunRecord::*what,
                                     std::vector<std::string>& names,
                                     bool (*counts)(const RunRecord&)) {
  Codes codes;
  for (const RunRecord& run : runs)
    if (counts(run) && codes.emplace(run.*what, 0).second) names.push_back(run.*what);
  std::ranges::sort(names);
  for (std::size_t i = 0; i < names.size(); ++i) codes[names[i]] = i;
  return codes;
}

namespace {
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

TaskCell TaskCells::cell(const std::string& task, std::size_t method) const {
  const std::size_t at = place(task);
  return at == tasks.size() || method == methods.size() ? TaskCell{} : this->at(at, method);
}

std::size_t TaskCells::place(const std::string& task) const {
  const auto at = std::ranges::lower_bound(tasks, task);
  return static_cast<std::size_t>((at != tasks.end() && *at == task ? at : tasks.end()) -
                                  tasks.begin());
}

TaskCells task_cells(std::span<const RunRecord> runs, std::optional<std::size_t> key) {
  TaskCells out;
  const auto all = [](const RunRecord&) { return true; };
  const auto tasks = aggregate::codes_of(runs, &RunRecord::task, out.tasks, all);
  const auto methods = aggregate::codes_of(runs, &RunRecord::method, out.methods, all);
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

namespace {
using aggregate::Lattice;

MethodRate method_rate(const TaskCells& cells, std::size_t method, const AnalysisPlan& plan) {
  MethodRate out;
  out.method = cells.methods[method];
  std::vector<Cluster> tasks;
  std::vector<PartlyKnown> known;
  for (std::size_t i = 0; i < cells.tasks.size(); ++i) {
    known.push_back(cells.at(i, method).known(true));
    const Cluster c = cells.at(i, method).rate();
    if (c.runs == 0) continue;
    tasks.push_back(c);
    out.runs += c.runs;
  }
  out.tasks = tasks.size();
  out.rate = plan.estimand == AnalysisPlan::Estimand::kTaskMean ? rate_over_tasks(tasks, plan)
                                                                : rate_over_runs(tasks, plan);
  if (const auto bounds = bounds_of_rate(known, plan.alpha.real(), aggregate::weighing_of(plan));
      bounds && out.rate.value)
    out.bounds = bounds->identified;
  for (const std::uint32_t k : plan.pass_k) {
    PassEstimate pass = pass_k(tasks, k, plan.alpha.real());
    // A chance is nowhere else, whatever Student's t says of few tasks.
    for (Estimate* e : {&pass.at_least_one, &pass.all})
      if (e->interval)
        e->interval = Interval{std::max(0.0, e->interval->low), std::min(1.0, e->interval->high)};
    // One try is the rate over tasks, and has its interval.
    if (k == 1) pass.at_least_one = pass.all = rate_over_tasks(tasks, plan);
    out.pass.push_back(std::move(pass));
  }
  out.reliability = reliability(tasks);
  out.rerun = rerun_noise(tasks, aggregate::weighing_of(plan));
  out.weighted = aggregate::weighted_rate(cells, method, plan);
  return out;
}

// The tasks that are scorable under both.
std::vector<PairedTask> pairs_of(std::span<const TaskCell> a, std::span<const TaskCell> b) {
  std::vector<PairedTask> out;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (0 < a[i].scorable && 0 < b[i].scorable) out.push_back({a[i].rate(), b[i].rate()});
  return out;
}

// Blocks of those tasks; empty where every task is its own.
std::vector<std::uint32_t> blocks_of_pairs(const aggregate::Sides& s) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < s.blocks.size(); ++i)
    if (0 < s.a[i].scorable && 0 < s.b[i].scorable) out.push_back(s.blocks[i]);
  return out;
}

// Nothing where no task is scorable under both, or the repository of one is not known.
std::optional<ByRepository> by_repository(const aggregate::Sides& sides, const AnalysisPlan& plan) {
  const std::vector<std::uint32_t> groups = blocks_of_pairs(sides);
  if (groups.empty() || std::ranges::find(groups, 0U) != groups.end()) return std::nullopt;
  const Weighing weighing = aggregate::weighing_of(plan);
  return ByRepository{
      grouped_mean(task_values(pairs_of(sides.a, sides.b), weighing), groups, plan.alpha.real()),
      aggregate::flips_of(sides, weighing)};
}

// Did one of the two lose more runs than the other?  Over tasks that both attempted.
void compare_losses(const aggregate::Sides& sides, Contrast& out) {
  const auto& [a, b, blocks] = sides;
  Lattice lattice;
  std::vector<std::size_t> both;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::uint64_t of_a = a[i].scorable + a[i].invalid, of_b = b[i].scorable + b[i].invalid;
    if (of_a == 0 || of_b == 0) continue;
    both.push_back(i);
    lattice.add(of_a);
    lattice.add(of_b);
  }
  if (both.empty()) return;
  std::vector<std::int64_t> whole(a.size());
  for (const std::size_t i : both) {
    const std::uint64_t of_a = a[i].scorable + a[i].invalid, of_b = b[i].scorable + b[i].invalid;
    whole[i] = lattice.of(a[i].invalid, of_a) - lattice.of(b[i].invalid, of_b);
    out.loss += (static_cast<double>(a[i].invalid) / static_cast<double>(of_a) -
                 static_cast<double>(b[i].invalid) / static_cast<double>(of_b)) /
                static_cast<double>(both.size());
  }
  out.loss_p = sign_flip(aggregate::block_sums(std::move(whole), blocks)).p;
}

// All contrasts together: p values, intervals, verdicts, and what would turn those.  `sides` and
// `p` are of the contrasts that have a p.
void adjust(Analysis& out, const std::vector<aggregate::Sides>& sides, const std::vector<double>& p,
            std::size_t tasks) {
  const AnalysisPlan& plan = out.plan;
  std::vector<Contrast*> judged;
  std::vector<Estimate> estimates;
  for (Contrast& c : out.contrasts)
    if (c.flips) {
      judged.push_back(&c);
      estimates.push_back(c.difference.estimate);
    }
  out.adjustment = aggregate::adjustment_for(out.contrasts, tasks, plan);
  const aggregate::Family family(sides, p, out.adjustment.used, aggregate::weighing_of(plan));
  const std::vector<double> adjusted = family.adjusted();
  if (out.adjustment.used == AnalysisPlan::Multiplicity::kMaxT) {
    const std::uint64_t fewest = (*std::ranges::min_element(judged, {}, &Contrast::units))->units;
    const MaxT joint = aggregate::joint_intervals(sides, estimates, fewest, plan);
    out.adjustment.critical = joint.critical;
    out.adjustment.draws = plan.draws;
    out.adjustment.flips = kDrawnFlips;
    for (std::size_t j = 0; j < judged.size(); ++j) judged[j]->simultaneous = joint.intervals[j];
  }
  for (std::size_t j = 0; j < judged.size(); ++j) {
    judged[j]->adjusted = adjusted[j];
    judged[j]->fewest_units = fewest_flip_tasks(plan.alpha.real() / static_cast<double>(p.size()));
    judged[j]->verdict = verdict_of(*judged[j], plan);
    judged[j]->too_few = judged[j]->units < judged[j]->fewest_units;
    judged[j]->tipping = aggregate::tipping_of(sides[j], plan, family, j, judged[j]->verdict);
  }
}
}  // namespace

// Student's t, or Wilson or Korn and Graubard at what the tasks' spread says the runs are worth.
Estimate rate_over_tasks(std::span<const Cluster> tasks, const AnalysisPlan& plan) {
  Estimate out;
  const double alpha = plan.alpha.real();
  const auto mean = mean_of_task_means(tasks, alpha);
  if (!mean) {
    out.why = Why::kNothing;
    return out;
  }
  out.value = mean->mean;
  out.standard_error = mean->standard_error;
  if (mean->tasks < 2) {
    out.why = Why::kOneTask;
    return out;
  }
  out.df = static_cast<double>(mean->tasks - 1);
  out.interval = mean->interval;
  if (plan.interval == AnalysisPlan::RateInterval::kT) return out;
  const auto ends = near_ends(tasks, alpha);
  out.interval =
      plan.interval == AnalysisPlan::RateInterval::kWilson ? ends->wilson : ends->korn_graubard;
  return out;
}

Estimate rate_over_runs(std::span<const Cluster> tasks, const AnalysisPlan& plan) {
  Estimate out;
  const auto ratio = ratio_rate(tasks, plan.alpha.real());
  if (!ratio) {
    out.why = Why::kNothing;
    return out;
  }
  out.value = ratio->ratio;
  out.standard_error = ratio->cr2;
  out.df = ratio->df;
  out.interval = ratio->interval;
  if (!ratio->cr2) out.why = Why::kOneTask;
  if (ratio->cr2 && !ratio->interval) out.why = Why::kNoVariance;
  if (plan.interval == AnalysisPlan::RateInterval::kT || !ratio->cr2) return out;
  // As over task means: tasks that are all alike still have an interval, over tasks.
  const auto ends = ratio_ends(tasks, plan.alpha.real());
  out.interval =
      plan.interval == AnalysisPlan::RateInterval::kWilson ? ends->wilson : ends->korn_graubard;
  out.why = Why::kOk;
  return out;
}

std::string verdict_words(const Contrast& c) {
  const bool too_few = c.too_few && c.verdict == ContrastVerdict::kNotShown;
  const char* units = c.units < c.tasks ? ": too few repositories" : ": too few tasks";
  return std::string(word_of(c.verdict)) + (too_few ? units : "");
}

const MethodRate* rate_of(const Analysis& analysis, std::string_view method) {
  const auto it = std::ranges::find(analysis.rates, method, &MethodRate::method);
  return it == analysis.rates.end() ? nullptr : &*it;
}

std::span<const Contrast> of_agents(const std::vector<Contrast>& contrasts) {
  return {contrasts.begin(), std::ranges::find(contrasts, true, &Contrast::is_control)};
}

std::string_view over_words(const AnalysisPlan& plan) {
  return plan.estimand == AnalysisPlan::Estimand::kTaskMean ? "over tasks" : "over runs";
}

std::string_view unit_words(const AnalysisPlan& plan) {
  return plan.is_over_repositories() ? "repositories" : "tasks";
}

std::string words(const Adjustment& a) {
  if (a.used == AnalysisPlan::Multiplicity::kMaxT)
    return fmt::format("max-t ({} joint replicates of {}, {} common sign flips)", a.draws, a.units,
                       a.flips);
  std::string out(word_of(a.instead));
  if (a.instead == Adjustment::Instead::kFewTasks)
    out += fmt::format(" {} {} in every comparison", kMaxTTasks, a.units);
  return out;
}

ContrastVerdict verdict_of(const Contrast& c, const AnalysisPlan& plan) {
  const double alpha = plan.alpha.real();
  if (!c.adjusted || !c.difference.estimate.value) return ContrastVerdict::kNone;
  if (*c.adjusted <= alpha)
    return 0 < *c.difference.estimate.value ? ContrastVerdict::kBetter : ContrastVerdict::kWorse;
  if (c.equivalence && c.equivalence->p_equivalent <= alpha) return ContrastVerdict::kEquivalent;
  if (c.not_inferior && *c.not_inferior <= alpha) return ContrastVerdict::kNotInferior;
  return ContrastVerdict::kNotShown;
}

bool Contrast::is_tie() const {
  constexpr double kRounding = 1e-12;
  return equals && difference.estimate.value &&
         std::fabs(*difference.estimate.value) <= equals->gap95 + kRounding;
}

Contrast judged_contrast(std::span<const TaskCell> a, std::span<const TaskCell> b,
                         const AnalysisPlan& plan, std::span<const std::uint32_t> repositories,
                         std::optional<Significance> flips) {
  PROCTOR_ASSERT(a.size() == b.size());
  const aggregate::Sides sides{a, b, aggregate::blocks_of(plan, repositories)};
  Contrast out;
  const double alpha = plan.alpha.real();
  for (std::size_t i = 0; i < a.size(); ++i) {
    out.dropped_a += a[i].scorable == 0 && 0 < b[i].scorable ? 1 : 0;
    out.dropped_b += b[i].scorable == 0 && 0 < a[i].scorable ? 1 : 0;
    out.never_a += a[i].never;
    out.never_b += b[i].never;
  }
  const std::vector<PairedTask> pairs = pairs_of(a, b);
  out.tasks = pairs.size();
  out.fewest_units = fewest_flip_tasks(alpha);
  const Weighing weighing = aggregate::weighing_of(plan);
  const std::vector<double> values = task_values(pairs, weighing);
  const std::vector<std::uint32_t> blocks = blocks_of_pairs(sides);
  out.units = blocks.empty() ? pairs.size() : std::set(blocks.begin(), blocks.end()).size();
  out.difference = mean_difference(values, alpha, blocks);
  if (pairs.empty()) return out;
  for (const PairedTask& t : pairs) {
    const std::uint64_t of_a = t.a.successes * t.b.runs, of_b = t.b.successes * t.a.runs;
    out.a_better += of_b < of_a ? 1 : 0;
    out.b_better += of_a < of_b ? 1 : 0;
  }
  out.flips = flips ? *flips : aggregate::flips_of(sides, weighing);
  out.adjusted = out.flips->p;
  out.equivalence = equivalence(values, plan.min_effect.real(), alpha, blocks);
  if (const auto margin = equivalence(values, plan.non_inferiority.real(), alpha, blocks))
    out.not_inferior = margin->p_non_inferior;
  out.verdict = verdict_of(out, plan);
  return out;
}

Contrast contrast_of(std::span<const TaskCell> a, std::span<const TaskCell> b,
                     const AnalysisPlan& plan, std::span<const std::uint32_t> repositories) {
  Contrast out = judged_contrast(a, b, plan, repositories);
  const aggregate::Sides sides{a, b, aggregate::blocks_of(plan, repositories)};
  std::vector<std::uint32_t> of_tried;
  std::vector<PartlyKnownPair> tried, common;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const PartlyKnownPair both{a[i].known(true), b[i].known(true)};
    if (both.a.runs == 0 || both.b.runs == 0) continue;
    tried.push_back(both);
    if (!sides.blocks.empty()) of_tried.push_back(sides.blocks[i]);
    if (0 < a[i].scorable && 0 < b[i].scorable) common.push_back(both);
  }
  const Weighing weighing = aggregate::weighing_of(plan);
  out.bounds = bounds_of_difference(tried, plan.alpha.real(), weighing, of_tried);
  // The difference is over tasks that both have; with the others it may lie elsewhere.
  if (const auto over_common =
          bounds_of_difference(common, plan.alpha.real(), weighing, blocks_of_pairs(sides)))
    out.bounds = wider(*out.bounds, *over_common);
  compare_losses(sides, out);
  out.equals = gap_of_equals(pairs_of(a, b), weighing);
  if (!repositories.empty()) out.by_repository = by_repository({a, b, repositories}, plan);
  return out;
}

std::string_view awaited_words(std::uint64_t open, std::uint64_t for_money, bool again) {
  if (again) return "not judged again";
  if (for_money == 0) return "open";
  return for_money < open ? "open or parked for money" : "parked for money";
}

Analysis analyse(const TaskCells& cells, const AnalysisPlan& plan, bool registered,
                 const std::vector<std::pair<std::string, std::string>>& contrasts,
                 std::uint64_t open) {
  Analysis out;
  out.plan = plan;
  out.registered = registered;
  out.open = open;
  for (std::size_t m = 0; m < cells.methods.size(); ++m)
    out.rates.push_back(method_rate(cells, m, plan));
  if (0 < open) return out;
  std::vector<std::vector<TaskCell>> columns(cells.methods.size());
  for (std::size_t m = 0; m < columns.size(); ++m)
    for (std::size_t i = 0; i < cells.tasks.size(); ++i) columns[m].push_back(cells.at(i, m));
  std::vector<aggregate::Sides> sides;  // of the contrasts that have a p
  std::vector<double> p;
  for (const auto& [a, b] : contrasts) {
    const std::size_t of_a = cells.method(a), of_b = cells.method(b);
    if (of_a == cells.methods.size() || of_b == cells.methods.size()) continue;
    Contrast c = contrast_of(columns[of_a], columns[of_b], plan, cells.repositories);
    c.a = a;
    c.b = b;
    c.weighted = aggregate::weighted_difference(cells, of_a, of_b, plan);
    if (c.flips) {
      p.push_back(c.flips->p);
      sides.push_back(
          {columns[of_a], columns[of_b], aggregate::blocks_of(plan, cells.repositories)});
    }
    out.contrasts.push_back(std::move(c));
  }
  adjust(out, sides, p, cells.tasks.size());
  return out;
}

// Registered weights: means of strata in the shares that the plan says the tasks stand for.

namespace aggregate {
namespace {
// `value` gives a task's, or nothing where it has none.
template <class Value>
std::optional<Weighted> weighted_of(const TaskCells& cells, const AnalysisPlan& plan,
                                    const Value& value) {
  if (plan.weights.empty() || cells.levels.empty()) return std::nullopt;
  Weighted out;
  std::map<std::string, Stratum> by_level;
  for (const auto& [level, share] : plan.weights) by_level[level].weight = share.real();
  for (std::size_t i = 0; i < cells.tasks.size(); ++i) {
    const std::optional<double> v = value(i);
    if (!v) continue;
    const auto at = by_level.find(cells.levels[i]);
    if (at == by_level.end()) {
      ++out.left_out;
      continue;
    }
    ++out.tasks;
    at->second.values.push_back(*v);
  }
  std::vector<Stratum> strata;
  std::vector<double> of_tasks;
  for (auto& [level, stratum] : by_level) {
    const std::size_t n = stratum.values.size();
    if (n == 0) out.missing.push_back(level);
    if (n == 1) out.single.push_back(level);
    of_tasks.insert(of_tasks.end(), n, stratum.weight / static_cast<double>(n));
    strata.push_back(std::move(stratum));
  }
  out.of = stratified_mean(strata, plan.alpha.real());
  if (!of_tasks.empty()) out.worth = effective_tasks(of_tasks);
  return out;
}
}  // namespace

std::optional<Weighted> weighted_rate(const TaskCells& cells, std::size_t method,
                                      const AnalysisPlan& plan) {
  return weighted_of(cells, plan, [&](std::size_t i) {
    const TaskCell& c = cells.at(i, method);
    return rate(c.success, c.scorable);
  });
}

std::optional<Weighted> weighted_difference(const TaskCells& cells, std::size_t a, std::size_t b,
                                            const AnalysisPlan& plan) {
  return weighted_of(cells, plan, [&](std::size_t i) {
    const TaskCell &x = cells.at(i, a), &y = cells.at(i, b);
    return x.scorable == 0 || y.scorable == 0
               ? std::nullopt
               : std::optional(rate_difference({x.rate(), y.rate()}));
  });
}

void append_weighted(std::string& out, const Analysis& analysis) {
  if (analysis.rates.empty() || !analysis.rates.front().weighted) return;
  Table table({"method or comparison", "weighted", "interval", "tasks", "worth", "note"}, 1);
  const auto add = [&](const std::string& name, const Weighted& w, bool difference) {
    const Estimate& e = w.of.estimate;
    const std::string interval =
        e.interval && difference ? points_between(*e.interval) : percent_interval(e.interval);
    std::string value = "-";
    if (e.value) value = difference ? points(*e.value) : fmt::format("{:.1f} %", *e.value * 100);
    table.add({name, value, interval, std::to_string(w.tasks), fmt::format("{:.1f}", w.worth),
               weighted_note(w)});
  };
  for (const MethodRate& r : analysis.rates)
    if (r.weighted) add(printable(r.method), *r.weighted, false);
  for (const Contrast& c : analysis.contrasts)
    if (c.weighted) add(printable(c.a) + " - " + printable(c.b), *c.weighted, true);
  out += fmt::format("\nWeighted by {} ({}; {}; worth: so many tasks of equal weight)\n\n",
                     printable(analysis.plan.weights_key), printable(weights_words(analysis.plan)),
                     analysis.registered ? "as registered" : "no plan was registered");
  table.append_to(out);
}
}  // namespace aggregate

std::string weights_words(const AnalysisPlan& plan) {
  std::string out;
  for (const auto& [level, share] : plan.weights)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", level, share.real());
  return out;
}

std::string weighted_note(const Weighted& w) {
  std::string out;
  if (w.of.estimate.why == Why::kNothing)
    out = "no estimate: no task of " + aggregate::listed_names(w.missing);
  else if (w.of.estimate.why == Why::kOneTask)
    out = "no interval: one task of " + aggregate::listed_names(w.single);
  else if (w.of.estimate.why != Why::kOk)
    out = word_of(w.of.estimate.why);
  if (0 < w.left_out)
    out += fmt::format("{}{} of levels without a weight left out", out.empty() ? "" : "; ",
                       counted(w.left_out, "task"));
  return out;
}
}  // namespace proctor
