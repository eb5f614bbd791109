#pragma once
// How much of the disk a sandbox holds: what lies in its writable folders, and what its processes
// keep open after they have removed its name.  Where no kernel limit does it, a monitor asks this
// while the command runs; what it reads changes meanwhile and is hostile, so it follows no link,
// stays on one file system, and gives up at a depth and as soon as the limit is passed.
// Not counted: files without a name that are only mapped, or on their way through a socket; each is
// bounded by the limit on one file.  Thread-safe.
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {

// Deeper than this is beyond every limit: nothing that builds or installs goes there.
inline constexpr int kDiskDepthMax = 128;

struct DiskUse {
  std::uint64_t bytes = 0, files = 0;
};
// All of one folder, for what is there before a command runs.
DiskUse disk_use_of(const fs::path& dir);

// Is the limit passed?  `inside`: the sandbox's processes.
bool disk_limit_passed(const DiskLimit& limit, const std::vector<pid_t>& inside);

}  // namespace proctor
