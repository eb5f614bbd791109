#pragma once
// Which times an attempt may say of itself: one rule for what arrives and for `proctor verify`.
// Pure; any thread.
#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace proctor {

// Clocks of workers and coordinators differ, and are put right now and then.
inline constexpr std::int64_t kClockSlackMs = 24LL * 3'600'000;

// Why these are not the times of an attempt; empty: they may be.  What is 0 is not known.  Where
// its result came before it was granted, the coordinator's clock was set back in between, and
// either time may be of before or after that.
inline std::string wrong_times(std::int64_t started_ms, std::int64_t finished_ms,
                               WallTime granted = WallTime(0), WallTime received = WallTime(0)) {
  if (started_ms <= 0) return "started_ms: not a time";
  if (finished_ms < started_ms) return "finished_ms: before started_ms";
  const bool set_back = granted.raw() != 0 && received.raw() != 0 && received < granted;
  const WallTime first = set_back ? received : granted, last = set_back ? granted : received;
  if (first.raw() != 0 && started_ms < first.raw() - kClockSlackMs)
    return "started_ms: more than a day before the attempt was granted";
  if (last.raw() != 0 && last.raw() + kClockSlackMs < finished_ms)
    return "finished_ms: more than a day after its result came";
  return "";
}

}  // namespace proctor
