#pragma once
// What runs that are left will still cost, in money or in time.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

// Below this many ended runs of a task and method a forecast takes the method's runs together.
inline constexpr std::uint64_t kForecastRuns = 3;

// Runs that are expected to behave alike.  Requires: seen > 0 where left > 0; deviation >= 0.
struct RunsLeft {
  double left = 0;
  double mean = 0, deviation = 0;  // of the runs seen, in the unit of the forecast
  std::optional<double> seen;      // nothing: the mean is known and not estimated
};
// The sum over all groups, shared by `slots` that work side by side (1 for money).  The interval is
// normal: it counts how the runs left differ, and how badly few ended runs know their mean.
Estimate forecast(std::span<const RunsLeft> groups, double slots = 1, double alpha = 0.2);

}  // namespace proctor
