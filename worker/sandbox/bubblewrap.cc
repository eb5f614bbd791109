#include "worker/sandbox/bubblewrap.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "common/base/text.h"
#include "worker/sandbox/bubblewrap_args.h"
#include "worker/sandbox/bubblewrap_process.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/exit_status.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/suspension.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;

constexpr rlim_t kOpenFiles = 65'536;  // Go and Node raise their soft limit to the hard one
constexpr std::string_view kEtcPrefix = "proctor-etc-";
// bwrap, its init inside, and the shell are processes too, but not the command's.
constexpr std::uint32_t kOwnProcesses = 2;

struct Shared {
  Shared(HostView v, std::string program, CgroupHost groups)
      : view(std::move(v)), seccomp(std::move(program)), cgroups(std::move(groups)) {}
  HostView view;
  std::string seccomp;
  CgroupHost cgroups;
  std::atomic<std::uint64_t> next{1};
};

std::string hint(std::string_view text) {
  if (text.find("namespace") != std::string_view::npos ||
      text.find("uid map") != std::string_view::npos) {
    return " (user namespaces look forbidden: see kernel.unprivileged_userns_clone, "
           "user.max_user_namespaces and AppArmor's restriction of them)";
  }
  return {};
}

class BubblewrapSandbox final : public Sandbox {
 public:
  BubblewrapSandbox(std::shared_ptr<Shared> shared, SandboxSpec spec)
      : shared_(std::move(shared)), spec_(std::move(spec)) {}

  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) override {
    if (exec.command.find('\0') != std::string::npos) {
      return Error{Errc::kInvalid, "command: a NUL byte"};
    }
    PROCTOR_TRY(BoundedFile out, BoundedFile::create(exec.stdout_file, exec.output_max));
    PROCTOR_TRY(BoundedFile err, BoundedFile::create(exec.stderr_file, exec.output_max));
    ExecOutcome outcome;
    if (spec_.hold) spec_.hold->wait_until_off(cancel);
    if (cancel.stop_requested()) {
      outcome.end = ExecOutcome::End::kCancelled;
      return outcome;
    }
    PROCTOR_TRY(Cgroup group, shared_->cgroups.make(
                                  spec_.label + "." + std::to_string(shared_->next++), limits()));
    BwrapLaunch launch = prepare(exec, group);
    Suspension suspension(group);
    launch.hold = spec_.hold;
    launch.suspend = [&suspension](pid_t bwrap, bool stand_still) {
      stand_still ? suspension.suspend(bwrap) : suspension.resume(bwrap);
    };
    auto end = run_bwrap(launch, out, err, cancel);
    group.empty();
    if (!end.ok()) return std::move(end).error();
    PROCTOR_CHECK_OK(out.status());
    PROCTOR_CHECK_OK(err.status());
    outcome.wall = end->wall;
    outcome.cpu = end->cpu;
    outcome.memory_peak = group.memory_peak();
    outcome.stdout_bytes = out.total();
    outcome.stderr_bytes = err.total();
    PROCTOR_CHECK_OK(conclude(*end, group.oom_kills(), err.head(), outcome));
    return outcome;
  }

 private:
  CgroupLimits limits() const {
    CgroupLimits l;
    l.memory_bytes = spec_.memory_bytes;
    l.processes = spec_.processes == 0 ? 0 : std::uint64_t{spec_.processes} + kOwnProcesses;
    l.cpus = spec_.cpus;
    l.cpu_usage = 0 < spec_.cpu.count();
    return l;
  }

  BwrapLaunch prepare(const ExecSpec& exec, const Cgroup& group) const {
    BwrapLaunch launch;
    launch.argv = bubblewrap_argv(shared_->view, spec_, exec.command);
    launch.seccomp = shared_->seccomp;
    launch.doors = &group.doors();
    launch.timeout = exec.timeout;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    launch.rlimits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, std::min(files.rlim_max, kOpenFiles)}};
    if (0 < spec_.file_bytes) launch.rlimits.emplace_back(RLIMIT_FSIZE, spec_.file_bytes);
    if (0 < spec_.memory_bytes && !shared_->cgroups.has("memory")) {
      launch.rlimits.emplace_back(RLIMIT_AS, spec_.memory_bytes);
    }
    if (0 < spec_.processes && !shared_->cgroups.has("pids")) {
      launch.rlimits.emplace_back(RLIMIT_NPROC, spec_.processes);
    }
    if (0 < spec_.cpu.count()) {
      // Of each process; the group's sum is watched where there is one.
      launch.rlimits.emplace_back(
          RLIMIT_CPU,
          static_cast<rlim_t>(std::chrono::ceil<std::chrono::seconds>(spec_.cpu).count()));
      if (group.cpu_time()) {
        launch.over_limit = [&group, max = spec_.cpu] {
          return max < group.cpu_time().value_or(milliseconds(0));
        };
      }
    }
    return launch;
  }

  static Status conclude(const BwrapEnd& end, std::uint64_t oom_kills, const std::string& said,
                         ExecOutcome& out) {
    using End = ExecOutcome::End;
    switch (end.cause) {
      case BwrapEnd::Cause::kTimedOut:
        out.end = End::kTimedOut;
        return ok_status();
      case BwrapEnd::Cause::kCancelled:
        out.end = End::kCancelled;
        return ok_status();
      case BwrapEnd::Cause::kOverLimit:
        out.end = End::kSignalled;
        out.signal = SIGXCPU;
        out.exit_code = 128 + SIGXCPU;
        return ok_status();
      case BwrapEnd::Cause::kItself:
        break;
    }
    out.exit_code = end.exit_code.value_or(128 + SIGKILL);
    // A command that lives with the loss of a child has not failed for memory.
    if (0 < oom_kills && out.exit_code != 0) {
      out.end = End::kMemory;
      return ok_status();
    }
    if (!end.exit_code) {
      const std::string text = printable(said, 300);
      return Error{Errc::kUnavailable,
                   "bubblewrap did not start the command: " +
                       (text.empty() ? std::string("it ended without a word") : text) + hint(said)};
    }
    set_exit(out, out.exit_code);
    return ok_status();
  }

  std::shared_ptr<Shared> shared_;
  SandboxSpec spec_;
};

