#include "common/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "common/base/own_file.h"

namespace proctor {
namespace {

Result<UniqueFd> lock(const fs::path& path, int operation) {
  PROCTOR_CHECK_OK(make_private_dirs(path.parent_path()));
  Result<UniqueFd> opened = open_own_file(path, O_RDWR | O_CREAT);
  if (!opened.ok()) return in_context("lock", std::move(opened).error());
  UniqueFd fd = std::move(opened).value();
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
