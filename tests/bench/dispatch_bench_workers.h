#pragma once
// Simulated workers for benches of the coordinator: several of them in ONE other process, on the
// real port and codec.  They finish every run after a while (none, unless asked), keep what is not
// acknowledged, Sync when told to and when they are connected again, and Leave when drained.  That
// is the whole protocol but for contracts (never asked for) and archives (there are none).  Some
// may be as bad as can be: deaf, or flooding.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/zmq_port.h"

namespace proctor::bench {

struct FleetOptions {
  std::string name = "worker";  // worker-0, worker-1, ...
  std::uint32_t workers = 4;
  std::uint32_t slots = 256;                // of each
  std::vector<wire::KeyPair> keys;          // one per worker, named worker-0 ...; empty: no CURVE
  std::string server_public_z85;            // with keys
  bool interrupt_parent_at_assign = false;  // SIGINT to who started it: one drain, after the first
  std::uint32_t work_ms = 0;                // what a run takes
  std::uint32_t deaf = 0;      // that many of the workers say what they must and read nothing
  std::uint32_t flooding = 0;  // that many tell of progress as often as the socket takes it
};

// What the fleet saw, on the machine-wide monotonic clock.
struct FleetReport {
  std::int64_t first_assign_ns = 0;
  std::int64_t last_ack_ns = 0;
  std::int64_t last_sync_ns = 0;
  std::uint64_t assigned = 0;  // runs, repeated ones too
  std::uint64_t acked = 0;
  std::uint64_t frames = 0;   // Assign frames: runs travel in batches
  std::uint64_t holding = 0;  // runs that are under way
  std::uint64_t flooded = 0;  // Progress messages above what a worker says
  // Of a coordinator after the first: a run that none before it had assigned.
  std::int64_t first_new_in_later_life_ns = 0;
  std::uint64_t newest_run = 0;  // the highest number that was assigned
};

// In the process of the fleet: until all have left.  0: in good order.
int run_fleet(const FleetOptions& options, const std::string& endpoint, FleetReport& report);

// Forks, so: before the caller has threads.  The child waits until it is told where to connect.
class Fleet {
 public:
  static std::optional<Fleet> start(const FleetOptions& options);
  Fleet(Fleet&& other) noexcept;
  Fleet(const Fleet&) = delete;
  ~Fleet();  // ends the child if it is still there
  void connect(const std::string& endpoint);
  // How the child ended, if it did and not well.
  std::optional<std::string> died() const;
  // Waits for the end; nothing if it did not end well.
  std::optional<FleetReport> wait();
  // As it is now, roughly: the fleet goes on writing.
  FleetReport so_far() const;
  pid_t pid() const { return child_; }
  // SIGKILL, and gone when this returns.
  void kill();

 private:
  Fleet(pid_t child, int to_child, FleetReport* report)
      : child_(child), to_child_(to_child), report_(report) {}
  pid_t child_ = -1;
  int to_child_ = -1;
  FleetReport* report_ = nullptr;  // in memory that both share
};

}  // namespace proctor::bench
