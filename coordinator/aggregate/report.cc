#include "coordinator/aggregate/report.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/stats/amounts.h"
#include "common/stats/paired.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/warnings.h"

namespace proctor {
void add_outcome(ReportRow& row, RunOutcome outcome) {
  constexpr std::array kCounts{&ReportRow::success, &ReportRow::failure,
                               &ReportRow::acceptance_error, &ReportRow::invalid};
  ++(row.*kCounts.at(static_cast<std::size_t>(outcome)));
}

namespace {
// Rows are found by (key position from 1 or 0 for all, position of the stage, value, is it a
// control, method): the order they are shown in.
using RowKey = std::tuple<std::size_t, std::size_t, std::string, bool, std::string>;

// Of an invalid run nobody knows whether its agent was at work.
void count_metered(ReportRow& row, const RunRecord& run) {
  if (run.unseen_caps.empty() || run.outcome == RunOutcome::kInvalid) return;
  ++row.capped_calls;
  row.unmetered_runs += run.metered_calls == 0 ? 1 : 0;
}

void count_ended(ReportRow& row, const RunRecord& run) {
  count_metered(row, run);
  ++row.terminations[run.termination];
  if (run.agent_exit) ++row.agent_exits[run.termination][*run.agent_exit];
  if (run.outcome == RunOutcome::kInvalid && run.termination == Termination::kAgentUnavailable) {
    ++row.agent_unavailable;
    row.model_unavailable += run.no_model ? 1 : 0;
  }
  if (run.outcome == RunOutcome::kInvalid && run.termination == Termination::kModelOverloaded)
    ++row.model_overloaded;
  row.satisfied += run.satisfied() ? 1 : 0;
  add_outcome(row, run.outcome);
}

void count(ReportRow& row, const RunRecord& run, std::uint32_t position) {
  ++row.planned;
  row.runs.push_back(position);
  row.cost = row.cost + run.cost;
  row.self_reported = row.self_reported + run.self_reported;
  row.model_use = row.model_use + run.model_use;
  using enum RunRecord::State;
  row.running += run.state == kRunning ? 1 : 0;
  row.open += run.state == kRunning || run.state == kPlanned ? 1 : 0;
  row.parked += run.state == kParked ? 1 : 0;
  row.cancelled += run.state == kCancelled ? 1 : 0;
  row.removed += run.state == kRemoved ? 1 : 0;
  if (run.state == kEnded) count_ended(row, run);
}

Share share(std::uint64_t x, std::uint64_t n, double alpha) {
  return {x, n, rate(x, n), wilson(x, n, alpha)};
}

Times times(const std::vector<std::uint64_t>& ms) {
  Times out;
  out.median_ms = median(ms);
  if (!ms.empty()) out.longest_ms = std::ranges::max(ms);
  return out;
}

void finish(ReportRow& row, const std::vector<RunRecord>& runs, const AnalysisPlan& plan,
            double alpha) {
  row.success_rate = share(row.success, row.scorable(), alpha);
  row.success_rate_started = share(row.success, row.scorable() + row.without_agent(), alpha);
  row.acceptance_error_rate = share(row.acceptance_error, row.scorable(), alpha);
  row.invalid_rate = share(row.invalid, row.ended(), alpha);
  if (0 < row.ended()) {
    const double n = static_cast<double>(row.ended());
    const std::uint64_t unknown = row.acceptance_error + row.invalid;
    row.bounds = Interval{static_cast<double>(row.success) / n,
                          static_cast<double>(row.success + unknown) / n};
  }
  row.cost_per_success = proctor::cost_per_success(row.cost.total(), row.success);

  std::map<std::string_view, PartlyKnown> tasks;
  std::map<std::string_view, std::uint64_t> scorable;
  std::vector<std::uint64_t> all, successes, failures;
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = runs[position];
    if (run.state != RunRecord::State::kEnded) continue;
    const bool success = run.outcome == RunOutcome::kSuccess;
    PartlyKnown& task = tasks[run.task];
    ++task.runs;
    task.successes += success ? 1 : 0;
    task.unknown += success || run.outcome == RunOutcome::kFailure ? 0 : 1;
    scorable[run.task] += run.outcome == RunOutcome::kInvalid ? 0 : 1;
    if (run.wall_ms == 0) continue;
    all.push_back(run.wall_ms);
    if (success) successes.push_back(run.wall_ms);
    if (run.outcome == RunOutcome::kFailure) failures.push_back(run.wall_ms);
  }
  std::vector<Cluster> clusters;
  std::vector<PartlyKnown> known;
  for (const auto& [task, of] : tasks) {
    known.push_back(of);
    if (const std::uint64_t n = scorable[task]; 0 < n) clusters.push_back({n, of.successes});
  }
  row.by_task = mean_of_task_means(clusters, alpha);
  if (const auto bounds = bounds_of_rate(known, alpha); bounds && row.by_task)
    row.bounds_by_task = bounds->identified;
  const Estimate mean = rate_over_tasks(clusters, plan);
  row.interval = mean.interval;
  row.why = mean.why;
  if (plan.estimand == AnalysisPlan::Estimand::kRunMean)
    row.success_rate.interval = rate_over_runs(clusters, plan).interval;
  row.time = times(all);
  row.time_of_success = times(successes);
  row.time_of_failure = times(failures);
}

std::vector<Transition> transitions_of(const std::vector<RunRecord>& all) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint64_t> moves;
  for (const RunRecord& run : all)
    if (run.old_outcome) ++moves[{run.method, word_of(*run.old_outcome), stand_of(run)}];
  std::vector<Transition> out;
  for (const auto& [names, runs] : moves) {
    const auto& [method, was, is] = names;
    out.push_back({std::string(method), std::string(was), std::string(is), runs});
  }
  return out;
}

