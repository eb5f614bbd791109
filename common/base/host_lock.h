#pragma once
// HostLock: one process at a time, by flock on a file that stays and holds the holder's pid.  The
// kernel lets go when the process ends, however it ends.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>

#include "common/base/files.h"
#include "common/base/own_file.h"
#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace proctor {

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

}  // namespace proctor
