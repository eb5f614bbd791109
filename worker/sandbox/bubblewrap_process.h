#pragma once
// One bwrap process from start to last breath: spawns it inside its control groups and limits,
// pumps its output into bounded files, and ends it (with everything inside its pid namespace) on
// exit, deadline or cancellation.  One wait loop, no busy waiting.
// Blocking; thread-safe (no shared state).  Fails with kUnavailable (no process, no pipe).
// Source: bwrap(1) on --json-status-fd; pid_namespaces(7): the kernel kills all when init dies.
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "worker/sandbox/bounded_file.h"
#include "worker/sandbox/hold.h"

namespace proctor {

struct BwrapLaunch {
  std::vector<std::string> argv;                 // argv[0] is a path
  std::string seccomp;                           // the program; bwrap reads it from kBwrapSeccompFd
  const std::vector<UniqueFd>* doors = nullptr;  // of control groups
  std::vector<std::pair<int, rlim_t>> rlimits;   // RLIMIT_..., value
  std::chrono::milliseconds timeout{0};
  // Asked every 100 ms while it runs, when there is one: has a limit been passed?
  std::function<bool()> over_limit;
  // Stops (true) and continues what runs below the process `bwrap`, as `hold` says.
  std::shared_ptr<const Hold> hold{};
  std::function<void(pid_t bwrap, bool stand_still)> suspend{};
};

struct BwrapEnd {
  enum class Cause { kItself, kTimedOut, kCancelled, kOverLimit };
  Cause cause = Cause::kItself;
  // The command's, 128 + n after signal n.  None: the command never ran to an end of its own
  // (bwrap failed before it, or it was killed).
  std::optional<int> exit_code;
  bool started = false;  // bwrap had made its namespaces
  std::chrono::milliseconds wall{0};
  std::chrono::milliseconds cpu{0};
};

Result<BwrapEnd> run_bwrap(const BwrapLaunch& launch, BoundedFile& out, BoundedFile& err,
                           std::stop_token cancel);

}  // namespace proctor