// Looked at once for each key: tables ask for each of their rows.
std::vector<bool> only_levels(const CampaignReport& report) {
  std::vector<bool> out;
  for (std::size_t k = 0; k < report.strata_keys.size(); ++k)
    out.push_back(!report.runs.empty() && std::ranges::all_of(report.runs, [&](const auto& run) {
      return run.strata[k] == report.runs.front().strata[k];
    }));
  return out;
}

constexpr const char* kStageKey = "stage";  // no stratum has that name: the plan has a column so

std::uint64_t awaited(std::span<const RunRecord> runs) {
  return static_cast<std::uint64_t>(std::ranges::count_if(runs, &RunRecord::is_awaited));
}
std::uint64_t awaiting_money(std::span<const RunRecord> runs) {
  return static_cast<std::uint64_t>(std::ranges::count_if(runs, &RunRecord::awaits_money));
}
bool are_part(std::span<const RunRecord> runs) {
  return std::ranges::any_of(runs, &RunRecord::unjudged);
}

// They become the last.
template <class Row>
void set_controls_apart(std::vector<Row>& rows, const auto& are_control) {
  for (Row& row : rows) row.is_control = are_control(row);
  std::ranges::stable_partition(rows, std::logical_not<>(), &Row::is_control);
}

// `input`: its plan; its runs are the report's by now.
Analysis analysis_of(const CampaignReport& report, const ReportInput& input) {
  const auto weighted = std::ranges::find(report.strata_keys, input.plan.weights_key);
  const std::optional<std::size_t> key =
      weighted == report.strata_keys.end()
          ? std::nullopt
          : std::optional<std::size_t>(weighted - report.strata_keys.begin());
  const TaskCells cells = task_cells(report.runs, key);
  // Of a task that was taken out, what had ended by then.
  std::set<std::string_view> removed;
  for (const RunRecord& run : report.runs)
    if (run.state == RunRecord::State::kRemoved && run.ended_before_removal)
      removed.insert(run.task);
  Analysis out = analyse(cells, input.plan, input.plan_registered, input.contrasts,
                         awaited(report.runs) + input.open_beside);
  out.for_money = awaiting_money(report.runs) + input.for_money_beside;
  out.of_part = !report.part.empty();
  out.again = are_part(report.runs);
  set_controls_apart(out.rates, [&](const MethodRate& r) { return is_control(report, r.method); });
  if (!removed.empty()) {
    std::vector<RunRecord> with_removed = report.runs;
    for (RunRecord& run : with_removed)
      if (run.ended_before_removal) run.state = RunRecord::State::kEnded;
    out.removed_tasks = removed.size();
    out.with_removed = analyse(task_cells(with_removed, key), input.plan, input.plan_registered,
                               input.contrasts, out.open)
                           .contrasts;
  }
  for (auto* contrasts : {&out.contrasts, &out.with_removed})
    set_controls_apart(*contrasts, [&](const Contrast& c) {
      return is_control(report, c.a) && is_control(report, c.b);
    });
  return out;
}
}  // namespace

