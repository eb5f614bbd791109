#include "coordinator/aggregate/details.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/base/text.h"
#include "common/stats/paired.h"
#include "common/stats/resample.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/family.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
bool tells(const RunRecord& run) {
  return run.state == RunRecord::State::kEnded && run.outcome != RunOutcome::kInvalid &&
         0 < run.started_ms;
}

std::string why_unknown(Why why) {
  return why == Why::kNoVariance ? "runs of each task and method came out alike"
                                 : std::string(word_of(why));
}

std::string trend_sentence(const Trend& trend) {
  if (!trend.test || !trend.slope) return "nothing is known of it (" + why_unknown(trend.why) + ")";
  return fmt::format("success changed by {:+.1f} points from the first start to the last (p {})",
                     *trend.slope * 100, aggregate::p_words(trend.test->p));
}
}  // namespace

Drift drift_of(const CampaignReport& report) {
  Drift out;
  std::vector<std::string> tasks, methods;
  const auto task_at = aggregate::codes_of(report.runs, &RunRecord::task, tasks, tells);
  const auto method_at = aggregate::codes_of(report.runs, &RunRecord::method, methods, tells);
  const auto worker_at = aggregate::codes_of(report.runs, &RunRecord::worker, out.workers, tells);
  for (const RunRecord& run : report.runs) {
    if (!tells(run)) continue;
    out.first_ms = out.runs == 0 ? run.started_ms : std::min(out.first_ms, run.started_ms);
    out.last_ms = std::max(out.last_ms, run.started_ms);
    ++out.runs;
  }
  const double span = static_cast<double>(std::max<std::int64_t>(1, out.last_ms - out.first_ms));
  std::vector<TimedOutcome> timed;
  std::vector<std::vector<TimedOutcome>> by_method(methods.size());
  std::vector<GroupedOutcome> grouped;
  for (const RunRecord& run : report.runs) {
    if (!tells(run)) continue;
    const std::size_t method = method_at.at(run.method);
    const auto stratum = static_cast<std::uint32_t>(task_at.at(run.task) * methods.size() + method);
    const bool success = run.outcome == RunOutcome::kSuccess;
    timed.push_back({stratum, success, static_cast<double>(run.started_ms - out.first_ms) / span});
    by_method[method].push_back(timed.back());
    grouped.push_back({stratum, success, static_cast<std::uint32_t>(worker_at.at(run.worker))});
  }
  out.trends.push_back({"", stratified_trend(timed)});
  for (std::size_t m = 0; m < methods.size(); ++m)
    out.trends.push_back({methods[m], stratified_trend(by_method[m])});
  if (out.workers.size() <= kMostGroups)
    out.by_worker = stratified_association(grouped, out.workers.size());
  return out;
}

std::string worker_sentence(const Drift& drift) {
  if (drift.workers.size() < 2) return "one worker had all of these runs";
  if (kMostGroups < drift.workers.size())
    return fmt::format("{} workers had these runs, which are too many to tell apart",
                       drift.workers.size());
  if (!drift.by_worker.test)
    return fmt::format("of {} workers nothing is known ({})", drift.workers.size(),
                       why_unknown(drift.by_worker.why));
  return fmt::format("{} workers: p {} that it is the same whoever had the run",
                     drift.workers.size(), aggregate::p_words(drift.by_worker.test->p));
}

void append_drift(std::string& out, const Drift& drift) {
  if (drift.runs == 0) return;
  out += fmt::format("\nDrift (exploratory; within each task and method, {})\n\n",
                     counted(drift.runs, "run"));
  out += "  * over time: " + trend_sentence(drift.trends.front().trend) + "\n";
  out += "  * by worker: " + worker_sentence(drift) + "\n";
}

