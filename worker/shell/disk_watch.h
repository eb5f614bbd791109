#pragma once
// DiskWatch: pulls a stop when a folder holds more than it may.  The sum of file sizes, looked at
// once a second while it lives.  Source: CVDP 5.3.
#include <cstdint>
#include <stop_token>
#include <thread>

#include "common/base/files.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// Sizes of the regular files below a folder; links are not followed, what vanishes does not count.
std::uint64_t folder_bytes(const fs::path& folder);

// It ended as in every kind of sandbox whose own watch says so, whatever our stop made of it.
void stopped_at_disk_limit(ExecOutcome& outcome);

class DiskWatch {
 public:
  // `stop` outlives this.
  DiskWatch(fs::path folder, std::uint64_t bytes_max, std::stop_source& stop);
  // Ends the watching; was it too much, now or at any look?
  bool end();

 private:
  fs::path folder_;
  std::uint64_t bytes_max_;
  bool passed_ = false;  // the thread's, until it is joined
  std::jthread thread_;
};

}  // namespace proctor
