#include "worker/workspace/tree_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/owned.h"

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

namespace {
constexpr std::uint64_t kEntriesMost = 200'000;
constexpr int kDepthMost = 200;
constexpr std::size_t kHashedAtOnce = std::size_t{1} << 16;

class Look {
 public:
  Status folder(UniqueFd fd, int depth) {
    if (kDepthMost < depth) return Error{Errc::kExhausted, "a tree that is too deep to look at"};
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(fd.get()), ::closedir);
    if (!open) return errno_error("look at a folder", errno);
    fd.release();  // closedir() closes it
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(open.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (kEntriesMost < ++entries_)
        return Error{Errc::kExhausted, "a tree of too many files to look at"};
      names.push_back(name);
    }
    std::ranges::sort(names);
    for (const std::string& name : names) PROCTOR_CHECK_OK(one(::dirfd(open.get()), name, depth));
    add("/");
    return ok_status();
  }

  TreeState state() {
    flush();
    return {sha256(chain_).hex(), files_, bytes_};
  }

 private:
  Status one(int dir, const std::string& name, int depth) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return ok_status();  // gone
    ++files_;
    if (S_ISREG(st.st_mode)) bytes_ += static_cast<std::uint64_t>(st.st_size);
    add(name);
    std::string facts(1, '\0');
    for (const std::uint64_t fact :
         {static_cast<std::uint64_t>(st.st_mode), static_cast<std::uint64_t>(st.st_size),
          static_cast<std::uint64_t>(st.st_rdev), static_cast<std::uint64_t>(st.st_mtim.tv_sec),
          static_cast<std::uint64_t>(st.st_mtim.tv_nsec)})
      facts += std::to_string(fact) + ",";
    add(facts);
    if (!S_ISDIR(st.st_mode)) return ok_status();
    UniqueFd below(::openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (below.valid()) return folder(std::move(below), depth + 1);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return ok_status();  // swapped
    return errno_error("look at a folder", errno);
  }

  void add(std::string_view text) {
    pending_ += text;
    if (kHashedAtOnce < pending_.size()) flush();
  }
  // A chain, so that nothing grows with the tree.
  void flush() {
    chain_ += pending_;
    chain_ = sha256(chain_).hex();
    pending_.clear();
  }

  std::uint64_t entries_ = 0, files_ = 0, bytes_ = 0;
  std::string pending_, chain_;
};
}  // namespace

Result<TreeState> state_of_tree(const fs::path& dir) {
  UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno_error("look at " + dir.string(), errno);
  Look look;
  PROCTOR_CHECK_OK(look.folder(std::move(fd), 0));
  return look.state();
}

bool changed_since(const fs::path& path, const timespec& moment) {
  struct stat is {};
  return ::lstat(path.c_str(), &is) != 0 || later(is.st_ctim, moment);
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
