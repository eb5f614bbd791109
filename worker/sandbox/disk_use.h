#pragma once
// How much of the disk a sandbox holds: what lies in its writable folders, and what its processes
// keep open after they have removed its name.  Where no kernel limit does it, a monitor asks this
// while the command runs (folder_use.h says how folders are counted).
// Not counted: files without a name that are only mapped, or on their way through a socket; each is
// bounded by the limit on one file.  Thread-safe.
#include <sys/types.h>

#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {

// Is the limit passed?  `inside`: the sandbox's processes.
bool disk_limit_passed(const DiskLimit& limit, const std::vector<pid_t>& inside);

}  // namespace proctor