namespace aggregate {
std::string drift_json(const Drift& drift) {
  const auto test_json = [](const std::optional<Significance>& test) {
    return test ? filled(R"({"chi_squared":$,"df":$,"p":$})",
                         {test->statistic, or_null(test->df), test->p})
                : "null";
  };
  const auto trend = [&](const MethodTrend& t) {
    return filled(R"({"method":$,"slope":$,"strata":$,"test":@,"why":$})",
                  {or_null(t.method), or_null(t.trend.slope), t.trend.strata,
                   test_json(t.trend.test), why_json(t.trend.why)});
  };
  std::vector<std::string> workers;
  for (const auto& group : drift.by_worker.groups)
    workers.push_back(
        filled(R"({"worker":$,"runs":$,"successes":$,"expected":$})",
               {drift.workers[workers.size()], group.runs, group.successes, group.expected}));
  return filled(
      R"({"runs":$,"first_start_ms":$,"last_start_ms":$,"trends":@,"workers":@,"by_worker":@,)"
      R"("strata":$,"why":$})",
      {drift.runs, drift.first_ms, drift.last_ms, listed(drift.trends, trend), listed(workers),
       test_json(drift.by_worker.test), drift.by_worker.strata, why_json(drift.by_worker.why)});
}
}  // namespace aggregate

namespace {
// Amounts are millionths: what is less than half of one is no difference.
constexpr double kNoPrice = 5e-7;

// Four digits, and no more than a millionth: "0.0126", "12.40".
std::string amount(double dollars) {
  const double size = std::fabs(dollars);
  const int digits = size < 0.0001 ? 6 : size < 1 ? 4 : 2;
  return fmt::format("{:.{}f}", dollars, digits);
}

std::string between(const std::optional<Interval>& interval) {
  return interval ? fmt::format(" [{}, {}]", amount(interval->low), amount(interval->high)) : "";
}

std::string per_success(const CostPerSuccess& ratio, const std::string& unit) {
  const Estimate& e = ratio.estimate;
  std::string out = fmt::format("one more solved task costs {} {}", amount(*e.value), unit);
  if (e.interval) return out + between(e.interval);
  return out + " (no interval: it may be that nothing more is solved)";
}

// "a run of a costs 0.0126 USD more than one of b [0.0090, 0.0162], x3.17 [2.40, 4.20]".
std::string price_words(const PriceContrast& c, const std::string& unit, bool is_equal) {
  const std::string a = printable(c.a), b = printable(c.b);
  if (is_equal) return fmt::format("a run of {} costs as much as one of {}", a, b);
  const double cost = *c.difference.cost.value;
  Estimate size = c.difference.cost;  // as a positive amount
  if (cost < 0 && size.interval)
    size.interval = Interval{-size.interval->high, -size.interval->low};
  std::string out =
      fmt::format("a run of {} costs {} {} {} than one of {}{}", a, amount(std::fabs(cost)), unit,
                  cost < 0 ? "less" : "more", b, between(size.interval));
  if (!c.ratio.value) return out;
  out += fmt::format(", x{:.2f}", *c.ratio.value);
  if (c.ratio.interval)
    out += fmt::format(" [{:.2f}, {:.2f}]", c.ratio.interval->low, c.ratio.interval->high);
  return out;
}
}  // namespace

PriceContrast price_contrast(const std::string& a, const std::string& b,
                             std::span<const PricedTask> of_a, std::span<const PricedTask> of_b,
                             double alpha) {
  PROCTOR_ASSERT(of_a.size() == of_b.size());
  PriceContrast out;
  out.a = a;
  out.b = b;
  std::vector<CostPair> pairs, exchanged;
  std::vector<CostOfTask> prices;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (!of_a[i].counts || !of_b[i].counts) continue;
    const CostOfTask mine{of_a[i].cost_of_run, of_a[i].rate};
    const CostOfTask theirs{of_b[i].cost_of_run, of_b[i].rate};
    pairs.push_back({mine, theirs});
    exchanged.push_back({theirs, mine});
    prices.push_back({of_a[i].cost_of_run, of_b[i].cost_of_run});
  }
  out.tasks = pairs.size();
  if (pairs.empty()) return out;
  out.difference = incremental_cost(pairs, alpha);
  out.other_way = incremental_cost(exchanged, alpha).ratio;
  out.ratio = cost_per_success(prices, alpha).estimate;
  return out;
}

