#pragma once
// That a provider of models has no room for a while, as workers and coordinator tell each other.
// Pure.
#include <cstddef>
#include <cstdint>
#include <string>

namespace proctor {

inline constexpr std::uint32_t kHoldMsMax = 60'000;
inline constexpr std::size_t kHoldsMax = 16;  // of a worker, and of a campaign

struct ProviderHold {
  std::string provider;  // by a name that is no address: 16 letters of a digest of that
  std::uint32_t ms = 0;  // from when it is said, at most kHoldMsMax
  friend bool operator==(const ProviderHold&, const ProviderHold&) = default;
};

}  // namespace proctor
