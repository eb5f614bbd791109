#include "worker/shell/host_disk.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "worker/sandbox/init/full_disk.h"

namespace proctor {

std::string too_full_to_begin(const fs::path& folder) {
  constexpr std::uint64_t kRoomBytes = 16 * kFullBytes, kRoomFiles = 16 * kFullFiles;
  struct statvfs st {};
  if (::statvfs(folder.c_str(), &st) != 0) return {};  // whoever begins there is told why
  const std::uint64_t bytes = std::uint64_t{st.f_bavail} * st.f_frsize;
  const bool has_files = st.f_files == 0 || kRoomFiles <= st.f_favail;
  if (kRoomBytes <= bytes && has_files) return {};
  return fmt::format("the disk of {} has {} MiB{} left: nothing is begun here until there is room",
                     folder.string(), bytes >> 20,
                     has_files ? std::string() : fmt::format(" and {} inodes", st.f_favail));
}

void HostDisk::begin() {
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 50;  // where nobody can say
  struct statvfs st {};
  go_on(::statvfs(at_.c_str(), &st) == 0 ? std::uint64_t{st.f_bavail} * st.f_frsize : kMuch);
}

void HostDisk::go_on(std::uint64_t free_at_begin) {
  free_at_begin_ = free_at_begin;
  seen_full_ = false;
}

void HostDisk::look() {
  struct statvfs st {};
  if (::statvfs(at_.c_str(), &st) == 0 && is_full(st)) seen_full_ = true;
}

std::optional<Error> HostDisk::end(const std::function<std::uint64_t()>& own) {
  look();
  if (!seen_full_ || free_at_begin_ / 2 < own()) return std::nullopt;
  return Error{Errc::kUnavailable, "the disk of this host was full while it ran"};
}

}  // namespace proctor
