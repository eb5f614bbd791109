#pragma once
// The version of this build in a manifest, a registration and a worker's Sync.
#include <string_view>

namespace proctor {
inline constexpr std::string_view kVersion = "0.1.0";
}  // namespace proctor
