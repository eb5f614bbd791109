#pragma once
// Do strata differ?  By permutation of their tasks' labels, for tasks are few.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/resample.h"

namespace proctor {
// Arrangements up to which all are tried, and how many are drawn beyond.
inline constexpr std::uint64_t kExactArrangements = 200000;
inline constexpr std::uint32_t kDrawnArrangements = 9999;

// By the sum of squares between strata.  `strata`: the tasks' values (rates, or differences of two
// methods) of each.  nullopt below two strata with a task, or where all tasks have the same value.
std::optional<Significance> heterogeneity(std::span<const std::vector<double>> strata,
                                          std::uint64_t seed = kResampleSeed);

// Did success drift while a campaign ran, or depend on which worker had a run?  The order of a plan
// is drawn at random, so within one task and method the runs' outcomes are exchangeable, and both
// are tests of independence in many small strata (Mantel 1963; Mantel & Haenszel 1959; Landis and
// others 1978).

// One run: the stratum it is compared within (its task and method), whether it succeeded, and when
// it began or who had it.
struct TimedOutcome {
  std::uint32_t stratum = 0;
  bool success = false;
  double at = 0;  // in any unit, finite
};

// kNothing; kTooFew: no stratum has two runs; kNoVariance: none has both outcomes at two times.
struct Trend {
  Why why = Why::kOk;
  // Least squares within strata: what the chance of success gains per unit of time.
  std::optional<double> slope;
  std::optional<Significance> test;  // chi-squared with one degree, of no trend
  std::uint64_t strata = 0;          // that tell something
};
Trend stratified_trend(std::span<const TimedOutcome> runs);

struct GroupedOutcome {
  std::uint32_t stratum = 0;
  bool success = false;
  std::uint32_t group = 0;  // below `groups`
};

// The runs and successes of one group, and the successes expected at the rates of its strata.
struct GroupTally {
  std::uint64_t runs = 0, successes = 0;
  double expected = 0;
};
struct Association {
  Why why = Why::kOk;  // as of a trend
  std::vector<GroupTally> groups;
  std::optional<Significance> test;  // chi-squared, of no association
  std::uint64_t strata = 0;          // that tell something
};
inline constexpr std::size_t kMostGroups = 256;
// Requires: groups <= kMostGroups.
Association stratified_association(std::span<const GroupedOutcome> runs, std::size_t groups);
}  // namespace proctor
