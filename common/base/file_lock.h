#pragma once
// Files that must be regular ones, and locks on files that end with the process that holds them.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
// Files that must be regular ones under their own names: a pipe in their place would hold up
// whoever opens it for ever, a device does what devices do, and what a link leads to is somebody
// else's.  The three functions are thread-safe and do not wait.

// The kind of file at `path`: "a folder", "a named pipe", "a symbolic link that leads nowhere",
// ...; empty: nothing is there.
std::string what_lies_at(const fs::path& path);

// Fine: a regular file, or nothing.  kInvalid, with what lies there and what to do.
Status check_own_file(const fs::path& path);

// open(2) with `flags` and mode kPrivateFile of one that is a regular file or, with O_CREAT, is
// made.  Fails as check_own_file(), or with errno_error of open.
Result<UniqueFd> open_own_file(const fs::path& path, int flags);

// An advisory lock between processes that dies with its holder: flock(2) on a file that stays.
// The kernel drops the lock when the last descriptor of the open file goes, so a killed worker
// leaves nothing to clean up.  Blocking; one FileLock belongs to one thread.
// Fails with errno_error of open or flock; kConflict from try_acquire when somebody holds it.
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

// HostLock: one process at a time, by flock on a file that stays and holds the holder's pid.  The
// kernel lets go when the process ends, however it ends.
class HostLock {
 public:
  // kConflict: somebody holds it.
  static Result<HostLock> take(const fs::path& path) {
    PROCTOR_TRY(UniqueFd fd, open_own_file(path, O_RDWR | O_CREAT));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return Error{Errc::kConflict, path.string() + " is held by another process"};
      return errno_error("lock " + path.string(), errno);
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
      return errno_error("write " + path.string(), errno);
    return HostLock(std::move(fd));
  }
  // The process that took it last; whether it still holds it only take() tells.
  static std::optional<pid_t> last_holder(const fs::path& path) {
    const Result<std::string> text = read_file(path, 32);
    pid_t pid = 0;
    if (!text.ok()) return std::nullopt;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), pid);
    return error == std::errc() && 1 < pid ? std::optional(pid) : std::nullopt;
  }

 private:
  explicit HostLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// HeldFolder: a temporary folder that is locked by who made it for as long as he lives, so that the
// next life can tell what a killed one left.  The kernel ends the lock with its holder: no process
// id would do, for those who share the place need not see each other's processes.
// Thread-safe (no state).  Fails with errno_error.
// Source: flock(2); systemd-tmpfiles(8) leaves locked folders alone too.
class HeldFolder {
 public:
  // "<prefix><our pid>-...", for us alone; the number is for people.  Empty `parent`: where
  // temporary folders are.
  static Result<HeldFolder> make(const std::string& prefix, const fs::path& parent = {});
  const fs::path& path() const { return dir_.path(); }

 private:
  HeldFolder(UniqueFd lock, TempDir dir) : lock_(std::move(lock)), dir_(std::move(dir)) {}
  UniqueFd lock_;  // until the folder is gone
  TempDir dir_;
};

// Removes this user's folders of that prefix that no process holds.
void remove_left_folders(const std::string& prefix, const fs::path& parent = {});
}  // namespace proctor
