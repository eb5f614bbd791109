#pragma once
// The only place that asks the machine what time it is.  For shells and adapters; lint keeps it
// out of every core.
#include <string>

#include "common/base/clock.h"

namespace proctor {

Instant mono_now();
WallTime wall_now();
// "2026-11-21T23:20:26.123Z"
std::string to_rfc3339(WallTime t);

}  // namespace proctor
