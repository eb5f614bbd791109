// Things to know before the numbers are used: graders, rules, where it comes from, what is not
// claimed.
#include "common/contract/caps.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
Markup graders(Context&) {
  return paragraph(
      "No verdicts of reviewers about outcomes are recorded: how often the checks reject a correct "
      "change (FP) or accept a wrong one (FN) is not measured, and no rate is corrected for it.");
}

Markup rules(Context& c) {
  Items moves;
  for (const Transition& t : c.report.moves)
    moves.add(text(t.method + ": " + t.was + " -> " + t.is + ", " + counted(t.runs, "run")));
  const Markup again = moves.empty()
                           ? Markup(
                                 "No result was scored again under other rules, so there is no "
                                 "counterfactual table.")
                           : Markup(
                                 "The patches of another campaign were judged again here. Their "
                                 "outcomes in that campaign and in this one:");
  return facts_table(c, "Caps, and the envelopes that money comes from", c.facts.caps) +
         paragraph(Markup("An acceptance error stays in the denominator and counts as not "
                          "successful; an invalid run leaves it. ") +
                   again) +
         moves.list() + paragraph(text(kCapsArePolicy));
}

Markup reproducibility(Context& c) {
  std::vector<PageFacts::Fact> facts = c.facts.origins;
  facts.push_back({"journal head", c.report.journal_head.empty() ? "none" : c.report.journal_head});
  return facts_table(c, "What was run, to the byte", facts) +
         paragraph(Markup("The same journal and evidence give this page again, byte for byte. All "
                          "of the evidence is recomputed by ") +
                   command(c, "verify") + ".");
}

Markup limits_section(Context& c) {
  Items items;
  for (const std::string_view note : report_notes()) items.add(text(note));
  for (const Literal note :
       {Literal("The comparisons above are all that is claimed of an order of methods."),
        Literal("Where many tasks come from few repositories, intervals over tasks are too narrow: "
                "section 4 has the comparisons over repositories."),
        Literal("What agents said of themselves is marked as such and was measured by nobody."),
        Literal("Public tasks age: a model may have seen them.")})
    items.add(note);
  constexpr std::size_t kLimitBytes = 2'000;
  items.add(report_limits(c.report), kLimitBytes);
  return items.list();
}

// Appendices: words, the other estimand, every task, sets, every run, how to compute it again.