Status may_be_compared(std::string_view campaign, std::span<const RunRecord> runs) {
  const std::uint64_t open = awaited(runs);
  if (open == 0) return ok_status();
  const bool again = are_part(runs);
  return Error{Errc::kConflict,
               fmt::format("{} of {} {} {}: a comparison before the end is a look that no plan has "
                           "registered ({})",
                           counted(open, "run"), printable(campaign), open == 1 ? "is" : "are",
                           awaited_words(open, awaiting_money(runs), again),
                           again ? "the campaign that the patches come from has all its runs"
                                 : "let them end, raise the budget, or cancel them")};
}

SeenRuns::Again SeenRuns::add(std::string_view campaign, std::span<const RunRecord> runs) {
  Again out;
  const auto is_again = [&](std::string name) {
    const auto [at, added] = seen_.emplace(std::move(name), campaigns_);
    if (added || at->second == campaigns_) return false;
    if (out.runs == 0) out.of = at->second;
    return true;
  };
  for (const RunRecord& run : runs) {
    // A journal that was recovered from evidence has the report, and no time.
    const bool asked = run.first_asked_ms != 0 &&
                       is_again(fmt::format("{} {} {}", campaign, run.name, run.first_asked_ms));
    const bool reported =
        run.report != Digest() && is_again(fmt::format("{} {}", campaign, run.report.hex()));
    out.runs += asked || reported ? 1 : 0;
  }
  ++campaigns_;
  return out;
}

std::string_view RunRecord::failed_gate() const {
  if (gates) {
    const auto* const first =
        std::ranges::find_if(*gates, [](GateOutcome o) { return o != GateOutcome::kPass; });
    return first == gates->end() ? "" : word_of(static_cast<Gate>(first - gates->begin()));
  }
  if (patch.find("conflict_markers") != std::string::npos) return "patch";
  return violations == 0 && termination != Termination::kPolicyStop ? "" : "safety";
}

std::string RunRecord::unmet() const {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
  if (gates && !failed_gate().empty()) {
    for (std::size_t i = 0; i < gates->size(); ++i)
      if ((*gates)[i] != GateOutcome::kPass)
        add(fmt::format("gate {}: {}", word_of(static_cast<Gate>(i)), word_of((*gates)[i])));
  } else if (failed_gate() == "patch") {
    add("gate patch fails: " + patch);
  }
  if (violations != 0)
    add(fmt::format("{} violation{} {}", violations, violations == 1 ? "," : "s, first", violated));
  if (termination == Termination::kPolicyStop) add("stopped by a monitor");
  return out;
}

std::vector<std::string_view> RunRecord::tag_list() const {
  return tags.empty() ? std::vector<std::string_view>{} : split(tags, ',');
}

std::string_view stand_of(const RunRecord& run) {
  return run.state == RunRecord::State::kEnded ? word_of(run.outcome) : word_of(run.state);
}

Status keep_stage(ReportInput& input, const std::string& stage) {
  std::vector<std::string> known;
  std::vector<RunRecord> kept;
  const std::size_t all = input.runs.size();
  for (RunRecord& run : input.runs) {
    if (std::ranges::find(known, run.stage) == known.end()) known.push_back(run.stage);
    if (run.stage == stage) {
      kept.push_back(std::move(run));
      continue;
    }
    if (run.is_awaited()) ++input.open_beside;
    if (run.awaits_money()) ++input.for_money_beside;
  }
  if (kept.empty()) {
    const std::vector<std::string_view> words(known.begin(), known.end());
    const auto near = nearest_word(stage, words);
    return Error{Errc::kInvalid, "there is no stage " + printable(stage) +
                                     (near ? " (did you mean " + *near + "?)"
                                           : "; there are " + aggregate::listed_names(known))};
  }
  input.part = "This is stage " + stage + " alone, " + std::to_string(kept.size()) + " of " +
               std::to_string(all) +
               " runs. What was registered is of all stages together; what stands here is "
               "exploratory, as every part is.";
  input.runs = std::move(kept);
  input.projection.reset();  // it is of all stages
  return ok_status();
}

