#pragma once
// What the program that stands still (attack/stand.cc) and whoever looks at it call the same.

namespace proctor {

inline constexpr const char* kStandName = "proctor-stand";  // in /proc/PID/comm: 15 bytes at most
inline constexpr const char* kStandsLine = "STANDS";        // on its standard output

}  // namespace proctor
