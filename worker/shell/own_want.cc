#include "worker/shell/own_want.h"

#include <thread>
#include <utility>

#include "common/base/system_clock.h"

namespace proctor {

Pause until_stopped(std::stop_token stop) {
  constexpr std::chrono::milliseconds kMore{10'000};
  return [stop = std::move(stop), more = kMore](std::chrono::milliseconds time) mutable {
    if (!stop.stop_requested()) {
      pause_for(time, stop);
      return true;
    }
    if (more < time) return false;
    more -= time;
    std::this_thread::sleep_for(time);
    return true;
  };
}

bool is_waited_for(const Error& error, const Patience& patience, std::chrono::milliseconds waited) {
  if (error.code == Errc::kExhausted) return !patience.want_most || waited < *patience.want_most;
  return error.code == Errc::kUnavailable && waited < patience.other_most;
}

}  // namespace proctor
