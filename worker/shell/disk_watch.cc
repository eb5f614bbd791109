#include "worker/shell/disk_watch.h"

#include <condition_variable>
#include <mutex>

#include "common/base/folder_use.h"

namespace proctor {

std::uint64_t folder_bytes(const fs::path& folder) {
  FolderCount count({}, FolderMeasure::kSizes);
  count.add(folder);
  return count.so_far().bytes;
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
