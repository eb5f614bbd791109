#pragma once
// Several comparisons at once: adjusted p-values, ranks, intervals that hold together.
// Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/resample.h"

namespace proctor {
// p-values of a family, adjusted for its size by Holm (1979).  In the order of the input; tests
// without a p are not given: they are counted beside the family.
std::vector<double> adjust_holm(std::span<const double> p);

// Ranks that the data allow, never a strict order.
struct RankSet {
  std::size_t best = 1, worst = 1;
  friend bool operator==(const RankSet&, const RankSet&) = default;
};
// `differences`: simultaneous intervals of method i minus method j at [i * methods + j]; an entry
// that is missing separates no two, the diagonal is not looked at.  A method's best rank is one
// more than the number of methods that are better, its worst the number of methods less those
// worse.
std::vector<RankSet> rank_sets(std::span<const std::optional<Interval>> differences,
                               std::size_t methods);

// A family of contrasts at one level: intervals that hold together, by the largest studentized
// deviation of joint replicates, and p-values that are adjusted by sign flips common to all
// contrasts (Westfall & Young 1993).

// Below this many tasks a report prefers Holm's adjustment.
inline constexpr std::size_t kMaxTTasks = 50;

struct MaxT {
  double critical = 0;  // in standard errors; 0: no contrast has one
  // The interval of each contrast; nullopt where its standard error is 0: it is not in the family.
  std::vector<std::optional<Interval>> intervals;
};
// `replicates`: of contrast j in replicate b at [b * estimates.size() + j], all contrasts under the
// same weights.  `errors`: standard errors over tasks.  Requires: at least one replicate, 2 <=
// tasks.
MaxT max_t(std::span<const double> estimates, std::span<const double> errors,
           std::span<const double> replicates, std::size_t tasks, double alpha = 0.05);

// Tasks up to which all sign flips are tried, and how many are drawn beyond.
inline constexpr std::size_t kExactFlipTasks = 20;
inline constexpr std::uint32_t kDrawnFlips = 9999;

// By stepping down, in the order of the contrasts.
// `contrasts`: of each, the differences of the same tasks in the same order, made whole by one
// multiplier.  The statistic is |sum| / sqrt(sum of squares); a contrast of zeros has p = 1.
// Requires: |differences| < 2^15, at most kMostTasks of them.
std::vector<double> westfall_young(std::span<const std::vector<std::int64_t>> contrasts,
                                   std::uint64_t seed = kResampleSeed);
}  // namespace proctor
