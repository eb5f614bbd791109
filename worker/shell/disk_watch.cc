#include "worker/shell/disk_watch.h"

#include <condition_variable>
#include <mutex>
#include <system_error>

namespace proctor {

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t sum = 0;
  std::error_code ec;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(folder, fs::directory_options::skip_permission_denied, ec), end; !ec && it != end;
       it.increment(ec)) {
    std::error_code gone;
    if (!fs::is_regular_file(it->symlink_status(gone))) continue;
    const std::uintmax_t size = it->file_size(gone);
    if (!gone) sum += size;
  }
  return sum;
}

DiskWatch::DiskWatch(fs::path folder, std::uint64_t bytes_max, std::stop_source& stop)
    : folder_(std::move(folder)),
      bytes_max_(bytes_max),
      thread_([this, &stop](const std::stop_token& ended) {
        std::mutex nobody_elses;
        std::condition_variable_any woken;
        std::unique_lock lock(nobody_elses);
        while (!ended.stop_requested()) {
          if (bytes_max_ < folder_bytes(folder_)) {
            passed_ = true;
            stop.request_stop();
            return;
          }
          woken.wait_for(lock, ended, std::chrono::seconds(1), [] { return false; });
        }
      }) {}

bool DiskWatch::end() {
  thread_.request_stop();
  thread_.join();
  return passed_ || bytes_max_ < folder_bytes(folder_);
}

}  // namespace proctor
