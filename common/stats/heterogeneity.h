#pragma once
// Do strata differ?  Cochran's Q with DerSimonian and Laird's variance between strata, Welch's F,
// and the permutation of task labels that few tasks need.  Pure; thread-safe.
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

struct Heterogeneity {
  Why why = Why::kOk;  // kTooFew: below two strata with a task; kNoVariance: only the permutation
  std::optional<Significance> q;      // chi-squared, strata - 1 degrees
  std::optional<double> i_squared;    // share of the variance that is between strata; >= 0
  std::optional<double> tau_squared;  // that variance; >= 0
  std::optional<Significance> welch;  // F; `df` is that of the denominator
  // Of the sum of squares between strata.  Nothing where all tasks have the same value.
  std::optional<Significance> permutation;
};
// `strata`: the tasks' values (rates, or differences of two methods) of each.
Heterogeneity heterogeneity(std::span<const std::vector<double>> strata,
                            std::uint64_t seed = kResampleSeed);

}  // namespace proctor
