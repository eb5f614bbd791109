#pragma once
// The text of ledger.lua and rebuild.lua, put into the binary by CMake.
#include <string_view>

namespace proctor {
extern const std::string_view kLedgerScript;
extern const std::string_view kRebuildScript;
}  // namespace proctor
