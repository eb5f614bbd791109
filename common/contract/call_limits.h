#pragma once
// Limits of calls to models: rates, circuit breakers, and holds of a provider.  Data only.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/limits.h"

namespace proctor {
// Rates: how many calls the whole campaign, and each provider, may be asked for in any minute
// (R106).  A run's own rate is a cap (caps.h).  The workers and the coordinator number the buckets
// alike, because both read the registered settings.

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

// Which circuit breakers watch a run, with their parameters as they were registered
// (docs/breakers.md).  A value; any thread.

struct BreakerParameter {
  std::string_view name;
  std::uint64_t otherwise;  // where it is not said; 0 only where 0 means "no such limit"
};
struct BreakerKind {
  std::string_view code;
  bool standard;  // of `breakers: on`
  std::array<BreakerParameter, 3> parameters;
  std::size_t count;
  std::span<const BreakerParameter> all() const { return {parameters.data(), count}; }
};
inline constexpr std::array<BreakerKind, 10> kBreakerKinds{
    {{"burst", true, {{{"tool_calls", 20}, {"seconds", 10}}}, 2},
     {"expensive_repeat", true, {{{"seconds", 10}}}, 1},
     {"failed_writes", true, {{{"suspend", 5}, {"reads", 3}}}, 2},
     {"failing_suite", true, {{{"throttle", 3}, {"stop", 6}}}, 2},
     {"identical_call", true, {{{"throttle", 4}, {"stop", 8}}}, 2},
     {"no_progress", true, {{{"model_calls", 40}, {"tool_calls", 100}, {"seconds", 600}}}, 3},
     {"oscillation", true, {{{"rounds", 2}}}, 1},
     {"refused_streak", true, {{{"stop", 20}}}, 1},
     {"reinstall", true, {{{"throttle", 3}, {"stop", 5}}}, 2},
     {"run_ceiling", false, {{{"model_calls", 0}, {"tool_calls", 0}, {"seconds", 0}}}, 3}}};

// Calls of a run that leave events, and so calls that breakers see.
inline constexpr std::uint64_t kWatchedCalls = 20'000;

struct Breakers {
  using Rule = std::map<std::string, std::uint64_t>;  // every parameter of its kind
  std::map<std::string, Rule> rules;                  // by code; those that are not here are off
  bool any() const { return !rules.empty(); }
  friend bool operator==(const Breakers&, const Breakers&) = default;
};

// That a provider of models has no room for a while, as workers and coordinator tell each other.

inline constexpr std::uint32_t kHoldMsMax = 60'000;
inline constexpr std::size_t kHoldsMax = 16;  // by a worker, and in a campaign

struct ProviderHold {
  std::string provider;  // by a name that is no address: 16 letters of a digest of that
  std::uint32_t ms = 0;  // from when it is said, at most kHoldMsMax
  friend bool operator==(const ProviderHold&, const ProviderHold&) = default;
};
void fields(auto& v, Is<ProviderHold> auto& h) {
  v("provider", h.provider, {.bytes = limits::kNameBytes, .text = Rule::Text::kName});
  v("ms", h.ms, {.most = kHoldMsMax});
}
}  // namespace proctor
