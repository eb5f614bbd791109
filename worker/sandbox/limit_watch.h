#pragma once
// The limits that no kernel keeps for us (CPU seconds of all processes together, the disk, without
// control groups their memory, with any what waits in some of their sockets): looked at while a
// command runs, seldom enough that looking costs a tenth of the time at most. One thread; what it
// asks is given to it.
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/socket_use.h"

namespace proctor {

class LimitWatch {
 public:
  enum class Passed { kCpu, kDisk, kMemory };
  struct Host {
    // CPU time of all that ran inside; none: not known.
    std::function<std::optional<std::chrono::milliseconds>()> cpu_time;
    // Its processes, by the host's numbers.
    std::function<std::vector<pid_t>()> inside;
    // Of all of them together; absent where the kernel keeps this limit.
    std::function<std::uint64_t()> memory{};
    SocketUse::Counts sockets = SocketUse::Counts::kUncharged;
  };
  // `spec` outlives it.
  LimitWatch(const SandboxSpec& spec, Host host);

  enum class Memory { kKernel, kWatched };
  static bool needed(const SandboxSpec& spec, Memory memory = Memory::kKernel) {
    return 0 < spec.cpu.count() || (memory == Memory::kWatched && 0 < spec.memory_bytes) ||
           sockets_watched(spec) ||
           (!spec.disk.places.empty() && (0 < spec.disk.bytes || 0 < spec.disk.files));
  }
  // Ask as often as you like; the first time begins the first pause.
  std::optional<Passed> look(std::chrono::steady_clock::time_point now);

 private:
  // In the host's network the sockets of all are mixed.
  static bool sockets_watched(const SandboxSpec& spec) {
    return 0 < spec.memory_bytes && !spec.network;
  }
  const SandboxSpec* spec_;
  Host host_;
  std::optional<SocketUse> sockets_;
  std::optional<std::chrono::steady_clock::time_point> next_;
};

}  // namespace proctor
