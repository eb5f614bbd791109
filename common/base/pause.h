#pragma once
// A wait that somebody can end.  Any thread.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace proctor {

// Until then, or until `stop` is asked for.
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
