#include "worker/shell/host_disk.h"

#include <sys/statvfs.h>

namespace proctor {
namespace {

struct Free {
  std::uint64_t bytes = UINT64_MAX, files = UINT64_MAX;
};
Free free_at(const fs::path& at) {
  struct statvfs st {};
  if (::statvfs(at.c_str(), &st) != 0) return {};
  // File systems that make inodes as they need them say 0 of 0.
  return {std::uint64_t{st.f_bavail} * st.f_frsize, st.f_files == 0 ? UINT64_MAX : st.f_favail};
}

}  // namespace

void HostDisk::begin() {
  free_at_begin_ = free_at(at_).bytes;
  seen_full_ = false;
}

void HostDisk::look() {
  const Free now = free_at(at_);
  if (now.bytes < kFullBytes || now.files < kFullFiles) seen_full_ = true;
}

std::optional<Error> HostDisk::end(const std::function<std::uint64_t()>& own) {
  look();
  if (!seen_full_ || free_at_begin_ / 2 < own()) return std::nullopt;
  return Error{Errc::kUnavailable, "the disk of this host was full while it ran"};
}

}  // namespace proctor
