#pragma once
// The only place that asks the machine what time it is.  For shells and adapters; lint keeps it
// out of every core.
#include <time.h>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace proctor {
Instant mono_now();
WallTime wall_now();
// "2026-11-21T23:20:26.123Z"
std::string to_rfc3339(WallTime t);

// The CPU time of the calling thread alone: where a hundred others want the processor too, work
// takes long and costs little.
inline std::chrono::nanoseconds thread_cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Waits that somebody can end.  Any thread.

// Until `then`, or until `stop` is asked for.
inline void pause_until(std::chrono::steady_clock::time_point then, const std::stop_token& stop) {
  std::mutex nobody_elses;
  std::condition_variable_any never;
  std::unique_lock lock(nobody_elses);
  never.wait_until(lock, stop, then, [] { return false; });
}

inline void pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  pause_until(std::chrono::steady_clock::now() + time, stop);
}
}  // namespace proctor
