#include "common/base/folder_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace proctor {
namespace {
constexpr int kWalkFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME;
constexpr std::uint64_t kBlock = 512;  // of st_blocks

// Of the process's own files only root may ask for no access time.
UniqueFd open_folder(int at, const char* name) {
  UniqueFd fd(::openat(at, name, kWalkFlags));
  if (!fd.valid() && errno == EPERM) fd.reset(::openat(at, name, kWalkFlags & ~O_NOATIME));
  return fd;
}

bool hides_all_below(int dir) {
  char value = 0;
  return ::fgetxattr(dir, "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
}
}  // namespace

FolderUse folder_use(const fs::path& dir) {
  FolderCount count;
  count.add(dir);
  return count.so_far();
}

void FolderCount::count(const struct stat& st) {
  ++so_far_.files;
  if (measure_ == FolderMeasure::kBlocks)
    so_far_.bytes += static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  else if (S_ISREG(st.st_mode))
    so_far_.bytes += static_cast<std::uint64_t>(st.st_size);
}

void FolderCount::add(const fs::path& dir) {
  add_over(dir, {}, {});
}

// The layer below is added last: until then what was counted is the least that it can be.
void FolderCount::add_over(const fs::path& upper, const fs::path& below, FolderUse there) {
  UniqueFd fd = open_folder(AT_FDCWD, upper.c_str());
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return;
  device_ = st.st_dev;
  hidden_ = {};
  folder(std::move(fd), below.empty() ? UniqueFd() : open_folder(AT_FDCWD, below.c_str()), 0);
  so_far_.bytes += there.bytes - std::min(there.bytes, hidden_.bytes);
  so_far_.files += there.files - std::min(there.files, hidden_.files);
}

void FolderCount::add_nameless(const struct stat& st) {
  if (seen_.emplace(st.st_dev, st.st_ino).second) count(st);
}

void FolderCount::hide(const UniqueFd& below, const char* name, const struct stat& upper) {
  struct stat st {};
  if (::fstatat(below.get(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) return;
  ++hidden_.files;
  hidden_.bytes += static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  if (!S_ISDIR(st.st_mode) || S_ISDIR(upper.st_mode)) return;
  FolderCount inside({}, FolderMeasure::kBlocks, stop_);
  inside.device_ = st.st_dev;
  inside.folder(open_folder(below.get(), name), UniqueFd(), 0);
  hidden_.files += inside.so_far_.files;
  hidden_.bytes += inside.so_far_.bytes;
}

void FolderCount::folder(UniqueFd fd, UniqueFd below, int depth) {
  const int at = fd.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(at), &::closedir);
  if (!stream) return;
  (void)fd.release();  // the stream's now
  while (!passed() && !stop_.stop_requested()) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) return;
    const char* name = static_cast<const char*>(entry->d_name);
    struct stat st {};
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 ||
        ::fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (below.valid()) hide(below, name, st);
    if (S_ISREG(st.st_mode) && 1 < st.st_nlink && !seen_.emplace(st.st_dev, st.st_ino).second)
      continue;
    count(st);
    if (!S_ISDIR(st.st_mode) || st.st_dev != device_) continue;
    if (kFolderDepthMax <= depth) {
      too_deep_ = true;
      return;
    }
    // Its owner may have closed it to us; it is counted by itself then.
    UniqueFd inner = open_folder(at, name);
    if (!inner.valid()) continue;
    UniqueFd under;
    if (below.valid()) under = open_folder(below.get(), name);
    if (under.valid() && hides_all_below(inner.get())) {
      FolderCount inside({}, FolderMeasure::kBlocks, stop_);
      struct stat of_layer {};
      if (::fstat(under.get(), &of_layer) == 0) inside.device_ = of_layer.st_dev;
      inside.folder(std::move(under), UniqueFd(), 0);
      hidden_.files += inside.so_far_.files;
      hidden_.bytes += inside.so_far_.bytes;
      under = UniqueFd();
    }
    folder(std::move(inner), std::move(under), depth + 1);
  }
}

// Removal of files that a stranger may have left, of any depth: with one open folder and no
// recursion; no link is followed and no other file system entered.

namespace {
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct Level {
  std::string name;  // in its parent
  dev_t device;
  ino_t inode;
  std::vector<std::string> folders;  // still to be removed
};

class Remover {
 public:
  // null: there is room for all.
  explicit Remover(RemovalRoom* room) : room_(room) {}

