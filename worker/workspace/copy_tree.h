#pragma once
// A writable copy of a checkout, for hosts without overlayfs: reflinks where the file system has
// them, else bytes.  Times, modes and hard links are kept; pipes, sockets and devices are left out.
// Blocking.
#include <sys/stat.h>

#include <ctime>
#include <map>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/beneath.h"

namespace proctor {
// A file as it looked when it was copied.  The ctime cannot be set by anybody, so a file that still
// looks like this was not written to, whatever its mtime says.
struct CopiedFile {
  ino_t inode = 0;
  off_t size = 0;
  timespec changed{};
};
using CopiedFiles = std::map<std::string, CopiedFile>;  // by relative path
// Is it one of them, and as it was?
bool looks_like(const CopiedFiles& known, const std::string& path, const struct stat& st);

// Copies what is in `from` into the folder `to`.  Returns after the clock of the file system has
// moved on, so that every later write has a later ctime.
Status copy_tree(const fs::path& from, const fs::path& to, CopiedFiles& copied);

// One file or link, with its times and mode, in the place of whatever is there or on the way.
Status copy_over(const Seen& from, int root, const std::string& path);
}  // namespace proctor