fs::path find_on_path(const char* program) {
  const char* path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  std::string_view left = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const fs::path file = fs::path(left.substr(0, end)) / program;
    if (file.is_absolute() && ::access(file.c_str(), X_OK) == 0) return file;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

HostView look_at_host() {
  HostView v;
  v.bwrap = find_on_path("bwrap");
  v.dirs = {"/usr"};
  std::error_code ec;
  for (const char* dir : {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}) {
    if (fs::is_symlink(dir, ec)) {
      v.links.emplace_back(dir, fs::read_symlink(dir, ec).string());
    } else if (fs::is_directory(dir, ec)) {
      v.dirs.emplace_back(dir);
    }
  }
  v.certificates = fs::is_directory("/etc/ssl/certs", ec);
  v.resolver = fs::exists("/etc/resolv.conf", ec);
  return v;
}

// Our own /etc: names for the two users there are, and copies of what programs need to find
// libraries, alternatives and the time zone.
Status fill_etc(const fs::path& etc) {
  const std::pair<const char*, const char*> files[] = {
      {"passwd",
       "root:x:0:0:root:/root:/bin/sh\n"
       "proctor:x:1000:1000::/home/proctor:/bin/sh\n"
       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
      {"group", "root:x:0:\nproctor:x:1000:\nnogroup:x:65534:\n"},
      {"hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
      {"hostname", "sandbox\n"},
      {"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
      {"resolv.conf", ""},
  };
  for (const auto& [name, text] : files) {
    PROCTOR_CHECK_OK(write_file(etc / name, text, Durability::kLazy));
  }
  PROCTOR_CHECK_OK(make_dirs(etc / "ssl/certs"));
  std::error_code ec;
  for (const char* name : {"ld.so.cache", "ld.so.conf", "localtime", "alternatives", "mime.types",
                           "ssl/openssl.cnf"}) {
    const fs::path from = fs::path("/etc") / name;
    // /etc/localtime stays a link into /usr/share/zoneinfo.  What is not there is not needed.
    fs::copy(from, etc / name, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
  }
  return ok_status();
}

// Folders of /etc that dead workers left.
void remove_stale_etc() {
  std::error_code ec;
  for (fs::directory_iterator it(fs::temp_directory_path(ec), ec), end; !ec && it != end;
       it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kEtcPrefix)) continue;
    const pid_t pid = std::atoi(name.c_str() + kEtcPrefix.size());  // NOLINT: 0 is "not ours"
    if (0 < pid && ::kill(pid, 0) != 0 && errno == ESRCH) (void)remove_tree(it->path()).ok();
  }
}

class BubblewrapEngine final : public SandboxEngine {
 public:
  BubblewrapEngine(TempDir etc, std::shared_ptr<Shared> shared)
      : etc_(std::move(etc)), shared_(std::move(shared)) {}

  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }

  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    PROCTOR_CHECK_OK(check_bubblewrap_spec(spec));
    return std::unique_ptr<Sandbox>(std::make_unique<BubblewrapSandbox>(shared_, spec));
  }

  std::map<std::string, std::string> enforcement() const override {
    const CgroupHost& c = shared_->cgroups;
    const auto of = [&c](const char* controller, const char* otherwise) {
      return c.has(controller) ? c.version(controller) : std::string(otherwise);
    };
    return {{"memory", of("memory", "rlimit")},
            // The kernel exempts its own root from the count of processes.
            {"processes", of("pids", ::geteuid() == 0 ? "none" : "rlimit")},
            {"cpus", of("cpu", "none")},
            {"cpu", c.has("cpuacct") || c.has("unified") ? c.version("memory") : "rlimit"},
            {"file", "rlimit"},
            {"network", "namespace"},
            {"seccomp", "filter"}};
  }

  Status clean_up() override {
    shared_->cgroups.clean_up();
    remove_stale_etc();
    return ok_status();
  }

 private:
  TempDir etc_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace

Result<std::unique_ptr<SandboxEngine>> open_bubblewrap_engine(const SandboxOptions& options) {
  HostView view = look_at_host();
  if (view.bwrap.empty()) {
    return Error{Errc::kUnavailable,
                 "bubblewrap: no bwrap on PATH (on Debian: apt-get install bubblewrap)"};
  }
  PROCTOR_TRY(TempDir etc,
              TempDir::create(std::string(kEtcPrefix) + std::to_string(::getpid()) + "-"));
  std::error_code ec;
  fs::permissions(etc.path(), fs::perms(0755), ec);
  PROCTOR_CHECK_OK(fill_etc(etc.path()));
  view.etc = etc.path();
  PROCTOR_TRY(std::string seccomp, make_seccomp_program());
  auto shared = std::make_shared<Shared>(std::move(view), std::move(seccomp),
                                         CgroupHost::detect(options.owner));
  // One empty command proves namespaces, mounts, filter and groups before any run depends on them.
  SandboxSpec probe;
  probe.label = "probe";
  probe.workspace = etc.path();
  ExecSpec nothing;
  nothing.command = ":";
  nothing.timeout = milliseconds(10'000);
  BubblewrapSandbox sandbox(shared, probe);
  PROCTOR_TRY(const ExecOutcome outcome, sandbox.run(nothing, {}));
  if (outcome.end != ExecOutcome::End::kExited || outcome.exit_code != 0) {
    return Error{Errc::kUnavailable, "bubblewrap: an empty command did not succeed inside it"};
  }
  return std::unique_ptr<SandboxEngine>(
      std::make_unique<BubblewrapEngine>(std::move(etc), std::move(shared)));
}

}  // namespace proctor
