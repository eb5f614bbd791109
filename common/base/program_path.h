#pragma once
// What this host has beside Proctor: where a program lies that we start by its name, and which
// locales and time zones commands find.  Thread-safe (no state).
#include <string>

#include "common/base/files.h"

namespace proctor {

// The program of this name on our PATH, or in a folder of system programs; empty: none.
fs::path find_on_path(const char* program);

// Can commands have it in LC_ALL?  With one that is not there they go on with C in silence.
bool has_locale(const std::string& name);
// Can commands have it in TZ: a file of /usr/share/zoneinfo, or a rule such as EST5EDT?  With one
// that is neither they go on with UTC in silence.
bool knows_time_zone(const std::string& name);

}  // namespace proctor
