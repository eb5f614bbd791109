#pragma once
// Time is data.  Core code receives an Instant with each event and never asks for one.
// Two clocks by type: Instant decides (monotonic), WallTime is only written down.
#include <chrono>
#include <cstdint>

#include "common/base/strong.h"

namespace proctor {

struct MonoClock {  // a tag, not a source: it has no now()
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<MonoClock>;
  static constexpr bool is_steady = true;
};
using Instant = MonoClock::time_point;
using Millis = MonoClock::duration;

// Milliseconds since 1970 (UTC), for records that people read.  Never compared to decide anything.
using WallTime = Strong<struct WallTimeTag, std::int64_t>;

}  // namespace proctor
