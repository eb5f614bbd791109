#include "worker/gateway/provider_streak.h"

#include <algorithm>

#include "common/base/digest.h"

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

void ProviderHolds::no_room(const std::string& model, std::optional<Millis> asked, Time now) {
  constexpr Millis kFirst{1'000}, kUnasked{30'000};
  Provider& p = providers_[model];
  // Calls that were under way together are one want of room.
  if (p.own <= now) p.unasked = std::clamp(2 * p.unasked, kFirst, kUnasked);
  if (p.until <= now) p.places = 0;
  p.own = std::max(p.own, now + std::min(asked.value_or(p.unasked), Millis(kHoldMsMax)));
  p.until = std::max(p.until, p.own);
}

ProviderHolds::Millis ProviderHolds::left(const std::string& model, std::uint32_t& place,
                                          Time now) {
  constexpr Millis kApart{50};
  constexpr std::uint32_t kPlaces = 20;
  Provider& p = providers_[model];
  if (place == 0 && p.until <= now) return Millis(0);
  if (place == 0) place = ++p.places;
  return std::max(Millis(0), std::chrono::ceil<Millis>(p.until + kApart * (place % kPlaces) - now));
}

std::vector<ProviderHold> ProviderHolds::own(Time now) const {
  std::vector<ProviderHold> out;
  for (const auto& [model, p] : providers_)
    if (now < p.own && out.size() < kHoldsMax)
      out.push_back({name_of(model),
                     static_cast<std::uint32_t>(std::chrono::ceil<Millis>(p.own - now).count())});
  return out;
}

void ProviderHolds::take(const std::vector<ProviderHold>& of_others, Time now) {
  for (auto& [model, p] : providers_)
    for (const ProviderHold& hold : of_others)
      if (hold.provider == name_of(model)) {
        if (p.until <= now) p.places = 0;
        p.until = std::max(p.until, now + std::min(Millis(hold.ms), Millis(kHoldMsMax)));
      }
}

std::string ProviderHolds::name_of(const std::string& model) {
  constexpr std::size_t kLetters = 16;
  return sha256(model).hex().substr(0, kLetters);
}

}  // namespace proctor
