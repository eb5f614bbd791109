// Stability, money and time.
#include "common/base/result.h"
#include "common/stats/clustered.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {
std::vector<Cluster> clusters_of(const Context& c, std::size_t method) {
  std::vector<Cluster> out;
  for (std::size_t i = 0; i < c.cells.tasks.size(); ++i)
    if (const Cluster cluster = c.cells.at(i, method).rate(); 0 < cluster.runs)
      out.push_back(cluster);
  return out;
}

Markup pass_table(Context& c) {
  DataTable table = c.table(
      "Several tries: pass@k (at least one of k succeeds) and pass^k (all k do), over tasks with k "
      "scorable runs",
      "method|#k|#pass@k|#interval (%)|#pass^k|#interval (%)|#tasks|#tasks with fewer runs");
  for (const MethodRate& r : c.analysis.rates)
    for (std::size_t i = 0; i < r.pass.size(); ++i) {
      const PassEstimate& e = r.pass[i];
      table.row({name_of(c, r), number(c.analysis.plan.pass_k[i]), rate(e.at_least_one.value),
                 rate_interval(e.at_least_one.interval, e.at_least_one.why), rate(e.all.value),
                 rate_interval(e.all.interval, e.all.why), number(e.tasks), number(e.too_few)},
                e.tasks != 0 && (1 < c.analysis.plan.pass_k[i] || r.pass.size() == 1));
    }
  return table.finish_or("Several tries are not shown: no task has so many scorable runs.");
}

Markup alike_table(Context& c) {
  DataTable table = c.table(
      "Are runs of one task alike? Intraclass correlation, and by how much fewer the independent "
      "runs are than they seem (design effect)",
      "method|#correlation|#interval|#design effect");
  for (const MethodRate& r : c.analysis.rates) {
    const IntraclassCorrelation icc = intraclass_correlation(
        clusters_of(c, c.cells.method(r.method)), c.analysis.plan.alpha.real());
    const auto two = [](double v) { return text(fmt::format("{:.2f}", v)); };
    table.row({name_of(c, r), icc.rho.value ? two(*icc.rho.value) : text(word_of(icc.rho.why)),
               between(icc.rho.interval, Why::kOk, two),
               icc.design_effect ? two(*icc.design_effect) : none()},
              icc.rho.value.has_value());
  }
  return table.finish_or(
      "Likeness is not shown: it takes several tasks, several runs of one, and unlike outcomes.");
}

// Did runs of one task ever come out differently?
bool is_seen(const MethodRate& r) {
  return r.rerun.why != Why::kNoVariance;
}

Markup rerun_table(Context& c) {
  DataTable table = c.table(
      "The floor of noise: how far a method's rate moves when all its runs are made once more on "
      "the same tasks (points)",
      "method|#standard error|#two reruns differ by at most (95 %)|#tasks with two runs or more");
  for (const MethodRate& r : c.analysis.rates)
    table.row({name_of(c, r),
               !is_seen(r)              ? Markup("none seen")
               : r.rerun.standard_error ? points(r.rerun.standard_error)
                                        : text(word_of(r.rerun.why)),
               is_seen(r) ? points(r.rerun.gap95) : Markup("none seen"), number(r.rerun.tasks)},
              r.rerun.tasks != 0);
  Markup out = table.finish_or(
      "The floor of noise is not shown: no task has two scorable runs of a method.");
  if (!std::ranges::all_of(c.analysis.rates, is_seen))
    out << paragraph(
        "None seen: all runs of each task came out alike, which does not say that others would.");
  return out;
}

// Is it the same early and late, and whoever had the run?
Markup drift_tables(Context& c) {
  const Drift& drift = c.report.details->drift;
  if (drift.runs == 0) return {};
  DataTable trends = c.table(
      "Drift over time, within each task and method (exploratory): what success changed by from "
      "the first start to the last",
      "method|#points|#p|#groups of runs that tell");
  for (const MethodTrend& t : drift.trends)
    trends.row({t.method.empty() ? Markup("all")
                                 : small_if(is_control(c.report, t.method), text(c.name(t.method))),
                points(t.trend.slope),
                t.trend.test ? p_value(t.trend.test->p) : text(word_of(t.trend.why)),
                number(t.trend.strata)},
               t.trend.test.has_value());
  Markup out = trends.finish_or("Drift is not shown: no runs of one task came out differently.") +
               paragraph(Markup("By worker: ") + text(worker_sentence(drift)) + ".");
  constexpr std::size_t kWorkers = 50;
  DataTable workers = c.table(
      "Success by worker: expected is what it would have had at the rates of its runs' tasks and "
      "methods",
      "worker|#runs|#success|#expected");
  const auto& groups = drift.by_worker.groups;
  if (groups.size() < 2) return out;
  for (std::size_t i = 0; i < std::min(groups.size(), kWorkers); ++i)
    workers.row({text(drift.workers[i]), number(groups[i].runs), number(groups[i].successes),
                 data(groups[i].expected, fmt::format("{:.1f}", groups[i].expected))});
  out << workers.finish();
  return out + and_more(groups.size(), kWorkers, " in report.json");
}

