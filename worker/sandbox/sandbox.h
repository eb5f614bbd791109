#pragma once
// Sandboxes behind one interface: bubblewrap, Docker (Engine API over its unix socket), OCI (the
// runtime Docker itself uses, without an engine) and null (benchmarks only).  No network unless the
// spec says so, host file system absent or read-only, exactly the environment given, limits on wall
// time, memory, processes and output.  Blocking; call from slot threads.  An engine is thread-safe;
// one Sandbox belongs to one thread.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/folder_tree.h"
#include "common/base/namespaces.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// Hold: whether what runs in sandboxes is to stand still, and the clock that stands still with it.
// One for each attempt: the loop sets it, the sandbox follows it, meters and ceilings measure by
// its clock, so that a suspended run loses none of its time.  Thread-safe.
class Hold {
 public:
  using Clock = std::chrono::steady_clock;

  void set(bool suspended);
  bool on() const;
  // The steady clock, less all the time this was on.
  Clock::time_point now() const;
  // Returns when it is off, or when `cancel` wants it.
  void wait_until_off(const std::stop_token& cancel) const;

  // Calls `changed` at every change from now on, on the thread that makes it, until it is
  // destroyed.  `changed` must not call back into the Hold.
  class Watch {
   public:
    Watch(const Hold& hold, std::function<void()> changed);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    const Hold& hold_;
    std::list<std::function<void()>>::iterator at_;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any off_;
  mutable std::list<std::function<void()>> watches_;
  bool on_ = false;
  Clock::time_point since_{};
  Clock::duration stood_still_{0};
};

// SharedNetwork: a network of its own, with a loopback and no way to anywhere, that several
// sandboxes are in together: a check and the services beside it.  Two of them have nothing in
// common, so that the same port is free in each.  Made by SandboxEngine::open_network().
//
// It ends with its last sandbox and this object, also when the worker is killed; what the engine
// itself keeps of it is found by its label, as every sandbox is.  One object, one thread.
class SharedNetwork {
 public:
  SharedNetwork() = default;
  SharedNetwork(const SharedNetwork&) = delete;
  SharedNetwork& operator=(const SharedNetwork&) = delete;
  virtual ~SharedNetwork() = default;  // after the sandboxes in it
  // Does somebody accept connections at this port of its loopback now?  The connection is closed at
  // once.  kUnavailable: it cannot be asked.
  virtual Result<bool> accepts(std::uint16_t port) = 0;
  // The container that keeps it; empty: none does.
  virtual std::string holder() const { return {}; }
};

enum class SandboxKind { kBubblewrap, kDocker, kOci, kNull };
constexpr auto words(SandboxKind) {
  return std::to_array<Word<SandboxKind>>({{"bubblewrap", SandboxKind::kBubblewrap},
                                           {"docker", SandboxKind::kDocker},
                                           {"oci", SandboxKind::kOci},
                                           {"null", SandboxKind::kNull}});
}
// Does it run images?  A contract that names one does not say which of these kinds it wants.
inline bool runs_images(SandboxKind k) {
  return k == SandboxKind::kDocker || k == SandboxKind::kOci;
}

struct SandboxMount {
  fs::path host;   // must exist
  std::string at;  // absolute path inside
  bool writable = false;
  // Others are shown it as well, as toolchains are: its inodes are to be each sandbox's own, where
  // the kind can (SandboxEngine::enforcement(), "inodes").
  bool shared = false;
};

// The most that a command may have on the host's disk in the end, in all these places together.
// Looked at while it runs, ten times a second at most: it can be passed by what is written between
// two looks.
struct DiskLimit {
  struct Place {
    fs::path dir;                                      // on the host, writable inside
    std::uint64_t bytes_before = 0, files_before = 0;  // there already and not to be counted
    // Files in a read-only layer below it count too, but for what `dir` hides of it.
    fs::path below{};
    std::uint64_t bytes_below = 0, files_below = 0;
  };
  std::vector<Place> places;
  std::uint64_t bytes = 0, files = 0;  // 0: no limit
  FolderMeasure measure = FolderMeasure::kBlocks;
};

// A program of the image that runs, as a service of a compose file does, in place of a command for
// its shell: no workspace, its own environment below SandboxSpec::env, its root writable until the
// end.
struct SandboxProgram {
  std::vector<std::string> entrypoint;  // empty: the image's
  std::vector<std::string> command;     // empty: the image's, unless an entrypoint is given
  std::string working_dir;              // empty: the image's
};

struct SandboxSpec {
  std::string label;             // "17.2-agent": names and labels what must be cleaned up
  fs::path workspace;            // host folder shown writable at kWorkspaceAt (not Docker)
  std::string workspace_volume;  // named volume shown there (Docker)
  // Either of them is shown, and nothing below it can be changed.
  bool workspace_read_only = false;
  // The user who runs there, where the engine has_own_users(): what root owns of all that is
  // mounted is his.  Null: whoever runs this kind's commands.
  std::shared_ptr<const OwnUser> user{};
  std::string image;  // Docker, OCI: by digest
  std::vector<SandboxMount> mounts;
  std::map<std::string, std::string> env;   // the whole environment
  std::optional<SandboxProgram> program{};  // Docker, OCI: instead of ExecSpec::command
  bool network = false;
  // In place of a network of its own: this one, of the same engine.  Not with `network`.
  std::shared_ptr<SharedNetwork> shared{};
  // Words before those of the shell: a program shown by a mount, which runs what follows it and
  // leaves one process of its own beside it.  Empty: none.
  std::vector<std::string> launcher{};
  std::uint64_t memory_bytes = 0;  // 0: no limit
  std::uint32_t processes = 0;
  double cpus = 0;
  std::chrono::milliseconds cpu{0};
  std::uint64_t file_bytes = 0;  // largest single file
  DiskLimit disk{};
  // While it is on, what runs here stands still and its ceilings with it, and nothing is started.
  // Null: never.
  std::shared_ptr<const Hold> hold{};
};
inline constexpr const char* kWorkspaceAt = "/workspace";

// The time that the kernel lets one process use of SandboxSpec::cpu: a little more, so that whoever
// watches all of them finds the limit passed, and says so, before the kernel kills that one without
// a word.
inline std::uint64_t cpu_seconds_of_one(const SandboxSpec& spec) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(spec.cpu).count()) + 1;
}

