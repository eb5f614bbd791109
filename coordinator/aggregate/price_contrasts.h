#pragma once
// Which of two methods is the dearer one, by how much, and what one more solved task costs: paired
// over the tasks that both have (REPORT S23).  Beside the comparisons of the plan, of which none is
// of prices, so each is exploratory and adjusted for nothing.  Pure.
#include <string>
#include <vector>

#include "common/stats/cost_effectiveness.h"
#include "coordinator/aggregate/report.h"

namespace proctor {

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

}  // namespace proctor
