#pragma once
// The text of ledger.lua, rebuild.lua and shared.lua, put into the binary by CMake.
#include <string_view>

namespace proctor {
extern const std::string_view kLedgerScript;
extern const std::string_view kRebuildScript;
extern const std::string_view kSharedScript;
}  // namespace proctor
