#include "common/base/held_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace proctor {
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
