#include "worker/sandbox/disk_use.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cctype>
#include <memory>
#include <string>

#include "common/base/folder_use.h"

namespace proctor {
namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

void add_nameless(FolderCount& count, pid_t pid) {
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

}  // namespace

bool disk_limit_passed(const DiskLimit& limit, const std::vector<pid_t>& inside) {
  FolderCount count(most_of(limit), limit.measure);
  for (const DiskLimit::Place& place : limit.places)
    count.add_over(place.dir, place.below, {place.bytes_below, place.files_below});
  for (const pid_t pid : inside) {
    if (count.passed()) return true;
    add_nameless(count, pid);
  }
  return count.passed();
}

}  // namespace proctor
