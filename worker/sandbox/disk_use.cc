#include "worker/sandbox/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/unique_fd.h"

namespace proctor {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME;
constexpr std::uint64_t kBlock = 512;  // of st_blocks

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

class Count {
 public:
  explicit Count(const DiskLimit& limit) : limit_(limit) {
    for (const DiskLimit::Place& place : limit.places) {
      bytes_most_ += place.bytes_before;
      files_most_ += place.files_before;
    }
    bytes_most_ += limit.bytes;
    files_most_ += limit.files;
  }

  bool passed() const {
    return too_deep_ || (0 < limit_.bytes && bytes_most_ < bytes_) ||
           (0 < limit_.files && files_most_ < files_);
  }

  DiskUse so_far() const { return {bytes_, files_}; }

  void add_place(const fs::path& dir) {
    UniqueFd fd(::open(dir.c_str(), kFolderFlags));
    struct stat st {};
    if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return;
    device_ = st.st_dev;
    add_folder(std::move(fd), 0);
  }

  void add_nameless(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    const Folder fds(::opendir(folder.c_str()), &::closedir);
    if (!fds) return;
    while (const dirent* entry = ::readdir(fds.get())) {
      if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
      const std::string path = folder + "/" + static_cast<const char*>(entry->d_name);
      struct stat st {};
      if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || 0 < st.st_nlink) continue;
      struct statfs system {};
      // What lives in memory counts as memory.
      if (::statfs(path.c_str(), &system) != 0 || system.f_type == TMPFS_MAGIC) continue;
      if (seen_.emplace(st.st_dev, st.st_ino).second) add(st);
    }
  }

 private:
  void add(const struct stat& st) {
    ++files_;
    bytes_ += static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  }

  void add_folder(UniqueFd fd, int depth) {
    const int at = fd.get();
    const Folder folder(::fdopendir(at), &::closedir);
    if (!folder) return;
    (void)fd.release();  // the stream's now
    while (!passed()) {
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) return;
      const char* name = static_cast<const char*>(entry->d_name);
      struct stat st {};
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 ||
          ::fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      if (S_ISREG(st.st_mode) && 1 < st.st_nlink && !seen_.emplace(st.st_dev, st.st_ino).second)
        continue;
      add(st);
      if (!S_ISDIR(st.st_mode) || st.st_dev != device_) continue;
      if (kDiskDepthMax <= depth) {
        too_deep_ = true;
        return;
      }
      // Its owner may have closed it to us; it is counted by itself then.
      if (UniqueFd below(::openat(at, name, kFolderFlags)); below.valid())
        add_folder(std::move(below), depth + 1);
    }
  }

  const DiskLimit& limit_;
  std::uint64_t bytes_most_ = 0, files_most_ = 0, bytes_ = 0, files_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_;
  dev_t device_ = 0;
  bool too_deep_ = false;
};

}  // namespace

DiskUse disk_use_of(const fs::path& dir) {
  const DiskLimit none;
  Count count(none);
  count.add_place(dir);
  return count.so_far();
}

bool disk_limit_passed(const DiskLimit& limit, const std::vector<pid_t>& inside) {
  Count count(limit);
  for (const DiskLimit::Place& place : limit.places) count.add_place(place.dir);
  for (const pid_t pid : inside) {
    if (count.passed()) return true;
    count.add_nameless(pid);
  }
  return count.passed();
}

}  // namespace proctor
