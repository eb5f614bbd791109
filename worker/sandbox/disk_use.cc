#include "worker/sandbox/disk_use.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "common/base/folder_tree.h"

namespace proctor {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

void add_nameless(FolderCount& count, pid_t pid, const std::stop_token& stop) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const Folder fds(::opendir(folder.c_str()), &::closedir);
  if (!fds) return;
  while (const dirent* entry = ::readdir(fds.get())) {
    if (stop.stop_requested()) return;
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const std::string path = folder + "/" + static_cast<const char*>(entry->d_name);
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || 0 < st.st_nlink) continue;
    struct statfs system {};
    // What lives in memory counts as memory.
    if (::statfs(path.c_str(), &system) != 0 || system.f_type == TMPFS_MAGIC) continue;
    count.add_nameless(st);
  }
}

// What may be there in the end, with what was there before.
FolderUse most_of(const DiskLimit& limit) {
  FolderUse out{limit.bytes, limit.files};
  for (const DiskLimit::Place& place : limit.places) {
    if (0 < limit.bytes) out.bytes += place.bytes_before;
    if (0 < limit.files) out.files += place.files_before;
  }
  return out;
}

// Stopped: what it had found by then.
FolderCount count_of(const DiskLimit& limit, const std::vector<pid_t>& inside,
                     const std::stop_token& stop) {
  FolderCount count(most_of(limit), limit.measure, stop);
  for (const DiskLimit::Place& place : limit.places)
    count.add_over(place.dir, place.below, {place.bytes_below, place.files_below});
  for (const pid_t pid : inside) {
    if (count.passed() || stop.stop_requested()) break;
    add_nameless(count, pid, stop);
  }
  return count;
}

}  // namespace

bool DiskLook::passed(const std::function<std::vector<pid_t>()>& inside,
                      const std::stop_token& stop) {
  used_ = used_of_systems();
  const auto look_at = where_ == Where::kNamed ? std::vector<pid_t>{} : inside();
  const FolderCount count = count_of(*limit_, look_at, stop);
  const FolderUse most = most_of(*limit_), have = count.so_far();
  left_ = {most.bytes - std::min(most.bytes, have.bytes),
           most.files - std::min(most.files, have.files)};
  return count.passed();
}

bool DiskLook::may_have_passed() const {
  const std::vector<FolderUse> now = used_of_systems();
  for (std::size_t i = 0; i < now.size() && i < used_.size(); ++i)
    if ((0 < limit_->bytes && used_[i].bytes + left_.bytes < now[i].bytes) ||
        (0 < limit_->files && used_[i].files + left_.files < now[i].files))
      return true;
  return false;
}

std::vector<FolderUse> DiskLook::used_of_systems() const {
  std::vector<FolderUse> out;
  for (const DiskLimit::Place& place : limit_->places) {
    struct statvfs s {};
    FolderUse& use = out.emplace_back();
    if (::statvfs(place.dir.c_str(), &s) == 0)
      use = {(s.f_blocks - s.f_bfree) * s.f_frsize, s.f_files - s.f_ffree};
  }
  return out;
}

}  // namespace proctor
