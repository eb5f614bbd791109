#include "worker/gateway/provider_streak.h"

#include <algorithm>

namespace proctor {

ProviderStreak::May ProviderStreak::may_begin(Time now) {
  if (!open_) return {};
  if (now < until_) return {std::chrono::ceil<Millis>(until_ - now), false};
  if (probing_) return {rule_.look_again, false};
  probing_ = true;
  return {Millis(0), true};
}

void ProviderStreak::ended(End end, bool probe, const std::string& why, Time now) {
  if (probe) probing_ = false;
  if (end == End::kUnknown) return;  // of a probe: the next call is one
  if (end == End::kAnswered) {
    failures_ = 0;
    open_ = false;
    return;
  }
  why_ = why;
  if (open_ && !probe) return;  // it began before
  if (!open_ && ++failures_ < rule_.failures) return;
  pause_ = open_ ? std::min(pause_ * 2, rule_.most) : rule_.first;
  open_ = true;
  until_ = now + pause_;
}

}  // namespace proctor
