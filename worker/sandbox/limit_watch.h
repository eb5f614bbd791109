#pragma once
// The limits that no kernel keeps for us (CPU seconds of all processes together, the disk, without
// control groups their memory, with any what waits in some of their sockets): looked at while a
// command runs, by threads of the watch's own.  A look can take as long as an agent makes it (a
// million files, half a million descriptors), so none waits for another, and whoever keeps the
// command's time waits for none.  Each costs a tenth of its thread's time at most, or half of it
// where the disk fills so fast that the limit may have been passed since.
// One thread owns it; what it asks is asked by others.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/base/owned.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/socket_use.h"

namespace proctor {

class LimitWatch {
 public:
  enum class Passed { kCpu, kDisk, kMemory };
  // Called by several threads at a time.
  struct Host {
    // CPU time of all that ran inside; none: not known.
    std::function<std::optional<std::chrono::milliseconds>()> cpu_time;
    // Its processes, by the host's numbers.
    std::function<std::vector<pid_t>()> inside;
    // Of all of them together, none where it cannot be known now; absent where the kernel keeps
    // this limit.
    std::function<std::optional<std::uint64_t>()> memory{};
    SocketUse::Counts sockets = SocketUse::Counts::kUncharged;
  };
  // `spec` outlives it.
  LimitWatch(const SandboxSpec& spec, Host host);
  LimitWatch(const LimitWatch&) = delete;
  LimitWatch& operator=(const LimitWatch&) = delete;
  ~LimitWatch();

  enum class Memory { kKernel, kWatched };
  static bool needed(const SandboxSpec& spec, Memory memory = Memory::kKernel) {
    return 0 < spec.cpu.count() || (memory == Memory::kWatched && 0 < spec.memory_bytes) ||
           sockets_watched(spec) || disk_watched(spec);
  }
  // What was found so far; waits for nothing.  Ask as often as you like: the first time begins a
  // first pause, after which the looking begins, for most commands end before there is anything to
  // be seen.
  std::optional<Passed> look(std::chrono::steady_clock::time_point now);
  // Readable when something was found; -1: nobody looks yet.
  int wakes() const { return found_fd_.get(); }
  // What stands still passes nothing, and costs nothing.
  void pause(bool on);

 private:
  struct Kind {
    Passed what;
    std::function<bool(const std::stop_token&)> passed;
    // May it have been passed since the last look began?
    std::function<bool()> hurry{};
  };
  static bool disk_watched(const SandboxSpec& spec) {
    return !spec.disk.places.empty() && (0 < spec.disk.bytes || 0 < spec.disk.files);
  }
  // In the host's network the sockets of all are mixed.
  static bool sockets_watched(const SandboxSpec& spec) {
    return 0 < spec.memory_bytes && !spec.network;
  }
  std::vector<Kind> kinds();
  void begin();
  void keep_looking(const Kind& kind, const std::stop_token& stop);
  // False: it is over.
  bool rest(const std::stop_token& stop, std::chrono::nanoseconds cost, const Kind& kind);

  const SandboxSpec* spec_;
  const Host host_;
  SocketUse sockets_;
  std::optional<std::chrono::steady_clock::time_point> first_;
  UniqueFd found_fd_;
  static constexpr int kNothing = -1;
  std::atomic<int> found_{kNothing};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace proctor
