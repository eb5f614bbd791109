#pragma once
// The version of this build in a manifest, a registration and a worker's Sync.
#include <string_view>

namespace proctor {
inline constexpr std::string_view kVersion = "0.1.0";
inline constexpr std::string_view kUnknownCommit = "unknown";
// The commit that this build is of: 12 hexadecimal digits or more, "-dirty" behind them where its
// files had changed; kUnknownCommit: it was built from no checkout.  Programs alone have it
// (proctor_commit), and their main() hands it on: no library is linked again for a new commit.
std::string_view build_commit();
}  // namespace proctor
