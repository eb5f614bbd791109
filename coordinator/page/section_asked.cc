// What was asked, and what became of the runs.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "coordinator/aggregate/format.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {

constexpr std::size_t kDeviations = 100, kReasonBytes = 2'000;

Markup plan_table(Context& c) {
  const AnalysisPlan& plan = c.analysis.plan;
  DataTable table =
      c.table(c.analysis.registered
                  ? Markup("Plan of analysis, registered before the first run")
                  : Markup("Plan of analysis: none was registered, so these are the defaults"));
  table.words("what").words("value");
  table.row({"primary endpoint", "success rate: acceptance passed, among scorable runs"});
  table.row({"estimand", plan.estimand == AnalysisPlan::Estimand::kTaskMean
                             ? Markup("mean of task means: every task counts equally")
                             : Markup("mean of runs: every run counts equally")});
  table.row({"interval of a rate", text(to_string(plan.interval))});
  table.row({"level (alpha)", text(fmt::format("{}", plan.alpha.real()))});
  table.row({"smallest effect that matters",
             text(aggregate::percent(plan.min_effect.real()) + " points")});
  table.row({"margin of non-inferiority",
             text(aggregate::percent(plan.non_inferiority.real()) + " points")});
  Markup pairs;
  for (const Contrast& x : c.analysis.contrasts)
    pairs << (pairs.empty() ? Markup() : Markup("; ")) << name_of(x);
  table.row({"comparisons", pairs.empty() ? Markup("none shown") : pairs});
  table.row({"adjustment for several comparisons", text(words(c.analysis.adjustment))});
  if (plan.unit) table.row({"unit of comparisons", text(to_string(*plan.unit))});
  if (!plan.weights.empty())
    table.row({"weights", text(plan.weights_key) + Markup(": ") + text(weights_words(plan))});
  table.row({"replicates where tasks are resampled", number(plan.draws)});
  return table.finish();
}

Markup methods_table(Context& c) {
  DataTable table = c.table("Methods");
  table.words("method").words("what it is");
  for (const PageFacts::MethodFact& m : c.facts.methods) table.row({text(m.name), text(m.kind)});
  return table.empty() ? Markup() : table.finish();
}

Markup changes(const Context& c) {
  if (c.report.deviations.empty() && c.facts.removals.empty())
    return element("p", "Nothing was declared to differ from what was registered.");
  Markup out = element("h3", "What changed since"), items;
  std::size_t shown = 0;
  for (const std::string& d : c.report.deviations)
    if (++shown <= kDeviations) items << element("li", text(d, kReasonBytes)) << line_end();
  for (const PageFacts::Removal& r : c.facts.removals)
    if (++shown <= kDeviations)
      items << element("li", Markup("task ") + text(r.task) + Markup(" was removed: ") +
                                 text(r.reason, kReasonBytes))
            << line_end();
  out << element("ul", items);
  if (kDeviations < shown)
    out << element("p",
                   Markup("and ") + number(shown - kDeviations) + Markup(" more in report.json"));
  return out;
}

Markup approvals(const Context& c) {
  if (c.report.approvals.empty()) return {};
  Markup items;
  for (const std::string& a : c.report.approvals)
    items << element("li", text(a, kReasonBytes)) << line_end();
  return element("h3", "Approvals of stages") + element("ul", items);
}

}  // namespace

Markup asked(Context& c) {
  return facts_table(c, "Campaign", c.facts.asked) + methods_table(c) + plan_table(c) + changes(c) +
         approvals(c);
}

