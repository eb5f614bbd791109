#pragma once
// Where a program lies that we start by its name.  Thread-safe (no state).
#include "common/base/files.h"

namespace proctor {

// The program of this name on our PATH, or in a folder of system programs; empty: none.
fs::path find_on_path(const char* program);

}  // namespace proctor