std::string words(const PriceContrast& c, const std::string& unit) {
  const double cost = c.difference.cost.value.value_or(0);
  const double success = c.difference.success.value.value_or(0);
  const bool is_equal = std::fabs(cost) < kNoPrice;
  const std::string a = printable(c.a), b = printable(c.b);
  std::string out = price_words(c, unit, is_equal);
  if (success == 0) return out + "; they solve as much";
  Estimate more = c.difference.success;  // of who solves more
  if (success < 0 && more.interval)
    more.interval = Interval{-more.interval->high, -more.interval->low};
  out +=
      fmt::format("; {} solves {:.1f} points more", 0 < success ? a : b, std::fabs(success) * 100);
  if (more.interval) out += " " + aggregate::points_between(*more.interval);
  if (is_equal) return out;
  if (c.difference.ratio.estimate.value) return out + ": " + per_success(c.difference.ratio, unit);
  if (c.other_way.estimate.value) return out + ": " + per_success(c.other_way, unit);
  return out + ", and costs less";
}

void append_price_contrasts(std::string& out, const std::vector<PriceContrast>& contrasts,
                            const CampaignReport& report) {
  if (contrasts.empty()) return;
  out += fmt::format(
      "\nWhat the difference costs (exploratory; over tasks that both have, {} intervals of each "
      "by "
      "itself)\n\n",
      aggregate::confidence(report.alpha));
  for (const PriceContrast& c : contrasts)
    aggregate::append_wrapped(
        out, "  * ", fmt::format("{} ({})", words(c, report.unit), counted(c.tasks, "task")));
}

std::string aggregate::price_contrast_json(const PriceContrast& c) {
  return filled(
      R"({"a":$,"b":$,"tasks":$,"cost":$,"cost_ratio":$,"success":$,"cost_of_one_more":$,)"
      R"("cost_of_one_more_by_b":$})",
      {c.a, c.b, c.tasks, estimate_json(c.difference.cost), estimate_json(c.ratio),
       estimate_json(c.difference.success), estimate_json(c.difference.ratio.estimate),
       estimate_json(c.other_way.estimate)});
}

std::uint32_t draws_over(std::size_t tasks, std::uint32_t planned) {
  constexpr std::uint32_t kFewerDraws = 1'000;
  const bool is_large = weight_law(tasks) != WeightLaw::kMultinomial;
  return is_large && planned == kDefaultDraws ? kFewerDraws : planned;
}

namespace {
constexpr double kMicros = 1e6;

using aggregate::Lattice;

// One task under one method.
struct Cell {
  std::uint64_t ended = 0, scorable = 0, successes = 0;
  std::int64_t ended_micros = 0, all_micros = 0;
  std::vector<double> wall_ms;
  bool counts() const { return 0 < scorable; }
  // Cost of a run in units of a micro-dollar over `lattice`; where that is not exact over 2^10.
  std::int64_t cost_in(const Lattice& lattice) const {
    constexpr double kParts = 1 << 10U;
    if (lattice.is_exact()) return lattice.of(static_cast<std::uint64_t>(ended_micros), ended);
    return std::llround(cost_of_run() * kMicros * kParts);
  }
  double rate() const { return static_cast<double>(successes) / static_cast<double>(scorable); }
  double cost_of_run() const {
    return static_cast<double>(ended_micros) / static_cast<double>(ended) / kMicros;
  }
};

using Cells = std::vector<Cell>;  // by task

Cells cells_of(const CampaignReport& report, const ReportRow& row, const aggregate::Codes& tasks) {
  Cells out(tasks.size());
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = report.runs[position];
    Cell& cell = out[tasks.at(run.task)];
    cell.all_micros += run.cost.total().micros();
    if (run.state != RunRecord::State::kEnded) continue;
    ++cell.ended;
    cell.ended_micros += run.cost.total().micros();
    if (run.wall_ms != 0) cell.wall_ms.push_back(static_cast<double>(run.wall_ms));
    if (run.outcome == RunOutcome::kInvalid) continue;
    ++cell.scorable;
    cell.successes += run.outcome == RunOutcome::kSuccess ? 1 : 0;
  }
  return out;
}

