#include "worker/shell/disk_watch.h"

#include <signal.h>

#include "common/base/folder_tree.h"
#include "common/base/system_clock.h"

namespace proctor {

std::uint64_t folder_bytes(const fs::path& folder) {
  FolderCount count({}, FolderMeasure::kSizes);
  count.add(folder);
  return count.so_far().bytes;
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
