#pragma once
// Amounts of time and money: quantiles, time until success, cost per success.
// Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/paired.h"

namespace proctor {
// Quantiles of durations and amounts, and their intervals where several runs share a task.

// Type 7 (the default of NumPy and R): linear between order statistics.  nullopt without values.
// Requires everywhere: 0 <= q <= 1.
std::optional<double> quantile(std::vector<std::uint64_t> values, double q);
std::optional<double> real_quantile(std::vector<double> values, double q);
inline std::optional<double> median(std::vector<std::uint64_t> values) {
  return quantile(std::move(values), 0.5);
}

// Type 7 over all runs, with Woodruff's interval (1952): the share of runs up to the quantile, with
// its error over tasks, turned back into values.  With one task: order statistics, as for
// independent runs.  `standard_error` is that of the share.  kNothing: no run.  A share of exactly
// 0 or 1 has no error: kNoVariance.
struct QuantileEstimate {
  Estimate estimate;
  std::optional<Interval> shares;  // what the interval's ends are quantiles of
};
QuantileEstimate quantile_over_tasks(std::span<const std::vector<double>> tasks, double q,
                                     double alpha = 0.05);

// Time, or money, until success, by Aalen and Johansen (1978): a run that ended in failure will
// never succeed, so it competes and is not censored.  Censored are only runs that were cut for
// reasons which have nothing to do with their outcome.

enum class Ending : std::uint8_t { kCensored, kSuccess, kFailure };

struct Lifetime {
  double at = 0;  // time or money when it ended; >= 0
  Ending ending = Ending::kCensored;
};

// The curve after each distinct time at which something happened.  At equal times what happened
// comes before what was censored.
struct CurvePoint {
  double at = 0;
  double value = 0;
  double standard_error = 0;
  std::uint64_t at_risk = 0;         // just before
  std::optional<Interval> interval;  // log-log; nothing where the value is 0 or 1
};

// P(success until t).  Aalen's error by the delta method.
std::vector<CurvePoint> cumulative_incidence(std::span<const Lifetime> runs, double alpha = 0.05);
// The value of a curve at t: its last point up to t; nothing before its first.
const CurvePoint* at(std::span<const CurvePoint> curve, double t);

// Cost per success, cost of one more success, and the frontier of both.

// The cost of one success: total cost over total successes, all attempts paid.

// One task: its cost and its successes, both over all its runs.
struct CostOfTask {
  double cost = 0;
  double successes = 0;
};

struct CostPerSuccess {
  // The ratio with Fieller's interval, Student's t over tasks.  kNoSuccess: no ratio; kUnbounded:
  // the set is no interval, and `low` is its finite lower end where there is one.
  Estimate estimate;
  std::optional<double> low;
};
CostPerSuccess cost_per_success(std::span<const CostOfTask> tasks, double alpha = 0.05);

// The cost of one more success when method a replaces b.

// One task under both methods, over equally many runs.
struct CostPair {
  CostOfTask a, b;
};

struct IncrementalCost {
  Estimate cost, success;  // mean differences a - b over tasks
  // Cost over success with Fieller's interval: only where a costs more and solves more; elsewhere
  // one method has both, and a ratio would hide which (kNotDefined).
  CostPerSuccess ratio;
};
IncrementalCost incremental_cost(std::span<const CostPair> tasks, double alpha = 0.05);

// Which methods no other one beats in cost and success together.

// A quotient that is compared exactly, so that ties are ties.  Requires: 0 < whole.
struct Quotient {
  std::int64_t part = 0, whole = 1;
  friend bool operator<(const Quotient& x, const Quotient& y);
};

// In units that all methods of a comparison share.
struct CostQuality {
  Quotient cost;     // of one run
  Quotient success;  // share of runs
};

// A method is dominated if another costs at most as much and succeeds at least as often, one of
// them strictly.  Equal methods stay together.
std::vector<bool> frontier(std::span<const CostQuality> methods);

// In which share of the replicates each method is on the frontier.  `replicates`: of method m in
// replicate b at [b * methods + m].  Requires: at least one replicate.
std::vector<double> frontier_shares(std::span<const CostQuality> replicates, std::size_t methods);
}  // namespace proctor