MethodPrice price_of(const std::string& method, const Cells& cells, double alpha) {
  MethodPrice out;
  out.method = method;
  std::vector<double> costs;
  std::vector<CostOfTask> of_success;
  std::vector<std::vector<double>> times;
  for (const Cell& cell : cells) {
    if (0 < cell.ended) costs.push_back(cell.cost_of_run());
    if (0 < cell.all_micros || 0 < cell.ended)
      of_success.push_back(
          {static_cast<double>(cell.all_micros) / kMicros, static_cast<double>(cell.successes)});
    if (!cell.wall_ms.empty()) times.push_back(cell.wall_ms);
  }
  out.of_run = mean_difference(costs, alpha).estimate;
  if (costs.empty()) out.of_run.why = Why::kNothing;
  out.of_success = cost_per_success(of_success, alpha);
  out.median_ms = quantile_over_tasks(times, 0.5, alpha);
  return out;
}

// Whole numbers of a task's runs, for all methods that are compared.
struct Units {
  Lattice ended, scorable;
};

// Each task's cost of a run and rate in whole numbers, of which means are taken: the last bit of a
// sum of doubles would tell methods apart that are equal.
struct WholeCell {
  std::int64_t cost = 0, rate = 0;
  bool has_cost = false, has_rate = false;
};

std::vector<WholeCell> whole_cells(const Cells& cells, const Units& units) {
  std::vector<WholeCell> out;
  for (const Cell& c : cells) {
    WholeCell& whole = out.emplace_back();
    whole.has_cost = 0 < c.ended;
    whole.has_rate = c.counts();
    if (whole.has_cost) whole.cost = c.cost_in(units.ended);
    if (whole.has_rate) whole.rate = units.scorable.of(c.successes, c.scorable);
  }
  return out;
}

// Means over tasks under these weights; nothing where no task counts.
std::optional<CostQuality> weighted(const std::vector<WholeCell>& cells,
                                    std::span<const std::int16_t> weights) {
  CostQuality out{{0, 0}, {0, 0}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::int64_t w = weights.empty() ? 1 : weights[i];
    if (cells[i].has_cost) {
      out.cost.part += w * cells[i].cost;
      out.cost.whole += w;
    }
    if (cells[i].has_rate) {
      out.success.part += w * cells[i].rate;
      out.success.whole += w;
    }
  }
  if (out.cost.whole == 0 || out.success.whole == 0) return std::nullopt;
  return out;
}

void add_frontier(ReportDetails& details, const CampaignReport& report,
                  const std::vector<Cells>& cells, std::uint32_t planned_draws) {
  Units units;
  for (const Cells& method : cells)
    for (const Cell& cell : method) {
      units.ended.add(cell.ended);
      units.scorable.add(cell.scorable);
    }
  std::vector<CostQuality> points;
  std::vector<std::size_t> of;
  std::vector<std::vector<WholeCell>> whole;
  for (std::size_t m = 0; m < cells.size(); ++m) {
    whole.push_back(whole_cells(cells[m], units));
    const auto point = weighted(whole[m], {});
    if (!point || is_control(report, details.prices[m].method)) continue;
    points.push_back(*point);
    of.push_back(m);
  }
  const std::vector<bool> front = frontier(points);
  for (std::size_t i = 0; i < of.size(); ++i) details.prices[of[i]].undominated = front[i];
  const std::size_t tasks = cells.empty() ? 0 : cells.front().size();
  if (tasks < 2 || of.size() < 2 || kMostTasks < tasks) return;
  const std::uint32_t draws = draws_over(tasks, planned_draws);
  std::vector<std::int16_t> weights(tasks);
  std::vector<CostQuality> replicates;
  for (std::uint32_t b = 0; b < draws; ++b) {
    draw_weights(weights, b);
    std::vector<CostQuality> of_this;
    for (const std::size_t m : of)
      if (const auto point = weighted(whole[m], weights)) of_this.push_back(*point);
    // A draw in which a method has no task says nothing about it.
    if (of_this.size() != of.size()) continue;
    replicates.insert(replicates.end(), of_this.begin(), of_this.end());
  }
  if (replicates.empty()) return;
  details.draws = static_cast<std::uint32_t>(replicates.size() / of.size());
  const std::vector<double> shares = frontier_shares(replicates, of.size());
  for (std::size_t i = 0; i < of.size(); ++i) details.prices[of[i]].undominated_share = shares[i];
}