namespace {

Markup endings(Context& c) {
  DataTable table = c.table("Why runs ended (number of runs)");
  table.words("method");
  std::vector<Termination> kinds;
  for (const auto& [kind, n] : c.report.total.terminations) kinds.push_back(kind);
  for (const Termination kind : kinds) {
    // The words are ours, and few.
    table.numbers(text(to_string(kind)));
  }
  for (const std::uint32_t at : c.methods) {
    const ReportRow& row = c.report.rows[at];
    std::vector<Markup> cells{name_of(row)};
    for (const Termination kind : kinds) {
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
  DataTable table = c.table("Ended runs of removed tasks: in no rate; their cost is in the totals");
  table.words("task").words("method").numbers("success").numbers("scorable").numbers("invalid");
  std::size_t n = 0;
  for (const auto& [names, cell] : cells)
    if (++n <= kShown)
      table.row({text(names.first), text(names.second), number(cell.success), number(cell.scorable),
                 number(cell.invalid)});
  return table.finish();
}

Markup parked(const Context& c) {
  constexpr std::size_t kShown = 20;
  Markup items;
  std::size_t n = 0;
  for (const RunRecord& run : c.report.runs) {
    if (run.state != RunRecord::State::kParked || kShown < ++n) continue;
    Markup why = run.parked_why.empty()
                     ? text(run.parked_scope) + Markup(" was short by ") + money_of(run.short_by) +
                           Markup(" ") + text(c.report.unit)
                     : text(run.parked_why, kReasonBytes);
    items << element("li", text(run.name) + Markup(": ") + why) << line_end();
  }
  if (n == 0) return {};
  Markup out = element("h3", "Parked runs") + element("ul", items);
  if (kShown < n)
    out << element("p", Markup("and ") + number(n - kShown) + Markup(" more: ") +
                            element("code", "state=parked"));
  return out;
}

Markup set_aside(const Context& c) {
  constexpr std::size_t kShown = 20;
  Markup items;
  std::size_t n = 0;
  for (const RunRecord& run : c.report.runs)
    for (const SetAside& s : run.set_aside) {
      if (kShown < ++n) continue;
      items << element(
                   "li",
                   text(run.name) + Markup(", attempt ") + number(s.attempt) + Markup(": ") +
                       text(s.why, kReasonBytes) + Markup("; put in line again by ") + text(s.by) +
                       (s.reason.empty() ? Markup() : Markup(", ") + text(s.reason, kReasonBytes)))
            << line_end();
    }
  if (n == 0) return {};
  Markup out =
      element("h3", "Invalid results that were set aside") +
      element("p", "They are kept as evidence and stand in no rate; their runs were run again.") +
      element("ul", items);
  if (kShown < n)
    out << element("p", Markup("and ") + number(n - kShown) + Markup(" more in runs.csv"));
  return out;
}

}  // namespace

Markup runs_flow(Context& c) {
  DataTable table = c.table(
      "From planned runs to outcomes (number of runs): planned = removed + cancelled + parked + "
      "open + ended; ended = invalid + scorable; scorable = success + failure + acceptance error");
  table.words("method");
  for (const Literal name :
       {Literal("planned"), Literal("removed"), Literal("cancelled"), Literal("parked"),
        Literal("open"), Literal("ended"), Literal("invalid"), Literal("scorable"),
        Literal("success"), Literal("failure"), Literal("acceptance error"), Literal("satisfied")})
    table.numbers(name);
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    table.row({name_of(r), c.count(at, kClassPlanned, r.planned),
               c.count(at, kClassRemoved, r.removed), c.count(at, kClassCancelled, r.cancelled),
               c.count(at, kClassParked, r.parked), c.count(at, kClassOpen, r.open),
               number(r.ended()), c.count(at, kClassInvalid, r.invalid),
               c.count(at, kClassScorable, r.scorable()), c.count(at, kClassSuccess, r.success),
               c.count(at, kClassFailure, r.failure), c.count(at, kClassError, r.acceptance_error),
               c.count(at, kClassSatisfied, r.satisfied)});
  }
  if (c.methods.empty()) return element("p", "There are no runs.");
  return table.finish() + mosaic_figure(c) + endings(c) + removed(c) + parked(c) + set_aside(c);
}

}  // namespace proctor::page