bool is_control(const CampaignReport& report, std::string_view method) {
  const auto run = std::ranges::find(report.runs, method, &RunRecord::method);
  return run != report.runs.end() && run->is_control();
}

std::string pooled_stages(const CampaignReport& report) {
  if (report.stages.size() < 2) return "";
  std::string out = printable(report.stages.front());
  for (std::size_t i = 1; i < report.stages.size(); ++i)
    out += (i + 1 == report.stages.size() ? " and " : ", ") + printable(report.stages[i]);
  return out;
}

bool is_only_level(const CampaignReport& report, std::string_view key) {
  const auto at = std::ranges::find(report.strata_keys, key);
  return at != report.strata_keys.end() &&
         report.only_levels[static_cast<std::size_t>(at - report.strata_keys.begin())];
}

std::vector<std::string> unmetered_methods(const CampaignReport& report) {
  std::vector<std::string> out;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty() || !row.unmetered()) continue;
    std::string caps;
    for (const std::uint32_t position : row.runs)
      if (caps.empty()) caps = report.runs[position].unseen_caps;
    out.push_back(row.method + ": unmetered: none of its " + std::to_string(row.capped_calls) +
                  " judged runs made a metered call, so nothing was counted against " + caps +
                  " and what it spent on models is not known; its program has to reserve each "
                  "call at $PROCTOR_METER (docs/metering.md)");
  }
  return out;
}

CampaignReport build_report(ReportInput input) {
  CampaignReport report;
  static_cast<ReportFacts&>(report) = std::move(static_cast<ReportFacts&>(input));
  std::ranges::sort(report.runs, {}, &RunRecord::run);
  report.only_levels = only_levels(report);
  report.moves = transitions_of(report.runs);
  const std::vector<std::string> recorded = recording_warnings(report.runs);
  report.warnings.insert(report.warnings.begin(), recorded.begin(), recorded.end());
  if (std::string mixed = configuration_warning(report.runs, report.configurations); !mixed.empty())
    report.warnings.push_back(std::move(mixed));
  std::map<std::string_view, std::size_t> stage_at;
  for (const RunRecord& run : report.runs)
    if (stage_at.try_emplace(run.stage, stage_at.size()).second) report.stages.push_back(run.stage);
  std::map<RowKey, ReportRow> rows;
  for (std::uint32_t i = 0; i < report.runs.size(); ++i) {
    const RunRecord& run = report.runs[i];
    PROCTOR_ASSERT(run.strata.size() == report.strata_keys.size());
    count(report.total, run, i);
    const bool control = run.is_control();
    count(rows[{0, 0, "", control, run.method}], run, i);
    for (std::size_t k = 0; k < run.strata.size(); ++k)
      count(rows[{k + 1, 0, run.strata[k], control, run.method}], run, i);
    if (1 < report.stages.size())
      count(rows[{run.strata.size() + 1, stage_at.at(run.stage), run.stage, control, run.method}],
            run, i);
  }
  for (auto& [where, row] : rows) {
    const auto& [key, stage, value, control, method] = where;
    row.method = method;
    row.is_control = control;
    row.value = value;
    if (0 < key)
      row.key = key <= report.strata_keys.size() ? report.strata_keys[key - 1] : kStageKey;
    finish(row, report.runs, input.plan, report.alpha);
    report.rows.push_back(std::move(row));
  }
  finish(report.total, report.runs, input.plan, report.alpha);
  report.costs = cost_rows(report);
  report.analysis = std::make_shared<const Analysis>(analysis_of(report, input));
  for (const MethodRate& rate : report.analysis->rates)
    for (ReportRow& row : report.rows)
      if (row.key.empty() && row.method == rate.method && rate.weighted)
        row.weighted = rate.weighted->of.estimate;
  return report;
}

