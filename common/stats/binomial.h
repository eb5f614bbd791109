#pragma once
// Intervals of a rate x/n of independent trials (Wilson 1927; Clopper & Pearson 1934). They
// say how well the rate is known if every trial were a fresh draw; runs of one task are not, which
// is what clustered.h is for.  Pure; thread-safe; nothing where nothing is defined.
#include <cstdint>
#include <optional>

#include "common/stats/distributions.h"
#include "common/stats/interval.h"

namespace proctor {

// x/n, or nothing when n is 0: 0 of 0 is not a rate of 0.
std::optional<double> rate(std::uint64_t x, std::uint64_t n);

// Score interval.  Requires: x <= n, 0 < alpha < 1.
std::optional<Interval> wilson(std::uint64_t x, std::uint64_t n, double alpha = 0.05);
// The same at a number of trials that need not be whole: an effective sample size.
std::optional<Interval> wilson_at(double rate, double n, double alpha = 0.05);

// Exact interval: covers at least 1 - alpha for every true rate.  Requires: as wilson.
std::optional<Interval> clopper_pearson(std::uint64_t x, std::uint64_t n, double alpha = 0.05);
// The same for numbers that need not be whole.  Requires: 0 <= x <= n, 0 < n.
Interval clopper_pearson_at(double x, double n, double alpha = 0.05);
// The one-sided upper bound at 1 - alpha: what a screen without a finding still allows.
std::optional<double> clopper_pearson_upper(std::uint64_t x, std::uint64_t n, double alpha = 0.05);

}  // namespace proctor
