#include "common/base/file_lock.h"

#include <sys/stat.h>
#include <algorithm>
#include <string_view>

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

namespace {
// No link, whoever made it.
UniqueFd open_held(const fs::path& dir) {
  return UniqueFd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// "<prefix>4711-.x7Rb2Q": what else begins with the prefix is somebody's who never heard of us.
bool is_made_by_us(std::string_view name, std::string_view prefix) {
  constexpr std::size_t kRandom = 6;  // TempDir's
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const std::size_t number = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(number);
  return 0 < number && name.starts_with("-.") && name.size() == 2 + kRandom;
}
}  // namespace

Result<HeldFolder> HeldFolder::make(const std::string& prefix, const fs::path& parent) {
  constexpr int kTries = 100;
  const std::string name = prefix + std::to_string(::getpid()) + "-";
  for (int i = 0; i < kTries; ++i) {
    PROCTOR_TRY(TempDir dir, TempDir::create(name, parent));
    UniqueFd lock = open_held(dir.path());
    // Who sweeps may have come between, and takes away what it could lock.  A stranger could not:
    // the folder is closed to others.
    if (!lock.valid() || ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0) continue;
    struct stat held = {}, named = {};
    if (::fstat(lock.get(), &held) == 0 && ::lstat(dir.path().c_str(), &named) == 0 &&
        held.st_ino == named.st_ino)
      return HeldFolder(std::move(lock), std::move(dir));
  }
  return Error{Errc::kUnavailable, "a folder " + prefix + "... of our own: others take it away"};
}

void remove_left_folders(const std::string& prefix, const fs::path& parent) {
  std::error_code ec;
  const fs::path place = parent.empty() ? fs::temp_directory_path(ec) : parent;
  for (fs::directory_iterator it(place, ec), end; !ec && it != end; it.increment(ec)) {
    if (!is_made_by_us(it->path().filename().string(), prefix)) continue;
    const UniqueFd fd = open_held(it->path());
    struct stat st {};
    if (fd.valid() && ::fstat(fd.get(), &st) == 0 && st.st_uid == ::geteuid() &&
        ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
      (void)remove_tree(it->path()).ok();
  }
}
}  // namespace proctor