std::vector<PricedTask> priced(const Cells& cells) {
  std::vector<PricedTask> out;
  for (const Cell& cell : cells)
    out.push_back(0 < cell.ended && cell.counts()
                      ? PricedTask{cell.cost_of_run(), cell.rate(), true}
                      : PricedTask{});
  return out;
}

// Each pair of agents once; as the plan compares it, where the plan does.
void add_price_contrasts(ReportDetails& details, const CampaignReport& report,
                         const std::vector<Cells>& cells) {
  constexpr std::size_t kShown = 20;
  if (0 < report.analysis->open) return;
  std::vector<std::size_t> agents;
  for (std::size_t m = 0; m < cells.size(); ++m)
    if (!is_control(report, details.prices[m].method)) agents.push_back(m);
  const auto is_planned = [&](std::size_t a, std::size_t b) {
    return std::ranges::any_of(report.analysis->contrasts, [&](const Contrast& c) {
      return c.a == details.prices[a].method && c.b == details.prices[b].method;
    });
  };
  std::vector<std::pair<std::size_t, std::size_t>> planned, others;
  for (std::size_t i = 0; i < agents.size(); ++i)
    for (std::size_t j = i + 1; j < agents.size(); ++j) {
      const std::size_t a = agents[i], b = agents[j];
      if (is_planned(a, b))
        planned.emplace_back(a, b);
      else if (is_planned(b, a))
        planned.emplace_back(b, a);
      else if (others.size() < kShown)
        others.emplace_back(a, b);
    }
  const std::size_t pairs = agents.size() * (agents.size() - 1) / 2;
  planned.insert(planned.end(), others.begin(), others.end());
  planned.resize(std::min(planned.size(), kShown));
  details.price_contrasts_left_out = agents.empty() ? 0 : pairs - planned.size();
  for (const auto& [a, b] : planned) {
    PriceContrast one = price_contrast(details.prices[a].method, details.prices[b].method,
                                       priced(cells[a]), priced(cells[b]), report.alpha);
    if (0 < one.tasks) details.price_contrasts.push_back(std::move(one));
  }
}
}  // namespace

ReportDetails report_details(const CampaignReport& report) {
  ReportDetails out;
  out.sets = run_sets(report);
  std::vector<std::string> names;
  auto tasks = aggregate::codes_of(report.runs, &RunRecord::task, names, [](const RunRecord& run) {
    return run.state != RunRecord::State::kRemoved;
  });
  // Removed runs are in no rate; their money stays in the tables.
  for (const RunRecord& run : report.runs) tasks.emplace(run.task, tasks.size());
  std::vector<Cells> cells;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty()) continue;
    cells.push_back(cells_of(report, row, tasks));
    out.prices.push_back(price_of(row.method, cells.back(), report.alpha));
  }
  add_frontier(out, report, cells, report.analysis->plan.draws);
  add_price_contrasts(out, report, cells);
  out.drift = drift_of(report);
  out.rubric = rubric_tables(report);
  return out;
}
}  // namespace proctor
