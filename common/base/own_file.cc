#include "common/base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

namespace proctor {
namespace {

std::optional<mode_t> mode_of(const fs::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return std::nullopt;
  return st.st_mode;
}

std::string word(mode_t mode, const fs::path& path) {
  if (S_ISLNK(mode)) {
    std::error_code ec;
    const bool dangles = !fs::exists(path, ec);
    return dangles ? "a symbolic link that leads nowhere" : "a symbolic link";
  }
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error not_own(const fs::path& path, mode_t mode) {
  return {Errc::kInvalid, path.string() + " is " + word(mode, path) +
                              ", where a file must be: nothing of it is opened; put the file that "
                              "was there in its place, or remove it if there was none"};
}

}  // namespace

std::string what_lies_at(const fs::path& path) {
  const std::optional<mode_t> mode = mode_of(path);
  return mode ? word(*mode, path) : "";
}

Status check_own_file(const fs::path& path) {
  const std::optional<mode_t> mode = mode_of(path);
  if (!mode || S_ISREG(*mode)) return ok_status();
  return not_own(path, *mode);
}

Result<UniqueFd> open_own_file(const fs::path& path, int flags) {
  // Before it is opened, for opening a device is an act; and behind it, for names change.
  PROCTOR_CHECK_OK(check_own_file(path));
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                     static_cast<mode_t>(kPrivateFile)));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error(path.string(), errno);
  if (!S_ISREG(st.st_mode)) return not_own(path, st.st_mode);
  return fd;
}

}  // namespace proctor
