#pragma once
// Was anything below a folder written since a moment?  By the times of change, which the kernel
// sets and no program can: that tells an agent's changes from those of setup in one layer without a
// look at every file before each agent.  Reads only, any thread.
#include <ctime>

#include "common/base/files.h"

namespace proctor {

// The moment that the kernel stamps changes with.  It moves every few milliseconds, so changes of
// one moment may lie before it or after it.
timespec stamp_now();

// Has this file or folder been changed since, or is it not there?
bool changed_since(const fs::path& path, const timespec& moment);

// The folder itself counts, .git in it does not.  True also where something cannot be read: nobody
// knows then.
bool touched_since(const fs::path& dir, const timespec& moment);

}  // namespace proctor
