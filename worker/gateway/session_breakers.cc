#include "worker/gateway/session_breakers.h"

#include <algorithm>

namespace proctor {

std::chrono::milliseconds SessionBreakers::now() const {
  if (hooks_.now) return hooks_.now();
  return std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - began_);
}

SessionBreakers::Told SessionBreakers::tell(std::string_view type, GatewayHooks::By by,
                                            Json payload) {
  if (!on_) return {hooks_.note(type, by, payload)};
  using By = GatewayHooks::By;
  const std::lock_guard lock(mutex_);
  if (BreakerFold::hears(type)) payload["at_ms"] = std::max<std::int64_t>(0, now().count());
  Told told{hooks_.note(type, by, payload)};
  for (BreakerTrip& trip : fold_.on(type, payload)) {
    // As it is: all that it says was told before, without what is struck out.
    const std::uint64_t alert =
        hooks_.note("monitor.alert", By::kHarness, alert_json(trip, fold_.stage()));
    told.evidence =
        hooks_.note("monitor.intervention", By::kHarness, intervention_json(trip, alert));
    if (trip.action == BreakerAction::kSuspendWrites) told.suspended = trip.why;
    if (trip.action == BreakerAction::kStop) told.stop = std::move(trip);
  }
  return told;
}

std::optional<Json> SessionBreakers::look(const std::string& key) {
  if (!on_ || !hooks_.look) return std::nullopt;
  constexpr std::chrono::milliseconds kMost{2'000};
  constexpr int kShare = 20;  // of the time is spent on looking, one part
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = fold_.was_answered(key);
  }
  const std::lock_guard lock(look_mutex_);
  const auto began = SteadyClock::now();
  if (seen_ && !again && began < next_look_) return std::nullopt;
  const std::optional<WorkspaceLook> state = hooks_.look();
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - began);
  next_look_ = SteadyClock::now() + std::min(kShare * took, kMost);
  const std::string digest = state ? state->digest : std::string();
  if (seen_ == digest) return std::nullopt;
  seen_ = digest;
  return Json{
      {"digest", digest}, {"files", state ? state->files : 0}, {"bytes", state ? state->bytes : 0}};
}

std::chrono::seconds SessionBreakers::wait(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return std::chrono::seconds(fold_.wait_seconds(key));
}

}  // namespace proctor
