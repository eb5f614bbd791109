#pragma once
// Time, or money, until success, by Aalen and Johansen (1978): a run that ended in failure will
// never succeed, so it competes and is not censored. Censored are only runs that were cut for
// reasons which have nothing to do with their outcome. Pure; thread-safe.
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

// P(success until t).  Aalen's error by the delta method.
std::vector<CurvePoint> cumulative_incidence(std::span<const Lifetime> runs, double alpha = 0.05);
// The value of a curve at t: its last point up to t; nothing before its first.
const CurvePoint* at(std::span<const CurvePoint> curve, double t);

}  // namespace proctor
