#pragma once
// Time, or money, until success.  Kaplan and Meier (1958) where nothing competes; Aalen and
// Johansen (1978) where a run that ended in failure will never succeed: it competes and is not
// censored. Censored are only runs that were cut for reasons which have nothing to do with their
// outcome. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {

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

// P(nothing happened until t): every ending but kCensored is an event.  Greenwood's error.
std::vector<CurvePoint> kaplan_meier(std::span<const Lifetime> runs, double alpha = 0.05);
// P(success until t).  Aalen's error by the delta method.
std::vector<CurvePoint> cumulative_incidence(std::span<const Lifetime> runs, double alpha = 0.05);
// The value of a curve at t: its last point up to t; nothing before its first.
const CurvePoint* at(std::span<const CurvePoint> curve, double t);

// The first time at which survival is at most 1 - q, with the times at which the limits of the
// interval are.  Nothing where the curve does not get there.
struct SurvivalQuantile {
  std::optional<double> value, low, high;
};
SurvivalQuantile survival_quantile(std::span<const CurvePoint> survival, double q);

// Area under survival up to a horizon: the mean time within it.
struct RestrictedMean {
  double value = 0;
  double standard_error = 0;
};
RestrictedMean restricted_mean(std::span<const Lifetime> runs, double horizon);

// Do two groups end alike?  Observed and expected events of the first, and chi-squared with one
// degree.  Nothing where no time separates them.
struct LogRank {
  double observed = 0, expected = 0, variance = 0;
  Significance test;
};
std::optional<LogRank> log_rank(std::span<const Lifetime> a, std::span<const Lifetime> b);

}  // namespace proctor
