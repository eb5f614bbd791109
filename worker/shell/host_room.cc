#include "worker/shell/host_room.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <limits>
#include <utility>

#include "common/base/folder_tree.h"
#include "common/base/system_clock.h"
#include "worker/sandbox/init/lacks.h"

namespace proctor {
Pause until_stopped(std::stop_token stop) {
  constexpr std::chrono::milliseconds kMore{10'000};
  return [stop = std::move(stop), more = kMore](std::chrono::milliseconds time) mutable {
    if (!stop.stop_requested()) {
      pause_for(time, stop);
      return true;
    }
    if (more < time) return false;
    more -= time;
    std::this_thread::sleep_for(time);
    return true;
  };
}

bool is_waited_for(const Error& error, const Patience& patience, std::chrono::milliseconds waited) {
  if (error.code == Errc::kExhausted) return !patience.want_most || waited < *patience.want_most;
  return error.code == Errc::kUnavailable && waited < patience.other_most;
}

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

namespace {
// Seen at work: some forty of its own, and nineteen of each slot whose agent has no network.
constexpr std::uint64_t kOwn = 64, kOfSlot = 32;

// The soft limit becomes the hard one, which is returned: shells often leave it at 1,024, or below.
std::uint64_t raise_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<std::uint64_t>::max();
  const rlimit most{files.rlim_max, files.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &most) == 0 ? most.rlim_cur : files.rlim_cur;
}

// Sizes of the regular files below a folder; links are not followed, what vanishes does not count.
std::uint64_t folder_bytes(const fs::path& folder) {
  FolderCount count({}, FolderMeasure::kSizes);
  count.add(folder);
  return count.so_far().bytes;
}
}  // namespace

Status enough_descriptors(std::uint32_t slots) {
  const std::uint64_t most = raise_descriptors();
  if (kOwn + kOfSlot * slots <= most) return ok_status();
  const std::uint64_t fit = most < kOwn + kOfSlot ? 0 : (most - kOwn) / kOfSlot;
  return Error{Errc::kInvalid,
               fmt::format("--slots {}: they need {} open files, and this process may have {}: "
                           "ulimit -n {} first{}",
                           slots, kOwn + kOfSlot * slots, most, kOwn + kOfSlot * slots,
                           fit == 0 ? std::string() : fmt::format(", or --slots {}", fit))};
}

void stopped_at_disk_limit(ExecOutcome& outcome) {
  outcome.end = ExecOutcome::End::kDisk;
  outcome.exit_code = 128 + SIGKILL;
  outcome.signal = 0;
}

DiskWatch::DiskWatch(fs::path folder, std::uint64_t bytes_max, std::stop_source& stop)
    : folder_(std::move(folder)),
      bytes_max_(bytes_max),
      thread_([this, &stop](const std::stop_token& ended) {
        while (!ended.stop_requested()) {
          if (bytes_max_ < folder_bytes(folder_)) {
            passed_ = true;
            stop.request_stop();
            return;
          }
          pause_for(std::chrono::seconds(1), ended);
        }
      }) {}

bool DiskWatch::end() {
  thread_.request_stop();
  thread_.join();
  return passed_ || bytes_max_ < folder_bytes(folder_);
}
}  // namespace proctor
