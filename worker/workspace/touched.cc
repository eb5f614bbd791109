#include "worker/workspace/touched.h"

#include <sys/stat.h>

#include <utility>

namespace proctor {

bool changed_since(const fs::path& path, const timespec& moment) {
  struct stat is {};
  if (::lstat(path.c_str(), &is) != 0) return true;
  return std::pair(moment.tv_sec, moment.tv_nsec) <
         std::pair(is.st_ctim.tv_sec, is.st_ctim.tv_nsec);
}

timespec stamp_now() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

bool touched_since(const fs::path& dir, const timespec& moment) {
  if (changed_since(dir, moment)) return true;
  std::error_code ec;
  fs::recursive_directory_iterator it(dir, ec);
  for (const fs::recursive_directory_iterator end; !ec && it != end; it.increment(ec)) {
    if (it.depth() == 0 && it->path().filename() == ".git") {
      it.disable_recursion_pending();
      continue;
    }
    if (changed_since(it->path(), moment)) return true;
  }
  return static_cast<bool>(ec);
}

}  // namespace proctor
