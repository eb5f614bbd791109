#pragma once
// Room on this host, watched and waited for: disk, descriptors, memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// A want of this host (of descriptors, memory, room on its disk) is no reason to lose what a run
// has paid for: it is waited for, and the work is done again.  Blocking; any thread.

// Waits that long; false: nobody waits any longer.
using Pause = std::function<bool(std::chrono::milliseconds)>;

// Until a stop is asked for, and then ten seconds more in all, for what is finished anyway.
Pause until_stopped(std::stop_token stop);

struct Patience {
  Pause pause;
  // The longest wait for kExhausted; none: for as long as it takes.
  std::optional<std::chrono::milliseconds> want_most{};
  // The longest wait for kUnavailable, which may be our want as well, and may be anything.
  std::chrono::milliseconds other_most = std::chrono::seconds(30);
};

// Is this error waited for, when that much was waited already?  Pure.
bool is_waited_for(const Error& error, const Patience& patience, std::chrono::milliseconds waited);

// Does `work` until it succeeds, or fails with what is not waited for; it may be done many times.
// `what` names it in the log.
template <class T>
Result<T> when_there_is_room(const std::string& what, const Patience& patience,
                             const std::function<Result<T>()>& work) {
  constexpr std::chrono::milliseconds kFirst{100}, kLongest{5'000};
  std::chrono::milliseconds waited{0}, next = kFirst;
  for (;;) {
    Result<T> done = work();
    if (done.ok() || !is_waited_for(done.error(), patience, waited)) {
      if (done.ok() && waited.count() != 0) log::info(what + ": done, after a wait");
      return done;
    }
    if (waited.count() == 0)
      log::warn(what + ": " + done.error().detail + ": waited for, and then tried again");
    if (!patience.pause(next)) return done;
    waited += next;
    next = std::min(2 * next, kLongest);
  }
}

// Has the disk that a folder is on too little room to begin anything?  Then a sentence that says
// so; empty: it has.  A worker that begins there all the same fails its attempts one after another.
std::string too_full_to_begin(const fs::path& folder);

// HostDisk: was the host's own disk full while a command of an attempt ran?  Then what the command
// did or did not do says nothing about it: the host failed.  Unless the command itself filled it,
// which must not be a way to another try.  look() on any thread; the rest on one.
class HostDisk {
 public:
  explicit HostDisk(fs::path at) : at_(std::move(at)) {}

  void begin();  // before a command
  // Instead of it, of a command that an earlier life began when so much was free.
  void go_on(std::uint64_t free_at_begin);
  std::uint64_t free_at_begin() const { return free_at_begin_; }  // bytes
  void look();
  void seen_full() { seen_full_ = true; }  // by somebody else
  // After it.  `own`: how much it has written, asked only when that matters.
  std::optional<Error> end(const std::function<std::uint64_t()>& own);

 private:
  fs::path at_;
  std::uint64_t free_at_begin_ = 0;
  std::atomic<bool> seen_full_{false};
};

// May this process open what its slots will?  Asked at start: half-way it would be dear.  Raises
// the soft limit to the hard one first.  kInvalid: not enough, and what to type.
Status enough_descriptors(std::uint32_t slots);

// It ended as in every kind of sandbox whose own watch says so, whatever our stop made of it.
void stopped_at_disk_limit(ExecOutcome& outcome);

// DiskWatch: pulls a stop when a folder holds more than it may.  The sum of file sizes, looked at
// once a second while it lives.  Source: CVDP 5.3.
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
