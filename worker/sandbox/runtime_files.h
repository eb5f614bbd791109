#pragma once
// What engines with a runtime of their own keep on the host while they live: a
// folder of files that sandboxes are shown.
// Thread-safe (no state).
#include <string>

#include "common/base/file_lock.h"
#include "common/base/subprocess.h"

namespace proctor {

// A temporary folder that is readable by all, and ours for as long as we live.
Result<HeldFolder> make_runtime_folder(const std::string& prefix);

}  // namespace proctor