// An attempt of a command at what its sandbox refuses, or (ExecSpec::see_programs) a program that
// it runs.  The target is the candidate's own text: of a program as it is, else as printable() of
// common/base/text.h leaves it.
struct CallAttempt {
  // Honest programs try harmless calls, and do without; by the next it would leave its sandbox.
  enum class What { kHarmless, kEscape, kAddress, kFile, kProgram } what = What::kHarmless;
  // The system call, by its name: "mount", "unshare", "connect", "openat", "ptrace", "execve".
  std::string call;
  // An address: "203.0.113.1:80" or "[2001:db8::1]:443".  A file: the absolute path, without "."
  // and "..".  A program: its words, a NUL behind each, 32 KiB at most.  Empty: the call is told by
  // its name alone.  "?": the process could not be read.
  std::string target;
  std::uint32_t pid = 0;  // the thread's, as the sandbox counts
};
// Attempts of each call of one command that are told one by one; the others count.  All programs
// are told.
inline constexpr std::uint64_t kAttemptsTold = 200;

struct ExecSpec {
  std::string command;  // /bin/sh -c, in kWorkspaceAt
  std::chrono::milliseconds timeout{60'000};
  fs::path stdout_file, stderr_file;              // where the bounded output is written
  std::size_t output_max = std::size_t{8} << 20;  // of each stream
  // Where a command can outlive this process (Docker): called once it is there, before it begins,
  // with the name by which adopt() finds it, until the Sandbox is destroyed and not only until the
  // command has ended.  Absent: the command is nobody's but ours.
  std::function<void(const std::string& name)> outlives{};
  // Called once, on the thread of run(), when the command has begun.  Absent: nobody asks.
  std::function<void()> begun{};
  // Called on the thread of run() for each attempt that is seen, while the command runs.  Absent:
  // nothing is watched, and no call costs more.  Never called where SandboxEngine::enforcement()
  // says "none" of "attempts".
  std::function<void(const CallAttempt&)> attempted{};
  // Each program that it runs is told too, whether or not the kernel then finds it.  With
  // `attempted` alone.
  bool see_programs = false;
};

// A command that an earlier life of this worker began and that may still run.
struct LeftCommand {
  std::string name;  // what ExecSpec::outlives was told
  std::chrono::steady_clock::time_point since;
};

struct ExecOutcome {
  enum class End { kExited, kSignalled, kTimedOut, kMemory, kDisk, kCpu, kCancelled };
  End end = End::kExited;
  int exit_code = 0;  // kExited; 127 and 126 keep the shell's meaning
  int signal = 0;     // kSignalled
  // The disk of its workspace was full at some time, and the exit code is not known.  Told of
  // commands that may outlive us (ExecSpec::outlives).
  bool host_disk_full = false;
  std::chrono::milliseconds wall{0};  // while it was suspended does not count
  std::chrono::milliseconds cpu{0};
  std::uint64_t memory_peak = 0;
  std::uint64_t stdout_bytes = 0, stderr_bytes = 0;  // produced, beyond what was kept
  // Seen beyond those that ExecSpec::attempted was called for, or not to be read whole.  A command
  // that was ended has made up to twice as many.
  std::uint64_t attempts_untold = 0;
};

class Sandbox {
 public:
  virtual ~Sandbox() = default;  // nothing of it runs or is left afterwards
  // Runs one command with nothing left running when it returns.  An Error is infrastructure
  // (kUnavailable: engine hung or gone; kNotFound: this host lacks an image, mount or folder of the
  // spec; kInvalid: no host can meet the spec), never the command's fault.
  virtual Result<ExecOutcome> run(const ExecSpec& spec, std::stop_token cancel) = 0;
};

class SandboxEngine {
 public:
  virtual ~SandboxEngine() = default;
  virtual SandboxKind kind() const = 0;
  virtual Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) = 0;
  // A network that several sandboxes of this engine share.  `label`: as in SandboxSpec; `image`:
  // any that is here (kinds that run images).  kInvalid: this kind has none.
  virtual Result<std::shared_ptr<SharedNetwork>> open_network(const std::string& label,
                                                              const std::string& image);
  // Takes a command over instead of beginning one: the next run() waits for it, with the limits,
  // files and cancellation of its ExecSpec.  Of its spec only the label and the hold count.
  // kNotFound: it is not there any more.  kInvalid: this kind's commands die with their worker.
  virtual Result<std::unique_ptr<Sandbox>> adopt(const SandboxSpec& spec, const LeftCommand& left);
  // Which limits the kernel enforces here, for the manifest: {"memory":"cgroup1", ...}. "attempts":
  // "seccomp" where ExecSpec::attempted is called, else "none".
  virtual std::map<std::string, std::string> enforcement() const = 0;
  // Does it run commands as the user that a spec names?
  virtual bool has_own_users() const { return false; }
  // Files of this host, and folders with all below, that every sandbox is shown as they are.
  virtual std::vector<fs::path> shared_places() const { return {}; }
  // Removes what earlier lives of this owner left (by label), but for commands of these names.
  virtual Status clean_up(const std::set<std::string>& keep = {}) = 0;
};

