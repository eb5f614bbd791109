#pragma once
// Which circuit breakers watch a run, with their parameters as they were registered
// (docs/breakers.md).  A value; any thread.
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace proctor {

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

}  // namespace proctor
