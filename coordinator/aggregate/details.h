#pragma once
// What a written report has beyond the tables that `status` shows too: the sets behind its numbers,
// and what each method costs.  Takes longer than counting.  Pure.
#include <optional>
#include <string>
#include <vector>

#include "common/stats/amounts.h"
#include "common/stats/cost_effectiveness.h"
#include "coordinator/aggregate/drift.h"
#include "coordinator/aggregate/price_contrasts.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/run_sets.h"

namespace proctor {

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
};
ReportDetails report_details(const CampaignReport& report);

}  // namespace proctor
