#pragma once
// Overlays by fuse-overlayfs: one server process each, which ends when its overlay is unmounted and
// dies with us.  Needs /dev/fuse, and root or mounts of one's own (common/base/own_mounts.h).
// Blocking.  Thread-safe.  Source: fuse(4), fuse-overlayfs(1), capabilities(7) ("ambient").
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "worker/workspace/overlay.h"

namespace proctor {

class FuseServers {
 public:
  FuseServers();
  FuseServers(const FuseServers&) = delete;
  FuseServers& operator=(const FuseServers&) = delete;
  ~FuseServers();  // of servers that are still there, none survives

  // Returns once the overlay is mounted.  `log`: what the server says.  After an error the mount
  // may be there: unmount() it.
  Result<Child> mount(const OverlayDirs& dirs, const fs::path& log);

 private:
  using Job = std::function<void()>;
  void run();
  // All are started by one thread: PR_SET_PDEATHSIG means the thread that forks, so it lives as
  // long as whoever wants them; and it alone can hand on the right to mount.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::queue<Job> jobs_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace proctor
