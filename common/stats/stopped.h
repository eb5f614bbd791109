#pragma once
// What is known once a look has stopped a comparison.  The plain estimate is too far from 0, for it
// was stopped because it was far: these are adjusted by the stagewise order (Armitage 1957;
// Fairbanks & Madsen 1982).  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

struct StoppedEstimate {
  double p = 1;         // two-sided
  double estimate = 0;  // median unbiased
  Interval interval;    // 1 - alpha
};
// Stopped at the last of `fractions`, with this difference and standard error; `bounds` of the
// looks before, one fewer.  Requires: 0 < standard_error.
StoppedEstimate stopped_estimate(std::span<const double> fractions,
                                 std::span<const std::optional<double>> bounds, double difference,
                                 double standard_error, double alpha = 0.05);

// The chance to pass the last bound, given the statistic at this fraction of the information, if
// the statistic at the end were expected to be `drift`.  Requires: 0 < fraction < 1.
double conditional_power(double z, double fraction, double drift, double last_bound);

// A bound of normal statistics as one of Student's t, of the same nominal level.
double bound_by_t(double bound, double df);

}  // namespace proctor
