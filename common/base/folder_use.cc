#include "common/base/folder_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

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

}  // namespace proctor
