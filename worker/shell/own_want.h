#pragma once
// What this host has none left of for now (descriptors, memory, room on its disk) is no reason to
// lose what a run has paid for: it is waited for, and the work is done again.  Blocking; any
// thread.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/log.h"
#include "common/base/result.h"

namespace proctor {

// Waits that long; false: nobody waits any longer.
using Pause = std::function<bool(std::chrono::milliseconds)>;

// Until a stop is asked for, and then ten seconds more in all, for what is finished anyway.
Pause until_stopped(std::stop_token stop);

struct Patience {
  Pause pause;
  // Of kExhausted; none: for as long as it takes.
  std::optional<std::chrono::milliseconds> want_most{};
  // Of kUnavailable, which may be our want as well, and may be anything.
  std::chrono::milliseconds other_most = std::chrono::seconds(30);
};

// Is this error waited for, when that much was waited already?  Pure.
bool is_waited_for(const Error& error, const Patience& patience, std::chrono::milliseconds waited);

// Does `work` until it succeeds, or fails with what is not waited for; it may be done many times.
// `what` names it in the log.
template <class T>
Result<T> when_there_is_room(const std::string& what, const Patience& patience,
                             const std::function<Result<T>()>& work) {
  constexpr std::chrono::milliseconds kFirst{100}, kLongest{5'000};
  std::chrono::milliseconds waited{0}, next = kFirst;
  for (;;) {
    Result<T> done = work();
    if (done.ok() || !is_waited_for(done.error(), patience, waited)) {
      if (done.ok() && waited.count() != 0) log::info(what + ": done, after a wait");
      return done;
    }
    if (waited.count() == 0)
      log::warn(what + ": " + done.error().detail + ": waited for, and then tried again");
    if (!patience.pause(next)) return done;
    waited += next;
    next = std::min(2 * next, kLongest);
  }
}

}  // namespace proctor
