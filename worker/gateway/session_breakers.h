#pragma once
// The circuit breakers of a session: hears every event that is told of it, in the order of the
// trace, tells what trips, and knows how long an answer waits.  Thread-safe.  Internal to this
// room.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/trace/breakers.h"
#include "worker/gateway/gateway_session.h"

namespace proctor {

class SessionBreakers {
 public:
  // `hooks` outlive this.
  SessionBreakers(const Breakers& breakers, const GatewayHooks& hooks)
      : hooks_(hooks), on_(breakers.any()), fold_(breakers) {}

  bool any() const { return on_; }
  // Notes an event, and what trips by it.  `stop`: what has ended the run, and the event that says
  // so.  `suspended`: why nothing is to be written for now; empty: it may.
  struct Told {
    std::uint64_t seq = 0;
    std::optional<BreakerTrip> stop{};
    std::uint64_t evidence = 0;
    std::string suspended{};
  };
  Told tell(std::string_view type, GatewayHooks::By by, Json payload);

  // What the workspace looks like now, if it is time to look or a request of this key was answered
  // before: nothing where it looks as before.
  std::optional<Json> look(const std::string& key);
  std::chrono::seconds wait(const std::string& key) const;

 private:
  std::chrono::milliseconds now() const;
  const GatewayHooks& hooks_;
  const bool on_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  mutable std::mutex mutex_;  // the order of the trace is that of the fold
  BreakerFold fold_;
  std::mutex look_mutex_;
  std::optional<std::string> seen_;  // the workspace's digest; empty: it could not be looked at
  SteadyClock::time_point next_look_{};
};

}  // namespace proctor
