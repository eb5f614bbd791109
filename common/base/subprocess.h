#pragma once
// Programs of this host: where they lie, and how they run as children with bounds.
#include <sys/types.h>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// The host beside Proctor: where a program lies that we start by its name, and which
// locales and time zones commands find.  Thread-safe (no state).

// The program of this name on our PATH, or in a folder of system programs; empty: none.
fs::path find_on_path(const char* program);

// Can commands have it in LC_ALL?  With one that is not there they go on with C in silence.
bool has_locale(const std::string& name);
// Can commands have it in TZ: a file of /usr/share/zoneinfo, or a rule such as EST5EDT?  With one
// that is neither they go on with UTC in silence.
bool knows_time_zone(const std::string& name);

// Child processes with bounds: time, output, and the whole process group on the way out.
// For shells and adapters (git, redis-server, bwrap); blocking, so never on a loop thread.

struct CommandSpec {
  std::vector<std::string> argv;  // argv[0] is looked up on PATH
  fs::path cwd;                   // empty: ours
  // Without a value the child's environment is ours; with one it is exactly this.
  std::optional<std::map<std::string, std::string>> env;
  std::string stdin_bytes;
  std::chrono::milliseconds timeout{60'000};
  std::size_t output_max = std::size_t{1} << 20;  // of each stream; the rest is read and dropped
  std::function<bool()> cancelled{};  // asked now and then by run_command; true kills it
};

struct CommandOutcome {
  int exit_code = -1;  // 128 + signal when a signal ended it
  int signal = 0;
  bool timed_out = false;
  bool cancelled = false;
  bool output_cut = false;
  std::string out;
  std::string err;
  std::chrono::milliseconds wall{0};
  bool success() const { return exit_code == 0 && !timed_out && !cancelled; }
  // "exit 128: fatal: not a git repository": for error texts.
  std::string describe() const;
};

// Runs to the end or to the timeout, then kills the process group.  kNotFound: no such program.
// A non-zero exit is an outcome, not an error.
Result<CommandOutcome> run_command(const CommandSpec& spec);

// As run_command(), and kUnavailable with `describe()` unless it exits with 0; the value is its
// stdout.
Result<std::string> run_for_output(const CommandSpec& spec);

// A child that goes on by itself: redis-server, local workers.
class Child {
 public:
  // stdout and stderr are appended to `log` (or inherited when it is empty).  The child gets its
  // own process group and dies with us (PR_SET_PDEATHSIG) when `die_with_parent`.
  enum class Lifetime { kDiesWithParent, kIndependent };
  static Result<Child> start(const CommandSpec& spec, const fs::path& log, Lifetime lifetime);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // kills (SIGKILL, group) and reaps what still runs
  pid_t pid() const { return pid_; }
  bool running();
  // Signals the whole group.
  void signal(int signo);
  // SIGTERM, up to `grace`, SIGKILL, reap.  The exit code (128 + signal).
  int stop(std::chrono::milliseconds grace);
  // The exit code if it has ended.
  std::optional<int> poll();
  // Waits up to `timeout` for it to end.
  std::optional<int> wait(std::chrono::milliseconds timeout);
  // Stops owning it: the destructor leaves it alone.
  pid_t release();

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<int> exit_;
};
}  // namespace proctor
