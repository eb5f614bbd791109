#pragma once
// The CPU time of the calling thread alone: where a hundred others want the processor too, work
// takes long and costs little.
#include <time.h>

#include <chrono>

namespace proctor {

inline std::chrono::nanoseconds thread_cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace proctor
