#pragma once
// Sandboxes whose runtime is a process of ours (bubblewrap, OCI): that process from start to last
// breath, and what these sandboxes have in common.
#include <sys/resource.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/owned.h"
#include "worker/sandbox/box_namespaces.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// One process of a sandbox's runtime (bwrap, runc) from start to last breath: spawns it inside its
// control groups and limits, pumps its output into bounded files, and ends it (with everything
// inside its pid namespace) on exit, deadline or cancellation.  One wait loop, no busy waiting.
// The runtime tells of its command by lines on kBoxStatusFd: `{ "child-pid": 7 }` when that is
// about to run, `{ "exit-code": 0 }` when it has ended.  Init adds those of init/attempts.h.
// Blocking; thread-safe (no shared state).  Fails with kUnavailable (no process, no pipe).
// Source: bwrap(1) on --json-status-fd; pid_namespaces(7): the kernel kills all when init dies.

// The descriptors the runtime finds open.
inline constexpr int kBoxStatusFd = 3;
inline constexpr int kBoxEnvironmentFd = 4;
inline constexpr int kBoxSeccompFd = 5;
// The status once more, for init below a bwrap, which keeps the first one to itself.
inline constexpr int kBoxInitStatusFd = 6;

struct BoxLaunch {
  std::vector<std::string> argv;  // argv[0] is a path
  std::string label{};            // given to it as its argv[0] (process_tree.h); empty: the path
  std::vector<std::string> env;   // the runtime's own, not the command's
  // For runtimes that pass nothing but the first three descriptors on: kBoxStatusFd is their
  // standard input too, and their own exit code is the command's, once the status says that it is
  // about to run.
  bool status_as_input = false;
  // The command's environment, in the words of whoever reads it: from kBoxEnvironmentFd, or with
  // status_as_input from the standard input.  A process list shows arguments to every user.
  std::string environment{};
  std::string seccomp;  // to be read from kBoxSeccompFd: a program for bwrap, or for init
                        // the two of CallWatch::given()
  const std::vector<UniqueFd>* doors = nullptr;  // of control groups
  std::vector<std::pair<int, rlim_t>> rlimits;   // RLIMIT_..., value
  std::chrono::milliseconds timeout{0};
  // Asked while it runs, when there is one, and waits for nothing: has a limit been passed by what
  // runs below the process `runtime`?  Every 100 ms until its descriptor says when; -1: none yet.
  std::function<std::optional<LimitWatch::Passed>(pid_t runtime)> over_limit;
  std::function<int()> over_limit_wakes;
  // Stops (true) and continues what runs below the process `runtime`, as `hold` says.
  std::shared_ptr<const Hold> hold{};
  std::function<void(pid_t runtime, bool stand_still)> suspend{};
  // Entered in place of the worker's network; null: none is.
  std::shared_ptr<const BoxNetwork> network{};
  // Where it is counted what it takes of what the kernel counts by user: entered last.  Null: with
  // the worker.
  std::shared_ptr<const UserCounts> counts{};
  // Whose real user the runtime and all of the command are; none: the worker's.
  std::optional<std::uint32_t> user{};
  // Whose the pipes are that take the output; none: the worker's.
  std::optional<std::uint32_t> speaker{};
  // Called when the namespaces are made and the command is about to run.
  std::function<void()> begun{};
  bool init_status = false;  // kBoxInitStatusFd is open
  // Called for each attempt that init tells.
  std::function<void(const CallAttempt&)> attempted{};
  // Runs in the child before the runtime does: async-signal-safe calls only; false: do not start.
  std::function<bool()> enter{};
  // The place that enter() leaves it at has a /dev/null of its own, which then is its standard
  // input: the host's is one inode for all.  Not with status_as_input.
  bool own_null = false;
  // Ends all that runs inside, asked after the status says that something does.  Without it init is
  // killed, whom the status names.
  std::function<void()> kill_inside{};
};

struct BoxEnd {
  std::optional<ExecOutcome::End> cause;  // why we ended it; none: we did not
  // The command's, 128 + n after signal n.  None: the command never ran to an end of its own
  // (the runtime failed before it, or it was killed).
  std::optional<int> exit_code;
  int runtime_exit = 0;  // the runtime's own, likewise
  bool started = false;  // its namespaces had been made
  // Why init could not run the command at all (an errno), when it says so.
  std::optional<int> exec_error;
  // Why init could not watch its calls, and so did not run it: likewise.
  std::optional<int> watch_error;
  std::uint64_t attempts_untold = 0;
  std::chrono::milliseconds wall{0};
  std::chrono::milliseconds cpu{0};
};

Result<BoxEnd> run_box(const BoxLaunch& launch, BoundedFile& out, BoundedFile& err,
                       std::stop_token cancel);

// One command about to run.  Removes, at its end, what was made for it.
struct Box {
  Box() = default;
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  virtual ~Box() = default;
  // Why the runtime failed before the command ran; `said` is the beginning of its stderr.
  virtual std::string complaint(const std::string& said) const = 0;
  Cgroup group;
  BoxLaunch launch;
  // The runtime is dear itself: what the command used is the group's count, not the process's.
  bool cpu_by_group = false;
  // The runtime's own part of what its groups hold, which is not the command's.
  std::uint64_t runtime_memory = 0;
  // True where no control group keeps the limit on memory: what all processes hold together is
  // looked at.
  bool watch_memory = false;
  // True where none keeps what its sockets hold, either.
  bool watch_sockets = false;
};

// The common part of all sandboxes whose runtime is a process of ours: bounded output files, a
// control group for each command, limits, suspension, and how the end of the process becomes an
// outcome.  One object, one thread.
// Fails with kUnavailable (the runtime did not start the command), kInvalid (nothing in the image
// can), and what the box's maker fails with.
class BoxedSandbox : public Sandbox {
 public:
  explicit BoxedSandbox(SandboxSpec spec) : spec_(std::move(spec)) {}
  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) final;

 protected:
  virtual Result<std::unique_ptr<Box>> make_box(const ExecSpec& exec) = 0;
  const SandboxSpec& spec() const { return spec_; }

 private:
  Status conclude(const Box& box, const BoxEnd& end, const std::string& said,
                  ExecOutcome& out) const;
  SandboxSpec spec_;
};
}  // namespace proctor
