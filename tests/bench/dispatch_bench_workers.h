#pragma once
// Simulated workers for benches of the coordinator: several of them in ONE other process, on the
// real port and codec.  They finish every run the moment it is assigned, keep what is not
// acknowledged, Sync when told to, and Leave when drained.  That is the whole protocol but for
// contracts (never asked for) and archives (there are none).
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/zmq_port.h"

namespace proctor::bench {

struct FleetOptions {
  std::uint32_t workers = 4;
  std::uint32_t slots = 256;                // of each
  std::vector<wire::KeyPair> keys;          // one per worker, named worker-0 ...; empty: no CURVE
  std::string server_public_z85;            // with keys
  bool interrupt_parent_at_assign = false;  // SIGINT to who started it: one drain, after the first
};

// What the fleet saw, on the machine-wide monotonic clock.
struct FleetReport {
  std::int64_t first_assign_ns = 0;
  std::int64_t last_ack_ns = 0;
  std::uint64_t assigned = 0;  // runs, repeated ones too
  std::uint64_t acked = 0;
  std::uint64_t frames = 0;  // Assign frames: runs travel in batches
};

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

 private:
  Fleet(pid_t child, int to_child, int from_child)
      : child_(child), to_child_(to_child), from_child_(from_child) {}
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

std::int64_t mono_ns();

}  // namespace proctor::bench
