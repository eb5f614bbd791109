#pragma once
// What engines with a runtime of their own keep on the host while they live: the program, and a
// folder of files that sandboxes are shown.
// Thread-safe (no state).
#include <string>

#include "common/base/held_folder.h"

namespace proctor {

// The program of this name on our PATH; empty: none.
fs::path find_on_path(const char* program);

// A temporary folder that is readable by all, and ours for as long as we live.
Result<HeldFolder> make_runtime_folder(const std::string& prefix);

}  // namespace proctor