struct SandboxOptions {
  std::string owner;  // worker name, in labels
  std::string docker_socket = "/var/run/docker.sock";
  fs::path images{};  // the store of unpacked images that OCI sandboxes run
  // False: bubblewrap as on a host that offers no control groups, where monitors do their work.
  bool cgroups = true;
  // The program that starts OCI containers: "runc", "runsc" (a kernel in user space), or empty:
  // runc.
  std::string oci_runtime{};
  // Whether sandboxes may have users of their own, where the host can (decision 092).
  bool own_users = true;
};
// kUnavailable when this host cannot offer the kind, with the reason and what would help.
Result<std::unique_ptr<SandboxEngine>> open_sandbox_engine(SandboxKind kind,
                                                           const SandboxOptions& options);
// Does an Engine answer at this socket?  (A ping, within a second.)
bool docker_answers(const std::string& socket);

// An exit code, as shells and container engines report it, becomes an outcome: 128 + n after signal
// n, for the signals by which programs really die; kExited otherwise (git exits with 129 when
// misused).  `exit_code` keeps the number as reported in either case.  Pure.
void set_exit(ExecOutcome& out, int code);
// The outcome of a command that was ended for `why`, with the exit code that all kinds tell.  Pure.
void set_ended(ExecOutcome& out, ExecOutcome::End why);
}  // namespace proctor
