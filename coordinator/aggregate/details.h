#pragma once
// The part of a written report beyond the tables that `status` shows too: drift, prices, and the
// sets of runs behind its numbers.  Takes longer than counting.  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/stats/amounts.h"
#include "common/stats/heterogeneity.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/rubric.h"
#include "coordinator/aggregate/run_sets.h"

namespace proctor {
struct CampaignReport;

// Did success drift while the campaign ran, or depend on which worker had a run?  Within each task
// and method, over scorable runs; exploratory.

struct MethodTrend {
  std::string method;  // empty: all methods together
  Trend trend;         // its slope is per campaign, from the first start to the last
};

struct Drift {
  std::uint64_t runs = 0;                  // scorable ones whose start is known
  std::int64_t first_ms = 0, last_ms = 0;  // of these
  std::vector<MethodTrend> trends;         // of all, then by method
  std::vector<std::string> workers;        // that had one, by name
  // Groups in the order of `workers`.  Empty where there are more than kMostGroups.
  Association by_worker;
};
Drift drift_of(const CampaignReport& report);

// "4 workers: p 0.9444 that it is the same whoever had the run", or why nothing is known of it.
std::string worker_sentence(const Drift& drift);
void append_drift(std::string& out, const Drift& drift);

// Which of two methods is the dearer one, by how much, and what one more solved task costs: paired
// over the tasks that both have (REPORT S23).  Beside the comparisons of the plan, of which none is
// of prices, so each is exploratory and adjusted for nothing.

// Amounts are dollars (or the unit of the price table).
struct PriceContrast {
  std::string a, b;
  std::size_t tasks = 0;  // with an ended and a scorable run of both
  // Of an ended run with all its attempts, and of the success rate: a less b, means over tasks.
  // And what one more solved task costs where a costs more and solves more.
  IncrementalCost difference;
  // The same of b less a: where b costs more and solves more.
  CostPerSuccess other_way;
  // Mean price of a run, a over b, with Fieller's interval; no value where b's is 0.
  Estimate ratio;
};

// One task under one method, of its ended and of its scorable runs.
struct PricedTask {
  double cost_of_run = 0, rate = 0;
  bool counts = false;
};

PriceContrast price_contrast(const std::string& a, const std::string& b,
                             std::span<const PricedTask> of_a, std::span<const PricedTask> of_b,
                             double alpha);
// "a run of a costs 0.0126 USD more than one of b [0.0090, 0.0162], x3.17 [2.40, 4.20]; a
// solves 22.5 points more [+10.1, +34.9]: one more solved task costs 0.0560 USD [0.0301, 0.2102]".
std::string words(const PriceContrast& contrast, const std::string& unit);
void append_price_contrasts(std::string& out, const std::vector<PriceContrast>& contrasts,
                            const CampaignReport& report);

// One method over all tasks.  Amounts are dollars (or the unit of the price table).
struct MethodPrice {
  std::string method;
  // Mean over tasks of what an ended run cost there; Student's t.
  Estimate of_run;
  // All that was spent on it over all successes, tasks resampled in thought (Fieller).
  CostPerSuccess of_success;
  // Milliseconds from start to report, of ended runs.
  QuantileEstimate median_ms;
  // No other method costs at most as much a run and succeeds at least as often.  Nothing: it has no
  // rate or no cost, or is a baseline, which is no choice that anybody has.
  std::optional<bool> undominated;
  // In which share of resampled campaigns it is so; nothing: fewer than two tasks or methods.
  std::optional<double> undominated_share;
};

struct ReportDetails {
  RunSets sets;
  std::vector<MethodPrice> prices;  // by method, as the rows of all tasks
  std::uint32_t draws = 0;          // resampled campaigns behind the shares
  // Of the plan's comparisons that are between agents, then of the other pairs of agents; empty
  // while runs are open or parked for money.
  std::vector<PriceContrast> price_contrasts;
  std::size_t price_contrasts_left_out = 0;  // pairs beyond those that are shown
  Drift drift;
  RubricTables rubric;
};
ReportDetails report_details(const CampaignReport& report);
// How often that many tasks are resampled: of many fewer draws say as much, unless the plan has a
// number of its own.
std::uint32_t draws_over(std::size_t tasks, std::uint32_t planned);
}  // namespace proctor
