#include "coordinator/aggregate/details.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "common/stats/cost_effectiveness.h"
#include "common/stats/paired.h"
#include "common/stats/resample.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/lattice.h"

namespace proctor {
namespace {

// Of many tasks fewer draws say as much, unless the plan has a number of its own.
constexpr std::uint32_t kFewerDraws = 1'000;
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

Cells cells_of(const CampaignReport& report, const ReportRow& row,
               std::unordered_map<std::string_view, std::size_t>& tasks) {
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
  const bool is_large = weight_law(tasks) != WeightLaw::kMultinomial;
  const std::uint32_t draws =
      is_large && planned_draws == kDefaultDraws ? kFewerDraws : planned_draws;
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
  std::unordered_map<std::string_view, std::size_t> tasks;
  std::vector<std::string_view> names;
  for (const RunRecord& run : report.runs)
    if (run.state != RunRecord::State::kRemoved && tasks.emplace(run.task, 0).second)
      names.push_back(run.task);
  std::ranges::sort(names);
  for (std::size_t i = 0; i < names.size(); ++i) tasks[names[i]] = i;
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
  return out;
}

}  // namespace proctor
