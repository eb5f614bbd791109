#include "worker/workspace/tree_mark.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace proctor {
namespace {

Error gone(const fs::path& what, std::string_view how) {
  return Error{Errc::kUnavailable, "the tree below the workspace was changed while it was used: " +
                                       what.string() + " " + std::string(how)};
}

Result<struct stat> look_at(const fs::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return gone(path, "is not there");
  return st;
}

bool later(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? b.tv_sec < a.tv_sec : b.tv_nsec < a.tv_nsec;
}

// The finest clock: file systems stamp with a coarser one, or with this where somebody looked at
// the last stamp, so that no stamp is of its future.
timespec file_time() {
  timespec out{};
  ::clock_gettime(CLOCK_REALTIME, &out);
  return out;
}

}  // namespace

Result<TreeMark> TreeMark::of(const fs::path& tree) {
  TreeMark out;
  out.tree_ = tree;
  out.at_ = file_time();
  PROCTOR_TRY(const struct stat folder, look_at(tree / "work"));
  PROCTOR_TRY(const struct stat sentinel, look_at(tree / kTreeSentinel));
  out.device_ = folder.st_dev;
  out.folder_ = folder.st_ino;
  out.sentinel_ = sentinel.st_ino;
  return out;
}

Status TreeMark::check(Look look) const {
  const fs::path work = tree_ / "work";
  PROCTOR_TRY(const struct stat folder, look_at(work));
  PROCTOR_TRY(const struct stat sentinel, look_at(tree_ / kTreeSentinel));
  if (folder.st_dev != device_ || folder.st_ino != folder_ || sentinel.st_ino != sentinel_)
    return gone(tree_, "is another one");
  if (look == Look::kSentinel) return ok_status();
  // A folder's time of change says that an entry came or went; one of the future, which a clock
  // that was set back leaves, says nothing.
  const timespec now = file_time();
  std::vector<fs::path> left = {work};
  while (!left.empty()) {
    const fs::path dir = std::move(left.back());
    left.pop_back();
    PROCTOR_TRY(const struct stat st, look_at(dir));
    if (later(st.st_ctim, at_) && !later(st.st_ctim, now)) return gone(dir, "lost an entry");
    std::error_code ec;
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
      if (it->is_directory(ec) && !it->is_symlink(ec)) left.push_back(it->path());
    if (ec) return gone(dir, "cannot be listed");
  }
  return ok_status();
}

}  // namespace proctor
