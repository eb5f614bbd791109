#pragma once
// Hold: whether what runs in sandboxes is to stand still, and the clock that stands still with it.
// One for each attempt: the loop sets it, the sandbox follows it, meters and ceilings measure by
// its clock, so that a suspended run loses none of its time.  Thread-safe.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>

namespace proctor {

class Hold {
 public:
  using Clock = std::chrono::steady_clock;

  void set(bool suspended);
  bool on() const;
  // The steady clock, less all the time this was on.
  Clock::time_point now() const;
  // Returns when it is off, or when `cancel` wants it.
  void wait_until_off(const std::stop_token& cancel) const;

  // Calls `changed` at every change from now on, on the thread that makes it, until it is
  // destroyed.  `changed` must not call back into the Hold.
  class Watch {
   public:
    Watch(const Hold& hold, std::function<void()> changed);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    const Hold& hold_;
    std::list<std::function<void()>>::iterator at_;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any off_;
  mutable std::list<std::function<void()>> watches_;
  bool on_ = false;
  Clock::time_point since_{};
  Clock::duration stood_still_{0};
};

}  // namespace proctor
