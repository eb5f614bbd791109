#include "coordinator/shell/placed_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace proctor {
namespace {

bool are_one(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Result<PlacedFolder> PlacedFolder::open(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  return PlacedFolder(path, std::move(fd));
}

bool PlacedFolder::is_in_place() const {
  struct stat held {
  }, there{};
  return ::fstat(fd_.get(), &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         are_one(held, there);
}

fs::path PlacedFolder::now_at() const {
  std::error_code ec;
  fs::path at = fs::read_symlink("/proc/self/fd/" + std::to_string(fd_.get()), ec);
  struct stat held {
  }, there{};
  // The kernel writes " (deleted)" behind one that was removed, which nothing is named.
  if (ec || ::fstat(fd_.get(), &held) != 0 || ::stat(at.c_str(), &there) != 0 ||
      !are_one(held, there))
    return {};
  return at;
}

}  // namespace proctor
