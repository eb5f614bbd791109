#include "common/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace proctor {
namespace {

Result<UniqueFd> lock(const fs::path& path, int operation) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (!fd.valid()) return errno_error("lock " + path.string(), errno);
  while (::flock(fd.get(), operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Error{Errc::kConflict, "lock " + path.string() + ": held"};
    return errno_error("lock " + path.string(), errno);
  }
  return fd;
}

}  // namespace

Result<FileLock> FileLock::acquire(const fs::path& path) {
  PROCTOR_TRY(UniqueFd fd, lock(path, LOCK_EX));
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::share(const fs::path& path) {
  PROCTOR_TRY(UniqueFd fd, lock(path, LOCK_SH));
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::try_acquire(const fs::path& path) {
  PROCTOR_TRY(UniqueFd fd, lock(path, LOCK_EX | LOCK_NB));
  return FileLock(std::move(fd));
}

}  // namespace proctor