std::vector<std::string_view> report_notes() {
  return {
      "No row is ranked by a single number. Where one is asked for, use the success rate: "
      "acceptance "
      "errors stay in its denominator and count as not successful; invalid runs leave it.",
      "A success says that the acceptance checks passed under the caps of this campaign, not that "
      "the change is right: weak checks pass wrong changes, monitors may miss behaviour, and no "
      "list of failures is exhaustive.",
      "Wilson intervals treat runs as independent. Runs of one task are alike, so to compare "
      "methods use the interval over tasks.",
  };
}

// The part of the report that says where the money went.

namespace {
// A group and what its quantiles are taken from.
struct Gathered {
  CostRow row;
  std::vector<MicroUsd> of_ended;
};

void add(Gathered& g, const RunRecord& run) {
  CostRow& r = g.row;
  ++r.runs;
  r.cost = r.cost + run.cost;
  r.asked = r.asked + run.asked;
  r.overrun = r.overrun + run.overrun;
  r.wasted = r.wasted + run.wasted;
  r.wasted_attempts += run.wasted_attempts;
  r.reviewed = r.reviewed + run.reviewed;
  r.reviews += run.reviews;
  r.self_reported = r.self_reported + run.self_reported;
  r.model_use = r.model_use + run.model_use;
  if (run.state != RunRecord::State::kEnded) return;
  ++r.ended;
  r.successes += run.outcome == RunOutcome::kSuccess ? 1 : 0;
  g.of_ended.push_back(run.cost.total());
}

// The smallest amount that at least `percent` of all are not above.
std::optional<MicroUsd> nearest_rank(const std::vector<MicroUsd>& sorted, std::size_t percent) {
  if (sorted.empty()) return std::nullopt;
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

CostRow finished(Gathered g, std::string_view by, std::string name) {
  std::ranges::sort(g.of_ended);
  g.row.by = by;
  g.row.name = std::move(name);
  g.row.median = nearest_rank(g.of_ended, 50);
  g.row.p90 = nearest_rank(g.of_ended, 90);
  g.row.most = nearest_rank(g.of_ended, 100);
  g.row.per_success = cost_per_success(g.row.cost.total(), g.row.successes);
  return std::move(g.row);
}
}  // namespace

std::optional<MicroUsd> cost_per_success(MicroUsd total, std::uint64_t successes) {
  if (successes == 0) return std::nullopt;
  const auto n = static_cast<std::int64_t>(successes);
  const std::int64_t whole = total.micros() / n;
  return MicroUsd::from_micros(whole + (total.micros() % n == 0 ? 0 : 1));
}

std::vector<CostRow> cost_rows(const CampaignReport& report) {
  Gathered all;
  std::map<std::pair<bool, std::string>, Gathered> methods;  // controls last
  std::map<std::pair<std::size_t, std::string>, Gathered> strata;
  std::map<std::string, Gathered> stages;
  std::map<std::size_t, Gathered> outcomes;  // by RunOutcome, then those without
  constexpr std::size_t kNotEnded = 4, kRemovedLater = 5;
  for (const RunRecord& run : report.runs) {
    add(all, run);
    add(methods[{run.is_control(), run.method}], run);
    for (std::size_t k = 0; k < run.strata.size(); ++k) add(strata[{k, run.strata[k]}], run);
    if (1 < report.stages.size()) add(stages[run.stage], run);
    const bool ended = run.state == RunRecord::State::kEnded;
    add(outcomes[ended                      ? static_cast<std::size_t>(run.outcome)
                 : run.ended_before_removal ? kRemovedLater
                                            : kNotEnded],
        run);
  }
  std::vector<CostRow> out = {finished(std::move(all), "all", "all")};
  for (auto& [key, g] : methods) out.push_back(finished(std::move(g), "method", key.second));
  for (auto& [key, g] : strata)
    out.push_back(
        finished(std::move(g), "stratum", report.strata_keys[key.first] + "=" + key.second));
  for (const std::string& stage : report.stages)
    if (stages.contains(stage)) out.push_back(finished(std::move(stages[stage]), "stage", stage));
  for (auto& [o, g] : outcomes)
    out.push_back(finished(std::move(g), "outcome",
                           o == kNotEnded ? "not ended"
                           : o == kRemovedLater
                               ? "removed"
                               : std::string(to_string(static_cast<RunOutcome>(o)))));
  return out;
}
}  // namespace proctor
