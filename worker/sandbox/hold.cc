#include "worker/sandbox/hold.h"

#include <utility>

namespace proctor {

void Hold::set(bool suspended) {
  const std::lock_guard lock(mutex_);
  if (suspended == on_) return;
  const Clock::time_point now = Clock::now();
  if (on_) stood_still_ += now - since_;
  since_ = now;
  on_ = suspended;
  if (!on_) off_.notify_all();
  for (const auto& changed : watches_) changed();
}

bool Hold::on() const {
  const std::lock_guard lock(mutex_);
  return on_;
}

Hold::Clock::time_point Hold::now() const {
  const std::lock_guard lock(mutex_);
  return (on_ ? since_ : Clock::now()) - stood_still_;
}

void Hold::wait_until_off(const std::stop_token& cancel) const {
  std::unique_lock lock(mutex_);
  off_.wait(lock, cancel, [this] { return !on_; });
}

Hold::Watch::Watch(const Hold& hold, std::function<void()> changed) : hold_(hold) {
  const std::lock_guard lock(hold_.mutex_);
  at_ = hold_.watches_.insert(hold_.watches_.end(), std::move(changed));
}

Hold::Watch::~Watch() {
  const std::lock_guard lock(hold_.mutex_);
  hold_.watches_.erase(at_);
}

}  // namespace proctor
