#pragma once
// Files that must be regular ones under their own names: a pipe in their place would hold up
// whoever opens it for ever, a device does what devices do, and what a link leads to is somebody
// else's.  Thread-safe; nothing here waits.
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace proctor {

// What lies there: "a folder", "a named pipe", "a symbolic link that leads nowhere", ...; empty:
// nothing does.
std::string what_lies_at(const fs::path& path);

// Fine: a regular file, or nothing.  kInvalid, with what lies there and what to do.
Status check_own_file(const fs::path& path);

// open(2) with `flags` and mode kPrivateFile of one that is a regular file or, with O_CREAT, is
// made.  Fails as check_own_file(), or with errno_error of open.
Result<UniqueFd> open_own_file(const fs::path& path, int flags);

}  // namespace proctor
