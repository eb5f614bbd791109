#pragma once
// A command under watch: its bounded output, and the limits that no kernel keeps for us.
#include <sys/types.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// A file that keeps the first `bytes_max` bytes of a stream and counts all of them.
// Used for the output of sandboxed commands; belongs to one thread.  Fails with errno_error's
// codes.
class BoundedFile {
 public:
  // Makes or truncates it.  An empty path counts only.
  static Result<BoundedFile> create(const fs::path& path, std::size_t bytes_max);
  // Keeps what still fits.  A full disk is an error once, then everything is dropped.
  void append(std::string_view bytes);
  std::uint64_t total() const { return total_; }
  const std::string& head() const { return head_; }  // the first kHead bytes, for error texts
  Status status() const;

 private:
  static constexpr std::size_t kHead = 1024;
  UniqueFd fd_;
  std::size_t left_ = 0;
  std::uint64_t total_ = 0;
  int error_ = 0;
  std::string head_;
};

// Two descriptors that become readable: when a command is cancelled, and when its hold changes.
class Wakes {
 public:
  // `hold` outlives it; null: there is none.
  Wakes(const std::stop_token& cancel, const Hold* hold);
  // False: errno says why not.
  bool valid() const { return cancelled_.valid() && held_.valid(); }
  int cancelled() const { return cancelled_.get(); }
  int held() const { return held_.get(); }
  // Until the hold changes again.
  void forget_held() const;

 private:
  struct Wake {
    int fd;
    void operator()() const;
  };
  UniqueFd cancelled_, held_;
  std::optional<std::stop_callback<Wake>> on_cancel_;
  std::optional<Hold::Watch> on_hold_;
};

// The part of a limit on memory that sockets may hold.  As much again is what control groups of
// version 1 let TCP and UDP have, whose pages they count beside all others.
inline constexpr std::uint64_t socket_share(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kPart = 8, kLeast = std::uint64_t{8} << 20;
  return memory_bytes / kPart < kLeast ? kLeast : memory_bytes / kPart;
}

// More of netlink's are too many: nothing that builds or tests has a hundred, and one look could
// not see them all.
inline constexpr std::size_t kSocketsMost = 4'096;

// SocketUse: memory in a sandbox's sockets that the kernel charges to no control group, of any
// version: what waits in queues of netlink, and datagrams that were begun and not sent (MSG_MORE).
// A monitor asks while the command runs.  Blocking, but for no longer than kSocketsMost sockets
// take.  One object, one thread; never fails: where nothing is to be seen, nothing is too much.
// Source: proc(5); net/netlink/af_netlink.c and net/ipv4/udp.c of Linux on their files there.
class SocketUse {
 public:
  // kAll: also what TCP holds and UDP has received, where the kernel charges that to nobody.
  enum class Counts { kUncharged, kAll };
  explicit SocketUse(std::uint64_t most, Counts counts = Counts::kUncharged)
      : most_(most), counts_all_(counts == Counts::kAll) {}
  // Do they hold more, now?  `inside`: the sandbox's processes, of whom somebody has a network
  // that is not ours; until then it holds nothing.
  bool passed(const std::function<std::vector<pid_t>()>& inside);

 private:
  bool find_network(const std::function<std::vector<pid_t>()>& inside);
  std::uint64_t queued() const;
  const std::uint64_t most_;
  const bool counts_all_;
  // Files of that network: they show it for as long as they are open, whoever has died.
  UniqueFd netlink_;
  std::vector<UniqueFd> counts_, queues_;
};

// Bytes queued in the socket of a line of /proc/net/netlink, both ways.
std::uint64_t netlink_line_bytes(std::string_view line);
// Bytes on their way out of the socket of a line of /proc/net/udp or tcp; and those that came in.
std::uint64_t sent_line_bytes(std::string_view line);
std::uint64_t received_line_bytes(std::string_view line);
// Sockets of a protocol ("UDP": of UDPLITE too) by the text of /proc/net/sockstat, or sockstat6.
std::uint64_t sockets_of(std::string_view protocol, std::string_view sockstat);

// How much memory some processes hold together, where no control group counts it.  Memory that
// several of them share counts once (proportional set size); of a process that may not be looked at
// so closely, what it has to itself.  Files of a tmpfs that nobody maps are not in it, and nobody
// limits those (`memory_files`).  Blocking.  Thread-safe.
// Source: proc(5), smaps_rollup and statm.

// None: the host had no descriptor or memory to look with.
std::optional<std::uint64_t> memory_of(const std::vector<pid_t>& processes);
// By the text of /proc/PID/smaps_rollup, swapped out pages included; 0: not in it.
std::uint64_t proportional_bytes(std::string_view smaps_rollup);

// Is the limit on the disk passed?  Asked again and again: by what lies in a sandbox's writable
// folders, and what its processes keep open after they have removed its name.  Where no kernel
// limit does it, a monitor asks this while the command runs (folder_tree.h says how folders are
// counted).
// Left out: files without a name that are only mapped, or on their way through a socket; each is
// bounded by the limit on one file.  One object, one thread.
class DiskLook {
 public:
  // In the folders alone, or among all open descriptors too.
  enum class Where { kNamed, kEverywhere };
  // `limit` outlives it.
  DiskLook(const DiskLimit& limit, Where where) : limit_(&limit), where_(where) {}
  // `inside`: the sandbox's processes.  False where it was stopped before it knew.
  bool passed(const std::function<std::vector<pid_t>()>& inside, const std::stop_token& stop);
  // Has so much been written since the last look began, by anybody, to the file systems of its
  // places, that the limit may have been passed by it?  Costs next to nothing.
  bool may_have_passed() const;

 private:
  std::vector<FolderUse> used_of_systems() const;
  const DiskLimit* limit_;
  const Where where_;
  std::vector<FolderUse> used_;  // by each place's file system, when the last look began
  FolderUse left_;               // to the limit, when it had ended
};

// The limits that no kernel keeps for us (CPU seconds of all processes together, the disk, without
// control groups their memory, with any what waits in some of their sockets): looked at while a
// command runs, by threads of the watch's own.  A look can take as long as an agent makes it (a
// million files, half a million descriptors), so none waits for another, and whoever keeps the
// command's time waits for none.  Each costs a tenth of its thread's time at most, or half of it
// where the disk fills so fast that the limit may have been passed since.
// One thread owns it; what it asks is asked by others.
class LimitWatch {
 public:
  using Passed = ExecOutcome::End;  // kCpu, kDisk, kMemory
  // Called by several threads at a time.
  struct Host {
    // CPU time of all that ran inside; none: not known.
    std::function<std::optional<std::chrono::milliseconds>()> cpu_time;
    // Its processes, by the host's numbers.
    std::function<std::vector<pid_t>()> inside;
    // For all of them together, none where it cannot be known now; absent where the kernel keeps
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
  // The limit that was found passed so far; waits for nothing.  Ask as often as you like: the first
  // time begins a first pause, after which the looking begins, for most commands end before there
  // is anything to be seen.
  std::optional<Passed> look(std::chrono::steady_clock::time_point now);
  // Readable when something was found; -1: nobody looks yet.
  int wakes() const { return found_fd_.get(); }
  // A command that stands still passes nothing, and costs nothing.
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