Markup price_contrasts(const Context& c) {
  Items items;
  for (PriceContrast one : c.report.details->price_contrasts) {
    one.a = c.name(one.a);
    one.b = c.name(one.b);
    items.add(text(words(one, c.report.unit), 2'000) + " (" + number(one.tasks) + " tasks)");
  }
  if (items.empty()) return Markup();
  Markup out = element("h3", "What the difference costs") +
               paragraph(
                   "Over the tasks that both have. Exploratory: the plan compares success, and "
                   "these intervals hold each by itself.") +
               items.list();
  if (const std::size_t left = c.report.details->price_contrasts_left_out; 0 < left)
    out << paragraph(Markup("and ") + number(left) + " pairs more");
  return out;
}
}  // namespace

Markup stability(Context& c) {
  if (c.report.total.scorable() == 0) return paragraph("No run is scorable.");
  return pass_figure(c) + pass_table(c) + alike_table(c) + rerun_table(c) + drift_tables(c) +
         paragraph(
             "Checks are repeated on the untouched tasks by proctor screen, before a campaign "
             "begins; what stands here is the agents' own variation.");
}

Markup money_section(Context& c) {
  const std::string& unit = c.report.unit;
  if (c.report.total.cost.total() == MicroUsd::zero() && c.report.alerts.empty() &&
      !c.report.projection && !c.report.total.unmetered())
    return paragraph("The campaign spent nothing, so there is no table of prices.") +
           burndown_figure(c);
  DataTable prices =
      c.table(Markup("What a run and a success cost (") + text(unit) +
                  "; all attempts are paid for, intervals over tasks; the frontier is "
                  "of agents, noop and reference stay out of it)",
              "method|#a run|#interval|#a success|#median run|#dearest run|"
              "#on the frontier|#in replicates");
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    const MethodPrice& p = c.price_of(r.method);
    const auto group = std::ranges::find_if(c.report.costs, [&](const CostRow& row) {
      return row.by == "method" && row.name == r.method;
    });
    PROCTOR_ASSERT(group != c.report.costs.end());
    prices.row({name_of(c, r), p.of_run.value ? usd(*p.of_run.value) : none(),
                between(p.of_run.interval, p.of_run.why, usd), per_success(p.of_success),
                money_of(group->median), money_of(group->most),
                p.undominated ? Markup(*p.undominated ? Literal("yes") : Literal("no")) : none(),
                rate(p.undominated_share)});
  }
  DataTable parts =
      c.table(Markup("Where it went (") + text(unit) +
                  Markup("): by what was paid for; reserved for attempts that are paid, "
                         "and wasted by infrastructure"),
              "group");
  const auto columns = aggregate::cost_columns().named(aggregate::kPageCostWords);
  add_columns(parts, columns);
  constexpr std::size_t kGroups = 200;
  std::size_t n = 0;
  for (const CostRow& g : c.report.costs) {
    if (kGroups < ++n) continue;
    parts.group(std::string(g.by));
    const std::string name = g.by == "method" ? c.name(g.name) : g.name;
    parts.row(with_cells({text(g.by == "all" ? "all" : g.by + " " + name)}, columns, g));
  }
  Markup out = frontier_figure(c) + prices.finish() + price_contrasts(c) + burndown_figure(c) +
               parts.finish();
  out << and_more(n, kGroups, " in costs.csv");
  Items alerts;
  alerts.add(c.report.alerts, 2'000, 40);
  if (!alerts.empty()) out << element("h3", "Alerts about money") << alerts.list();
  if (!c.report.projection)
    return out + paragraph(
                     "There is no projection: the campaign has no inputs of one "
                     "(pilot_cost_model_inputs.json).");
  DataTable projected = c.table(Markup("Projected beside actual (") + text(unit) + ")", "part");
  const auto amounts = aggregate::comparison_columns().named(aggregate::kPageComparisonWords);
  add_columns(projected, amounts);
  projected.numbers("actual of projected");
  for (const ComparisonRow& r : c.report.projection->rows) {
    std::vector<Markup> cells = with_cells({text(r.by + " " + r.name)}, amounts, r);
    cells.push_back(
        r.ratio_thousandths
            ? text(aggregate::percent(static_cast<double>(*r.ratio_thousandths) / 1000) + " %")
            : none());
    projected.row(cells);
  }
  return out + projected.finish();
}

Markup time_section(Context& c) {
  if (c.report.total.ended() == 0) return paragraph("No run has ended.");
  DataTable table =
      c.table("Time of a run, from its start to its report (seconds)",
              "method|#median|#interval|#median of successes|#median of failures|#longest");
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    const Estimate& median = c.price_of(r.method).median_ms.estimate;
    std::optional<double> longest;
    if (r.time.longest_ms) longest = static_cast<double>(*r.time.longest_ms);
    table.row({name_of(c, r), seconds_of(r.time.median_ms),
               between(median.interval, median.why, seconds_of),
               seconds_of(r.time_of_success.median_ms), seconds_of(r.time_of_failure.median_ms),
               seconds_of(longest)});
  }
  DataTable phases = c.table("Where the time went (minutes of all ended runs together)",
                             "method|#setup|#agent|#acceptance");
  const auto minutes = [](std::uint64_t ms) {
    constexpr double kMinute = 60'000;
    return text(fmt::format("{:.1f}", static_cast<double>(ms) / kMinute));
  };
  for (const std::uint32_t at : c.methods) {
    std::uint64_t setup = 0, agent = 0, acceptance = 0;
    for (const std::uint32_t i : c.report.rows[at].runs) {
      const RunRecord& run = c.report.runs[i];
      if (run.state != RunRecord::State::kEnded) continue;
      setup += run.setup_ms;
      agent += run.agent_ms;
      acceptance += run.acceptance_ms;
    }
    phases.row({name_of(c, c.report.rows[at]), minutes(setup), minutes(agent), minutes(acceptance)},
               minutes(std::max({setup, agent, acceptance})).bytes() != minutes(0).bytes());
  }
  return until_success_figure(c) + table.finish() +
         phases.finish_or("Phases are not shown: none took a tenth of a minute.") +
         histogram_figures(c) + workers_figure(c);
}
}  // namespace proctor::page
