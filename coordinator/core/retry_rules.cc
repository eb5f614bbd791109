#include "coordinator/core/retry_rules.h"

#include <algorithm>

#include "common/contract/campaign.h"

namespace proctor {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

Millis doubled(Millis first, Millis most, std::uint32_t nth) {
  Millis wait = std::min(first, most);
  for (std::uint32_t i = 1; i < nth && Millis::zero() < wait && wait < most; ++i)
    wait = wait <= most / 2 ? wait * 2 : most;
  return wait;
}

Millis backoff(const Retries& rules, RetryClass of, std::uint32_t nth, std::uint32_t seed,
               const AttemptId& failed) {
  const Millis first = of == RetryClass::kOverload ? rules.overload_backoff : rules.backoff;
  const Millis whole = doubled(first, rules.backoff_max, nth);
  const Millis half = whole / 2;
  const std::uint64_t what =
      (std::uint64_t{seed} << 32) ^ (std::uint64_t{failed.run.raw()} << 8) ^ failed.no.raw();
  const auto spread = static_cast<std::uint64_t>((whole - half).count()) + 1;
  return half + Millis(static_cast<std::int64_t>(mixed(what) % spread));
}

}  // namespace proctor
