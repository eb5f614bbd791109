#pragma once
// An advisory lock between processes that dies with its holder: flock(2) on a file that stays.
// The kernel drops the lock when the last descriptor of the open file goes, so a killed worker
// leaves nothing to clean up.  Blocking; one FileLock belongs to one thread.
// Fails with errno_error of open or flock; kConflict from try_acquire when somebody holds it.
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace proctor {

class FileLock {
 public:
  // Waits until it is ours.  The file is made if it is not there, with its folder (0700), and is
  // never removed: removing it would let two holders lock two different inodes of one name.
  static Result<FileLock> acquire(const fs::path& path);
  static Result<FileLock> try_acquire(const fs::path& path);
  // Together with others who share it; waits for one who does not.
  static Result<FileLock> share(const fs::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace proctor
