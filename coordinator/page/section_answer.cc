#include "common/stats/heterogeneity.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
// The head of a page: the answer that somebody with ten seconds takes away.

namespace {
// "64.3 points better than noop [20.3, 108.3], p 0.0117: better".
Markup against(const Context& of, const Contrast& c) {
  const Estimate& d = c.difference.estimate;
  Markup out = classed("span", "verdict", text(verdict_words(c)));
  if (c.verdict == ContrastVerdict::kBetter || c.verdict == ContrastVerdict::kWorse)
    out << " than ";
  else if (c.verdict == ContrastVerdict::kNotInferior)
    out << " to ";
  else
    out << " against ";
  out << text(of.name(c.b));
  if (!d.value) return out;
  out << ": " << points(d.value) << " points " << points_interval(d.interval, d.why);
  if (c.adjusted) out << ", p " << p_value(c.adjusted);
  if (const std::string note = verdict_note(c, of.analysis.plan); !note.empty())
    out << "; " << text(note, 1'000);
  return out;
}

Markup card(Context& c, std::uint32_t position) {
  const ReportRow& row = c.report.rows[position];
  const MethodRate& r = c.rate_of(row.method);
  const MethodPrice& price = c.price_of(row.method);
  Markup name = text(c.name(row.method));
  if (row.is_control) name << classed("span", "quiet", " (control)");
  Markup out = classed("span", "name", name);
  if (!r.rate.value) {
    out << classed("span", "big", "no rate");
    out << paragraph(Markup("none of its ") + number(row.planned) + " runs is scorable");
  } else {
    out << classed("span", "big", c.linked(position, kClassScorable, rate(r.rate.value)));
    Markup sure = c.analysis.plan.estimand == AnalysisPlan::Estimand::kTaskMean
                      ? Markup("solved, the mean over its tasks; ")
                      : Markup("of its runs solved; ");
    if (r.rate.interval)
      sure << text(aggregate::confidence(c.analysis.plan.alpha.real())) << " interval ";
    sure << rate_interval(r.rate.interval, r.rate.why);
    out << paragraph(sure);
    out << classed("p", "quiet", text(counted(r.tasks, "task") + ", " + counted(r.runs, "run")));
  }
  for (const Contrast& contrast : of_agents(c.analysis.contrasts))
    if (contrast.a == row.method) out << paragraph(against(c, contrast));
  if (row.satisfied < row.success)
    out << paragraph(
        element("strong", c.count(position, kClassUnsatisfied, row.success - row.satisfied) +
                              " of " + number(row.success) + " successes") +
        " did not pass a gate beside their checks (section 10)");
  for (const GateRow& gates : c.report.details->rubric.gates)
    if (gates.key.empty() && gates.method == row.method && gates.critical != 0)
      out << paragraph(element("strong", number(gates.critical) + " with a critical violation") +
                       ": counted as solved all the same");
  if (row.ended() == 0) return element("li", out);
  Markup cost;
  if (price.of_run.value)
    cost << usd(*price.of_run.value) << " " << text(c.report.unit) << " a run";
  if (price.of_success.estimate.value)
    cost << (cost.empty() ? Markup() : Markup("; ")) << per_success(price.of_success)
         << " a success";
  if (row.unmetered()) cost << " (model use unmetered)";
  if (!cost.empty()) out << paragraph(cost);
  return element("li", out);
}

Markup banners(const Context& c) {
  Markup out;
  const ReportRow& total = c.report.total;
  if (total.planned == 0) return banner("This campaign has no runs: there is nothing to report.");
  if (c.is_interim())
    out << banner(element("strong", "Interim. ") + number(c.analysis.open) + " of " +
                  number(total.planned) + " runs are " +
                  text(awaited_words(c.analysis.open, c.analysis.for_money, c.analysis.again)) +
                  ": rates are of the others alone, and nothing is compared.");
  if (!c.facts.provisional.empty())
    out << banner(element("strong", "Provisional. ") + text(c.facts.provisional));
  out << critical_banner(c);
  for (const std::string& warning : c.report.warnings)
    out << banner(element("strong", "Warning. ") + text(warning, 2'000));
  if (0 < total.parked)
    out << banner(number(total.parked) +
                  " runs are parked (section 2): what they would have shown is in no rate.");
  for (const Contrast& contrast : of_agents(c.analysis.contrasts))
    if (contrast.loss_p && *contrast.loss_p < c.analysis.plan.alpha.real())
      out << banner(Markup("One of ") + text(c.name(contrast.a)) + " and " +
                    text(c.name(contrast.b)) + " lost more runs than the other (p " +
                    p_value(contrast.loss_p) +
                    "): read the bounds of their comparison in section 4.");
  return out;
}
}  // namespace

Markup answer(Context& c) {
  Markup out = banners(c);
  // Controls are context: the question is about the others.
  Markup cards, controls;
  for (const std::uint32_t row : c.methods)
    (c.report.rows[row].is_control ? controls : cards) << card(c, row) << line_end();
  if (c.methods.empty()) return out;
  out << classed("p", "quiet",
                 "Differences are in points of the success rate, p is adjusted for all comparisons "
                 "of the plan, prices are means with intervals over tasks. A number that is a link "
                 "leads to its runs.");
  if (const std::string pooled = pooled_stages(c.report); !pooled.empty())
    out << classed("p", "quiet",
                   Markup("Stages ") + text(pooled) +
                       " are pooled here and in the comparisons; section 6 has each.");
  if (!cards.empty()) out << classed("ul", "answer", line_end() + cards);
  if (!controls.empty()) out << classed("ul", "answer controls", line_end() + controls);
  return out;
}

// The question, and what became of the runs.

namespace {
constexpr std::size_t kDeviations = 100, kReasonBytes = 2'000;

Markup plan_table(Context& c) {
  const AnalysisPlan& plan = c.analysis.plan;
  DataTable table =
      c.table(c.analysis.registered
                  ? Markup("Plan of analysis, registered before the first run")
                  : Markup("Plan of analysis: none was registered, so these are the defaults"),
              "what|value");
  table.row({"primary endpoint", "success rate: acceptance passed, among scorable runs"});
  table.row({"estimand", plan.estimand == AnalysisPlan::Estimand::kTaskMean
                             ? Markup("mean of task means: every task counts equally")
                             : Markup("mean of runs: every run counts equally")});
  table.row({"interval of a rate", text(word_of(plan.interval))});
  table.row({"level (alpha)", text(fmt::format("{}", plan.alpha.real()))});
  table.row({"smallest effect that matters",
             text(aggregate::percent(plan.min_effect.real()) + " points")});
  table.row({"margin of non-inferiority",
             text(aggregate::percent(plan.non_inferiority.real()) + " points")});
  Markup pairs;
  for (const Contrast& x : c.analysis.contrasts)
    pairs << (pairs.empty() ? Markup() : Markup("; ")) << name_of(c, x);
  table.row({"comparisons", pairs.empty() ? Markup("none shown") : pairs});
  table.row({"adjustment for several comparisons", text(words(c.analysis.adjustment))});
  if (plan.unit) table.row({"unit of comparisons", text(word_of(*plan.unit))});
  if (!plan.weights.empty())
    table.row({"weights", text(plan.weights_key) + ": " + text(weights_words(plan))});
  table.row({"replicates where tasks are resampled", number(plan.draws)});
  return table.finish();
}

Markup changes(const Context& c) {
  if (c.report.deviations.empty() && c.facts.removals.empty())
    return paragraph("Nothing was declared to differ from what was registered.");
  Items items;
  items.add(c.report.deviations, kReasonBytes, kDeviations);
  std::size_t n = c.report.deviations.size();
  for (const auto& [task, reason] : c.facts.removals)
    if (++n <= kDeviations)
      items.add(Markup("task ") + text(task) + " was removed: " + text(reason, kReasonBytes));
  return element("h3", "What changed since") + items.list() +
         and_more(n, kDeviations, " in report.json");
}

Markup approvals(const Context& c) {
  if (c.report.approvals.empty()) return {};
  Items items;
  items.add(c.report.approvals, kReasonBytes);
  return element("h3", "Approvals of stages") + items.list();
}
}  // namespace

Markup asked(Context& c) {
  return facts_table(c, "Campaign", c.facts.asked) +
         facts_table(c, "Methods", c.facts.methods, "method|what it is") + plan_table(c) +
         changes(c) + approvals(c);
}

namespace {
Markup endings(Context& c) {
  DataTable table = c.table("Why runs ended (number of runs)", "method");
  const auto& kinds = c.report.total.terminations;
  // The words are ours, and few.
  for (const auto& [kind, n] : kinds) table.numbers(text(to_string(kind)));
  for (const std::uint32_t at : c.methods) {
    const ReportRow& row = c.report.rows[at];
    std::vector<Markup> cells{name_of(c, row)};
    for (const auto& [kind, n] : kinds) {
      const auto it = row.terminations.find(kind);
      cells.push_back(number(it == row.terminations.end() ? 0 : it->second));
    }
    table.row(cells);
  }
  return kinds.empty() ? Markup() : table.finish();
}

// What was counted of removed tasks before they left.
Markup removed(Context& c) {
  std::map<std::pair<std::string_view, std::string_view>, TaskCell> cells;
  for (const RunRecord& run : c.report.runs) {
    if (!run.ended_before_removal) continue;
    TaskCell& cell = cells[{run.task, run.method}];
    cell.scorable += run.outcome == RunOutcome::kInvalid ? 0 : 1;
    cell.success += run.outcome == RunOutcome::kSuccess ? 1 : 0;
    cell.invalid += run.outcome == RunOutcome::kInvalid ? 1 : 0;
  }
  if (cells.empty()) return {};
  constexpr std::size_t kShown = 200;
  DataTable table = c.table("Ended runs of removed tasks: in no rate; their cost is in the totals",
                            "task|method|#success|#scorable|#invalid");
  std::size_t n = 0;
  for (const auto& [names, cell] : cells)
    if (++n <= kShown)
      table.row({text(names.first), text(names.second), number(cell.success), number(cell.scorable),
                 number(cell.invalid)});
  return table.finish();
}

Markup parked(const Context& c) {
  constexpr std::size_t kShown = 20;
  Items items;
  std::size_t n = 0;
  for (const RunRecord& run : c.report.runs) {
    if (run.state != RunRecord::State::kParked || kShown < ++n) continue;
    items.add(text(run.name) + ": " +
              (run.parked_why.empty() ? text(run.parked_scope) + " was short by " +
                                            money_of(run.short_by) + " " + text(c.report.unit)
                                      : text(run.parked_why, kReasonBytes)));
  }
  if (n == 0) return {};
  return element("h3", "Parked runs") + items.list() +
         and_more(n, kShown, Markup(": ") + element("code", "state=parked"));
}

Markup set_aside(const Context& c) {
  constexpr std::size_t kShown = 20;
  Items items;
  std::size_t n = 0;
  for (const RunRecord& run : c.report.runs)
    for (const SetAside& s : run.set_aside)
      if (++n <= kShown)
        items.add(text(run.name) + ", attempt " + number(s.attempt) + ": " +
                  text(s.why, kReasonBytes) + "; put in line again by " + text(s.by) +
                  (s.reason.empty() ? Markup() : Markup(", ") + text(s.reason, kReasonBytes)));
  if (n == 0) return {};
  return element("h3", "Invalid results that were set aside") +
         paragraph("They are kept as evidence and stand in no rate; their runs were run again.") +
         items.list() + and_more(n, kShown, " in runs.csv");
}
}  // namespace

Markup runs_flow(Context& c) {
  DataTable table = c.table(
      "From planned runs to outcomes (number of runs): planned = removed + cancelled + parked + "
      "open + ended; ended = invalid + scorable; scorable = success + failure + acceptance error",
      "method");
  const auto columns = aggregate::row_columns().named(aggregate::kPageFlowWords);
  add_columns(table, columns);
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    std::vector<Markup> cells{name_of(c, r)};
    for (const auto& column : columns)
      cells.push_back(
          c.linked(at, class_named(column.json), markup_of(column.read(r), column.type)));
    table.row(cells);
  }
  if (c.methods.empty()) return paragraph("There are no runs.");
  return table.finish() + mosaic_figure(c) + endings(c) + removed(c) + parked(c) + set_aside(c);
}

// The answer in full: rates, comparisons, what is not known, strata, stability.
Markup endpoint(Context& c) {
  if (c.methods.empty()) return paragraph("There is no method.");
  DataTable table = c.table(Markup("Success rate ") + text(over_words(c.analysis.plan)) + ", " +
                                text(aggregate::confidence(c.analysis.plan.alpha.real())) +
                                " intervals; the same over runs is in the appendix",
                            "method|#success rate|#interval (%)");
  const auto columns = aggregate::rate_columns(c.analysis.plan)
                           .named("tasks|runs|solved always=always|sometimes|never");
  add_columns(table, columns);
  for (const std::uint32_t at : c.methods) {
    const MethodRate& r = c.rate_of(c.report.rows[at].method);
    table.group(r.is_control ? "controls" : "");
    table.row(with_cells({name_of(c, r), c.linked(at, kClassScorable, rate(r.rate.value)),
                          rate_interval(r.rate.interval, r.rate.why)},
                         columns, r));
  }
  return forest_figure(c, ForestRows::kAllTasks) + table.finish();
}

namespace {
// What the comparisons rest on.
Markup footing(Context& c) {
  DataTable table = c.table(
      "What the comparisons rest on: what two equal methods would differ by (points), repositories "
      "as units, and how many acceptance errors and invalid runs would turn the verdict",
      "comparison");
  add_contrasts(c, table, c.analysis.contrasts,
                "difference|chance alone (95 %)=chance|chance p|tie=is tied|repositories|interval "
                "over them|p over them|verdict is turned by=turned by");
  return table.finish() +
         paragraph(
             "A tie: dealing the runs of each task out anew between two equal methods gives a "
             "difference as large in more than 5 of 100 cases. Tasks of one repository are alike, "
             "so where there are several of each the interval over repositories is the one to "
             "read, whatever the plan's unit. The verdict is turned by so many unknown outcomes, "
             "those first that move the difference most, had each come out in favour of the method "
             "named.");
}

Markup notes_of(const Context& c, const std::vector<Contrast>& contrasts) {
  Items notes;
  for (const Contrast& x : contrasts)
    if (const std::string note = contrast_sentence(x, c.analysis.plan); !note.empty())
      notes.add(text(note, 1'000));
  return notes.list();
}

// Beside what stands in the table: who takes a task out after seeing its runs may have taken out
// what did not please.
Markup with_removed(Context& c) {
  if (c.analysis.with_removed.empty()) return {};
  DataTable table = c.table(Markup("The same comparisons with the tasks that were taken out after "
                                   "runs of them had ended (") +
                                number(c.analysis.removed_tasks) + ")",
                            "comparison");
  add_contrasts(c, table, c.analysis.with_removed, aggregate::kRemovedWords);
  return table.finish() + notes_of(c, c.analysis.with_removed);
}
}  // namespace

Markup comparisons(Context& c) {
  if (c.is_interim())
    return paragraph(Markup("Not shown while ") + text(counted(c.analysis.open, "run")) +
                     (c.analysis.open == 1 ? Markup(" is ") : Markup(" are ")) +
                     text(awaited_words(c.analysis.open, c.analysis.for_money, c.analysis.again)) +
                     ": no looks before the end are registered, and who looks until it pleases "
                     "finds a difference where there is none.");
  if (c.analysis.contrasts.empty())
    return paragraph("There is one method only: nothing to compare it with.");
  DataTable table =
      c.table((c.analysis.registered ? Markup("Registered comparisons")
                                     : Markup("Comparisons by the default plan")) +
                  " (points; exact p of sign flips over " + text(unit_words(c.analysis.plan)) + ")",
              "comparison");
  const bool joint = c.analysis.adjustment.used == AnalysisPlan::Multiplicity::kMaxT;
  add_contrasts(c, table, c.analysis.contrasts,
                aggregate::contrast_words(c.analysis) + "|their interval");
  Markup out = contrast_figure(c) + table.finish() + notes_of(c, c.analysis.contrasts);
  out << paragraph(Markup("Adjusted for being several by ") + text(words(c.analysis.adjustment)) +
                   (joint ? Markup(". The intervals that hold together do so for all comparisons "
                                   "at once, at the plan's level.")
                          : Markup(".")));
  out << paragraph(
      "\"No difference shown\" is not \"no difference\": the data leave it open. Bounds say where "
      "the difference lies whatever acceptance errors and invalid runs would have been.");
  out << with_removed(c) << footing(c);
  for (const Contrast& x : of_agents(c.analysis.contrasts)) out << differences_figure(c, x);
  return out;
}

Markup unknowns(Context& c) {
  if (c.report.total.ended() == 0) return paragraph("No run has ended.");
  DataTable table =
      c.table(Markup("What is not known: rates over runs with Wilson's ") +
                  text(aggregate::confidence(c.report.alpha)) +
                  " intervals, and where the success rate over runs lies whatever became of these",
              "method|#acceptance errors|#of scorable|#interval (%)|#invalid|#of ended|"
              "#interval (%)|#bounds (%)");
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    table.row({name_of(c, r), c.count(at, kClassError, r.acceptance_error),
               rate(r.acceptance_error_rate.rate), rate_interval(r.acceptance_error_rate.interval),
               c.count(at, kClassInvalid, r.invalid), rate(r.invalid_rate.rate),
               rate_interval(r.invalid_rate.interval), rate_interval(r.bounds)});
  }
  Items items;
  items.add(broken_tasks(c.report.runs), 1'000);
  for (const EarlyEnd& early : early_ends(c.report.runs))
    items.add(text(early_end_text(early, c.report.runs), 1'000));
  items.add(unmetered_methods(c.report), 1'000);
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    if (r.without_agent() == 0) continue;
    items.add(text(c.name(r.method)) +
              ": its program could not start, or had no model or no room at its provider, in " +
              number(r.without_agent()) +
              " runs, which are invalid; had they failed, its rate over runs would be " +
              rate(r.success_rate_started.rate));
  }
  return table.finish() + items.list();
}

namespace {
// Do the strata of a key differ?  Exploratory, by the tasks' own rates.
Markup heterogeneity_of(const Context& c, std::size_t key) {
  std::map<std::string_view, std::string_view> level;
  for (const RunRecord& run : c.report.runs) level.emplace(run.task, run.strata[key]);
  Markup out;
  constexpr std::size_t kMost = 2'000;  // the permutation looks at each of them often
  if (kMost < c.cells.tasks.size()) return out;
  for (const MethodRate& r : c.analysis.rates) {
    if (r.is_control) continue;
    const std::size_t m = c.cells.method(r.method);
    std::map<std::string_view, std::vector<double>> rates;
    for (std::size_t i = 0; i < c.cells.tasks.size(); ++i) {
      const TaskCell& cell = c.cells.at(i, m);
      if (0 < cell.scorable) rates[level.at(c.cells.tasks[i])].push_back(cell.share());
    }
    std::vector<std::vector<double>> groups;
    for (auto& [name, values] : rates) groups.push_back(std::move(values));
    const std::optional<Significance> differ = heterogeneity(groups);
    if (!differ) continue;
    out << (out.empty() ? Markup() : Markup("; ")) << text(c.name(r.method)) << " p "
        << text(fmt::format("{:.4f}", differ->p));
  }
  if (out.empty()) return out;
  return paragraph(Markup("Do levels of ") + text(c.report.strata_keys[key]) +
                   " differ? Exploratory, by permuting the tasks' labels: " + out + ".");
}

// The plan's weights; empty: it has none.
Markup weighted(Context& c) {
  if (c.analysis.rates.empty() || !c.analysis.rates.front().weighted) return {};
  DataTable table =
      c.table((c.analysis.registered ? Markup("Weighted as registered, by ")
                                     : Markup("Weighted by a plan that was not registered, by ")) +
                  text(c.analysis.plan.weights_key) + ": " + text(weights_words(c.analysis.plan)),
              "method or comparison|#weighted|#interval|#tasks|#worth tasks|note");
  const auto add = [&](const auto& of, const auto& value, const auto& interval) {
    if (!of.weighted) return;
    const Estimate& e = of.weighted->of.estimate;
    table.row({name_of(c, of), value(e.value), interval(e.interval, e.why),
               number(of.weighted->tasks), text(fmt::format("{:.1f}", of.weighted->worth)),
               text(weighted_note(*of.weighted), 1'000)});
  };
  for (const MethodRate& r : c.analysis.rates) add(r, rate, rate_interval);
  for (const Contrast& x : c.analysis.contrasts) add(x, points, points_interval);
  return table.finish() + paragraph(
                              "Each level's mean over tasks counts with its weight. Worth: so many "
                              "tasks of equal weight would say as much.");
}
}  // namespace

Markup strata(Context& c) {
  constexpr std::size_t kRows = 200;
  DataTable table = c.table(
      "By stratum: success rate over tasks. Exploratory: no comparison of strata is registered",
      "stratum|method|#success rate|#interval (%)|#tasks|#success|#scorable|#bounds (%)");
  std::size_t shown = 0;
  for (std::size_t i = 0; i < c.report.rows.size(); ++i) {
    const ReportRow& r = c.report.rows[i];
    if (r.key.empty() || is_only_level(c.report, r.key) || kRows < ++shown) continue;
    const std::string name = r.key + "=" + r.value;
    table.group(name + (r.is_control ? ", controls" : ""));
    table.row({text(name), name_of(c, r),
               r.by_task ? c.linked(i, kClassScorable, rate(r.by_task->mean)) : none(),
               rate_interval(r.interval, r.why), number(r.by_task ? r.by_task->tasks : 0),
               c.count(i, kClassSuccess, r.success), c.count(i, kClassScorable, r.scorable()),
               rate_interval(r.bounds_by_task)});
  }
  if (shown == 0)
    return paragraph("No strata are reported, or every task is in the same one.") + weighted(c);
  Markup out = forest_figure(c, ForestRows::kWithStrata) + table.finish() + weighted(c);
  out << and_more(shown, kRows, " in report.csv");
  for (std::size_t k = 0; k < c.report.strata_keys.size(); ++k)
    if (!c.report.only_levels[k]) out << heterogeneity_of(c, k);
  return out;
}
}  // namespace proctor::page