  // All that is in the folder `top`, until there is no more room for it.
  int clear(const fs::path& top) {
    if (const int e = enter(AT_FDCWD, top.string()); e != 0) return e;
    while (!levels_.empty() && !stopped_) {
      if (!levels_.back().folders.empty()) {
        std::string next = std::move(levels_.back().folders.back());
        levels_.back().folders.pop_back();
        if (const int e = enter(at_.get(), next); e != 0) keep(e);
      } else {
        leave();
      }
    }
    return error_;
  }
  bool stopped() const { return stopped_; }

 private:
  // Is there room for this one too?  A file of several names is freed by its last one, and counts
  // by each.
  bool take(int dir, const char* name) {
    if (room_ == nullptr) return true;
    struct stat st {};
    const std::uint64_t bytes = ::fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0
                                    ? static_cast<std::uint64_t>(st.st_blocks) * 512
                                    : 0;
    stopped_ = stopped_ || room_->entries == 0 || room_->bytes < bytes;
    if (stopped_) return false;
    --room_->entries;
    room_->bytes -= bytes;
    return true;
  }

  void keep(int error) {
    if (error_ == 0) error_ = error;
  }

  // A folder its owner has closed is opened: what is in it must go.
  static UniqueFd open_folder(int dir, const std::string& name) {
    UniqueFd fd(::openat(dir, name.c_str(), kFolderFlags));
    if (!fd.valid() && errno == EACCES && ::fchmodat(dir, name.c_str(), 0700, 0) == 0)
      fd.reset(::openat(dir, name.c_str(), kFolderFlags));
    return fd;
  }

  int enter(int dir, const std::string& name) {
    UniqueFd fd = open_folder(dir, name);
    struct stat st {};
    if (!fd.valid()) return errno == ENOENT ? 0 : errno;
    if (::fstat(fd.get(), &st) != 0) return errno;
    if (!levels_.empty() && st.st_dev != levels_.back().device) return EBUSY;  // a mount
    Level level{name, st.st_dev, st.st_ino, {}};
    if (const int e = empty_of_files(fd.get(), st.st_mode, level.folders); e != 0) keep(e);
    levels_.push_back(std::move(level));
    at_ = std::move(fd);
    return 0;
  }

  int empty_of_files(int dir, mode_t mode, std::vector<std::string>& folders) {
    if ((mode & 0300U) != 0300U) ::fchmod(dir, 0700);
    const int copy = ::openat(dir, ".", kFolderFlags);
    if (copy < 0) return errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), &::closedir);
    if (!stream) {
      const int e = errno;
      ::close(copy);
      return e;
    }
    int error = 0;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
      const char* name = static_cast<const char*>(entry->d_name);
      if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) {
        if (!take(dir, name)) return error;
        if (entry->d_type == DT_DIR) {
          folders.emplace_back(name);
        } else if (::unlinkat(dir, name, 0) != 0 && errno != ENOENT) {
          if (errno == EISDIR) {
            folders.emplace_back(name);
          } else {
            error = errno;
          }
        }
      }
      errno = 0;
    }
    return error != 0 ? error : errno;
  }

  // Up to the parent, which must be the one we came from, and the emptied folder away.
  void leave() {
    const Level level = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) return;
    UniqueFd up(::openat(at_.get(), "..", kFolderFlags));
    struct stat st {};
    const Level& parent = levels_.back();
    if (!up.valid() || ::fstat(up.get(), &st) != 0 || st.st_dev != parent.device ||
        st.st_ino != parent.inode) {
      keep(ESTALE);  // somebody moves folders under us
      levels_.clear();
      return;
    }
    at_ = std::move(up);
    if (::unlinkat(at_.get(), level.name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      keep(errno);
  }

  RemovalRoom* const room_;
  bool stopped_ = false;
  std::vector<Level> levels_;
  UniqueFd at_;
  int error_ = 0;
};

// Is all of it gone?
Result<bool> remove(const fs::path& dir, RemovalRoom* room) {
  if (::unlink(dir.c_str()) == 0 || errno == ENOENT) return true;
  // A folder: EISDIR by Linux, EPERM by POSIX.
  if (errno != EISDIR && errno != EPERM) return errno_error("remove " + dir.string(), errno);
  Remover remover(room);
  const int e = remover.clear(dir);
  if (remover.stopped()) return false;  // whoever removes the rest meets its errors
  if (e != 0) return errno_error("remove " + dir.string(), e);
  if (::rmdir(dir.c_str()) == 0 || errno == ENOENT) return true;
  return errno_error("remove " + dir.string(), errno);
}
}  // namespace

Status remove_tree(const fs::path& dir) {
  PROCTOR_CHECK_OK(remove(dir, nullptr));
  return ok_status();
}

Result<bool> remove_tree_within(const fs::path& dir, RemovalRoom room) {
  return remove(dir, &room);
}
}  // namespace proctor
