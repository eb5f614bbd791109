#include "worker/gateway/provider_streak.h"

#include <algorithm>

namespace proctor {

ProviderStreak::May ProviderStreak::may_begin(Run run, Time now) {
  if (!holds(run)) return {};
  // Others that wait come at `until_`: behind them, who tried in vain does not keep them from it.
  const Time from = several() && run == tried_ ? until_ + 2 * rule_.look_again : until_;
  if (now < from) return {std::chrono::ceil<Millis>(from - now), false};
  if (probing_) return {rule_.look_again, false};
  probing_ = true;
  return {Millis(0), true};
}

void ProviderStreak::ended(Run run, End end, bool probe, Time now) {
  if (probe) probing_ = false;
  if (end == End::kUnknown) return;  // of a probe: the next call is one
  if (end == End::kAnswered) {
    failures_ = 0;
    open_ = false;
    tried_ = nullptr;
    failed_.clear();
    return;
  }
  // It began before, or is a run's first: neither says more than is known.
  const bool known = holds(run) || (open_ && several());
  ++failures_;
  if (failed_.size() < kRunsKnown) failed_.insert(run);
  if (known && !probe) return;
  if (failures_ < rule_.failures) return;
  pause_ = probe ? std::min(pause_ * 2, rule_.most) : rule_.first;
  tried_ = probe ? run : nullptr;
  open_ = true;
  until_ = now + pause_;
}

}  // namespace proctor
