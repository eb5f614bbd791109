#pragma once
// Rates: how many calls the whole campaign, and each provider, may be asked for in any minute
// (R106).  A run's own rate is a cap (caps.h).  Data only; the workers and the coordinator number
// the buckets alike, because both read the registered settings.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace proctor {

struct RateBucket {
  std::string name;         // "calls_per_minute" or "providers.NAME", as in campaign.yaml
  std::uint64_t limit = 0;  // calls in any 60 seconds, on all workers together
};

struct Rates {
  std::optional<std::uint64_t> calls_per_minute;
  std::map<std::string, std::uint64_t> providers;  // calls per minute by provider

  bool empty() const { return !calls_per_minute && providers.empty(); }
  // The campaign's own first, then the providers in order.
  std::vector<RateBucket> buckets() const {
    std::vector<RateBucket> out;
    if (calls_per_minute) out.push_back({"calls_per_minute", *calls_per_minute});
    for (const auto& [name, limit] : providers) out.push_back({"providers." + name, limit});
    return out;
  }
  friend bool operator==(const Rates&, const Rates&) = default;
};

inline constexpr std::size_t kRateProvidersMax = 63;
inline constexpr std::size_t kRateBucketsMax = kRateProvidersMax + 1;
inline constexpr std::uint64_t kCallsPerMinuteMax = 1'000'000;

inline constexpr Millis kRateWindow{60'000};
// How long a worker may use its share after the Sync that it asked with.  Longer than the longest
// time between two Syncs of the largest fleet, so that a share does not lapse while all is well.
inline constexpr Millis kRateLease{30'000};

}  // namespace proctor
