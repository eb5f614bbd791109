#pragma once
// What engines with a runtime of their own keep on the host while they live: the program, and a
// folder that names the process it belongs to, so that the next life can tell what was left.
// Thread-safe (no state).
#include <string>

#include "common/base/files.h"

namespace proctor {

// The program of this name on our PATH; empty: none.
fs::path find_on_path(const char* program);

// A temporary folder "<prefix><our pid>-...", readable by all.
Result<TempDir> make_runtime_folder(const std::string& prefix);
// Removes those of processes that are dead.
void remove_stale_runtime_folders(const std::string& prefix);

}  // namespace proctor
