#pragma once
#include <string_view>

namespace proctor {
// Names that the program that stands still (attack/main.cc) and whoever looks at it have in common.
inline constexpr const char* kStandName = "proctor-stand";  // in /proc/PID/comm: 15 bytes at most
inline constexpr const char* kStandsLine = "STANDS";        // on its standard output

// The bytes of the static program that plays the hostile agent (attack/main.cc).
std::string_view attack_program();
}  // namespace proctor