namespace {
constexpr std::size_t kTasks = 2'000, kTaskCells = 6'000, kRunsListed = 5'000, kLinks = 20'000;
constexpr std::size_t kExamples = 20;

Markup words_list() {
  Markup items;
  for (const Definition& d : report_definitions())
    items << element("dt", element("strong", text(d.word))) << element("dd", text(d.meaning, 1'000))
          << line_end();
  return element("dl", items);
}

Markup over_runs(Context& c) {
  if (c.report.total.ended() == 0) return {};
  DataTable table = c.table(
      "The other estimand: success over runs, with Wilson's interval, which takes runs of one task "
      "for independent",
      "method|#success|#scorable|#rate|#interval (%)");
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    table.row({name_of(c, r), c.count(at, kClassSuccess, r.success),
               c.count(at, kClassScorable, r.scorable()), rate(r.success_rate.rate),
               rate_interval(r.success_rate.interval)});
  }
  return table.finish();
}

Markup tasks_table(Context& c) {
  if (c.cells.tasks.empty()) return {};
  std::map<std::string_view, MicroUsd> cost;
  for (const RunRecord& run : c.report.runs) {
    MicroUsd& sum = cost[run.task];
    sum = sum + run.cost.total();
  }
  DataTable table = c.table(Markup("Every task: success of scorable runs by method, and cost (") +
                                text(c.report.unit) + "); filter: task=NAME method=NAME",
                            "task");
  for (const std::string& m : c.cells.methods) table.numbers(text(c.name(m)));
  table.numbers("cost");
  const std::size_t most =
      std::min(kTasks, kTaskCells / std::max<std::size_t>(1, c.cells.methods.size()));
  const std::size_t shown = std::min(most, c.cells.tasks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<Markup> cells{text(c.cells.tasks[i])};
    for (std::size_t m = 0; m < c.cells.methods.size(); ++m) {
      const TaskCell& cell = c.cells.at(i, m);
      cells.push_back(cell.scorable == 0 ? none()
                                         : number(cell.success) + "/" + number(cell.scorable));
    }
    cells.push_back(money_of(cost[c.cells.tasks[i]]));
    table.row(cells);
  }
  const Markup out = element("h3", "Tasks") + table.finish();
  return out + and_more(c.cells.tasks.size(), shown, " tasks: runs.csv has all");
}

// Every run of a small campaign, so that a set can point at its own.
Markup runs_table(Context& c) {
  DataTable table = c.table(Markup("Every run (cost in ") + text(c.report.unit) +
                                ", time in seconds; evidence lies in ../runs/RUN/attempt-K/)",
                            "run");
  const std::string words =
      (c.report.moves.empty() ? "" : "old outcome=old|") + std::string(aggregate::kPageRunWords);
  const auto columns = aggregate::run_columns(c.report.strata_keys).named(words);
  add_columns(table, columns);
  table.heads("report digest");
  for (std::size_t i = 0; i < c.report.runs.size(); ++i) {
    const RunRecord& run = c.report.runs[i];
    std::vector<Markup> cells = with_cells(
        {element("span", {{"id", numbered("run-", i + 1)}}, text(run.name))}, columns, run);
    cells.push_back(run.report == Digest() ? none()
                                           : element("code", text(run.report.short_hex())));
    table.row(cells);
  }
  return table.empty() ? Markup() : element("h3", "Runs") + table.finish();
}

Markup sets_table(Context& c) {
  const std::vector<RunSet>& sets = c.report.details->sets.sets;
  if (sets.empty()) return {};
  const bool has_runs = c.report.runs.size() <= kRunsListed;
  std::size_t links = 0;
  for (const RunSet& s : sets) links += s.members.size();
  const std::size_t most = has_runs && links <= kLinks ? kSetMembers : kExamples;
  DataTable table = c.table(
      "Sets: the runs behind each number. The digest is SHA-256 over the lines RUN REPORT-DIGEST "
      "in the plan's order; where not all runs are named these are the first",
      "set|filter|#runs|digest|runs of it");
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const RunSet& s = sets[i];
    Markup members;
    const std::size_t shown = std::min(most, s.members.size());
    for (std::size_t n = 0; n < shown; ++n) {
      const std::uint32_t at = s.members[n];
      members << (n == 0 ? Markup() : Markup(" "))
              << (has_runs ? element("a", {{"href", numbered("#run-", at + 1U)}},
                                     number(c.report.runs[at].run.raw()))
                           : text(c.report.runs[at].name));
    }
    table.row({element("span", {{"id", numbered("set-", i + 1)}}, number(i + 1)),
               element("code", text(s.where)), number(s.runs),
               element("code", text(s.digest.hex())), members});
  }
  return element("h3", "Sets") +
         paragraph(Markup("Any of them is listed, and its digest checked, by its filter: ") +
                   command(c, "list", "--where " + shell_word(sets.front().where)) + "." +
                   (has_runs ? Markup(" A number in the last column is a run's place in the plan, "
                                      "and leads to it.")
                             : Markup())) +
         table.finish();
}

Markup recompute() {
  return element("h3", "How to compute it again") +
         paragraph("With NumPy, SciPy and pandas, from runs.csv beside this file:") +
         scrolling({"aria-label", "Python"},
                   element("pre", Literal(R"(import numpy as np, pandas as pd
from scipy import stats
runs = pd.read_csv("runs.csv")
scorable = runs[runs.outcome.isin(["success", "failure", "acceptance_error"])]
y = scorable.assign(y=scorable.outcome == "success").groupby(["task", "method"]).y.mean().unstack()
print(y.mean())                                              # section 3
A, B = y.columns[:2]                                         # any two methods
d = (y[A] - y[B]).dropna()
print(d.mean(), stats.ttest_1samp(d, 0).confidence_interval())   # section 4
flips = np.array(np.meshgrid(*[[-1, 1]] * len(d))).reshape(len(d), -1)   # up to 20 tasks
print((abs(flips.T @ d.values) >= abs(d.sum()) - 1e-12).mean())
paid = runs.groupby(["task", "method"]).total_usd.sum().unstack().sum()
print(paid / scorable[scorable.outcome == "success"].groupby("method").size())   # section 8

def korn_graubard(y, n, alpha=.05):                          # y: rates of tasks, n: scorable runs
    p, g = y.mean(), len(y)
    m = p * (1 - p) / (y.var(ddof=1) / g)
    m *= (stats.t.ppf(alpha / 2, n - 1) / stats.t.ppf(alpha / 2, g - 1)) ** 2
    x = p * m
    return stats.beta.ppf(alpha / 2, x, m - x + 1), stats.beta.ppf(1 - alpha / 2, x + 1, m - x))")));
}
}  // namespace

Markup appendix(Context& c) {
  Markup out = element("h3", "Words") + words_list() + over_runs(c) + tasks_table(c);
  out << sets_table(c);
  if (c.report.runs.size() <= kRunsListed)
    out << runs_table(c);
  else
    out << paragraph(Markup("The ") + number(c.report.runs.size()) + " runs are in runs.csv.");
  return out + recompute();
}
}  // namespace proctor::page
