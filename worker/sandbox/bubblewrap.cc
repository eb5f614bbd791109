#include "worker/sandbox/bubblewrap.h"

#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <atomic>

#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/sandbox/boxed_sandbox.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/lean_host.h"
#include "worker/sandbox/process_tree.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
// Those bwrap finds are the host's files.  A device that bwrap makes read-only is no device any
// more (nodev): only where our user may own those files is that better than a file that he could
// close to all.
void add_devices(const HostView& host, std::vector<std::string>& a) {
  if (!host.dev.empty()) {
    a.insert(a.end(), {"--dev-bind", host.dev.string(), "/dev"});
    return;
  }
  a.insert(a.end(), {"--dev", "/dev"});
  for (const Device& device : kDevices)
    if (host.close_devices) a.insert(a.end(), {"--remount-ro", std::string("/dev/") + device.name});
  if (!host.terminals.empty())
    a.insert(a.end(), {"--dev-bind", host.terminals.string(), "/dev/pts"});
  a.insert(a.end(), {"--remount-ro", "/dev"});
}
}  // namespace

Status check_bubblewrap_spec(const SandboxSpec& spec) {
  std::error_code ec;
  if (!spec.workspace.is_absolute() || !fs::is_directory(spec.workspace, ec)) {
    return Error{Errc::kNotFound,
                 "sandbox workspace '" + spec.workspace.string() + "': expected a host folder"};
  }
  PROCTOR_CHECK_OK(check_mounts(spec.mounts));
  return check_environment(spec.env);
}

std::vector<std::string> bubblewrap_argv(const HostView& host, const SandboxSpec& spec,
                                         const std::string& command, bool watched) {
  std::vector<std::string> a = {host.bwrap.string(), "--unshare-all"};
  const auto add = [&a](std::initializer_list<std::string> words) {
    a.insert(a.end(), words.begin(), words.end());
  };
  if (spec.network || spec.shared) add({"--share-net"});  // it is in the shared one already
  add({"--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"});
  add({"--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"});
  add({"--json-status-fd", std::to_string(kBoxStatusFd)});
  if (!watched) add({"--seccomp", std::to_string(kBoxSeccompFd)});
  add({"--args", std::to_string(kBoxEnvironmentFd)});

  // bwrap reads the whole table of mounts for each one it binds or makes read-only: first what
  // needs many of those, while the table is short.
  add({"--proc", "/proc"});
  // bwrap thinks of some of kReadOnlyProc, but not where its user is the host's root under another
  // name. All of it read-only is one mount instead of eight, which were a quarter of bwrap's time;
  // a process loses the words about itself (oom_score_adj, the names of its other threads).
  const auto mask = [&](const std::vector<std::string>& places, const std::string& by) {
    for (const std::string& at : places) add({"--ro-bind", by, at});
  };
  mask(host.proc_masked_files, "/dev/null");
  mask(host.proc_masked_dirs, host.empty.string());
  if (!spec.user) {
    mask(host.proc_closed_files, "/dev/null");
    mask(host.proc_closed_dirs, host.empty.string());
  }
  add({"--remount-ro", "/proc"});
  add_devices(host, a);
  for (const std::string& dir : host.dirs) add({"--ro-bind", dir, dir});
  for (const auto& [link, target] : host.links) add({"--symlink", target, link});
  add({"--ro-bind", host.etc.string(), "/etc"});
  for (const std::string& dir : host.etc_shown) add({"--ro-bind", dir, dir});
  if (spec.network && !host.resolver.empty()) add({"--ro-bind", host.resolver, "/etc/resolv.conf"});
  for (const char* at : {"/tmp", "/dev/shm", "/run", "/home"}) {
    if (0 < spec.memory_bytes) add({"--size", std::to_string(spec.memory_bytes)});
    const std::string_view place = at;
    const bool shared = place == "/tmp" || place == "/dev/shm";
    add({"--perms", shared ? "1777" : "0755", "--tmpfs", at});
  }
  add({"--dir", "/home/proctor", "--symlink", "/tmp", "/var/tmp"});
  add({spec.workspace_read_only ? "--ro-bind" : "--bind", spec.workspace.string(), kWorkspaceAt});
  for (const SandboxMount& m : outer_first(spec.mounts)) {
    add({m.writable ? "--bind" : "--ro-bind", m.host.string(), m.at});
  }
  // The root itself is a tmpfs of bwrap's: nothing to write there either.
  add({"--ro-bind", host.init.string(), kBubblewrapInitAt, "--remount-ro", "/"});
  // bwrap's own first process can be traced from inside, and with it the exit code be forged.
  // Where the workspace is closed meanwhile, init says so in the command's place: bwrap could not
  // start it, which would be the host's fault.
  add({"--as-pid-1", "--chdir", "/", "--", kBubblewrapInitAt, "--in", kWorkspaceAt});
  if (watched)
    for (std::string& word : CallWatch::words(kBoxInitStatusFd)) a.push_back(std::move(word));
  for (std::string& word : write_words(spec, {"/tmp", "/dev", "/run", "/home"}))
    a.push_back(std::move(word));
  add({"--"});
  a.insert(a.end(), spec.launcher.begin(), spec.launcher.end());
  add({"/bin/sh", "-c", command});
  return a;
}

std::string bubblewrap_environment(const SandboxSpec& spec) {
  std::string out;
  for (const auto& [name, value] : spec.env)
    for (const std::string_view word :
         {std::string_view("--setenv"), std::string_view(name), std::string_view(value)})
      out.append(word).push_back('\0');
  return out;
}

namespace {
using std::chrono::milliseconds;

constexpr const char* kEtcPrefix = "proctor-etc-";
// They have hundreds of entries each.
constexpr std::array<const char*, 2> kEtcShown = {"/etc/ssl/certs", "/etc/alternatives"};
// bwrap, its init inside, and the shell are processes too, but not the command's.
constexpr std::uint32_t kOwnProcesses = 2;

struct Shared {
  Shared(HostView v, std::string program, CgroupHost groups, const std::string& owner)
      : view(std::move(v)),
        seccomp(std::move(program)),
        cgroups(std::move(groups)),
        label(runtime_label(view.bwrap.string(), owner)) {}
  HostView view;
  std::string seccomp;
  std::optional<CallWatch> watch;  // none: nobody sees what a command attempts
  CgroupHost cgroups;
  std::string label;
  std::optional<LeanHost> lean;  // where bwrap is started; none: on the host as it is
  bool own_users = false;        // who bwrap is run as is as its spec says; with `lean` alone
  UserCountsPool counts{UserCountsPool::For::kProcess};
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

// A group is empty when all that ran in it is dead.
LeanHost::Then room_then(const Cgroup& group) {
  return group.doors().empty() ? LeanHost::Then::kNobodys : LeanHost::Then::kAnothers;
}

struct BubblewrapBox final : Box {
  ~BubblewrapBox() override {
    group = Cgroup();  // what still ran in it is dead now, and its room another's
  }
  LeanHost::Shown shown;
  std::string complaint(const std::string& said) const override {
    const std::string text = printable(said, 300);
    return "bubblewrap did not start the command: " +
           (text.empty() ? std::string("it ended without a word") : text) + hint(said);
  }
};

class BubblewrapSandbox final : public BoxedSandbox {
 public:
  BubblewrapSandbox(std::shared_ptr<Shared> shared, SandboxSpec spec)
      : BoxedSandbox(std::move(spec)), shared_(std::move(shared)) {}

 private:
  Result<std::unique_ptr<Box>> make_box(const ExecSpec& exec) override {
    auto box = std::make_unique<BubblewrapBox>();
    // Named after no attempt, for others use it later.
    const std::string name =
        "box-" + std::to_string(::getpid()) + "-" + std::to_string(shared_->next++);
    PROCTOR_TRY(box->group, shared_->cgroups.make(name, limits()));
    PROCTOR_TRY(box->launch, prepare(exec, *box));
    box->watch_memory = !shared_->cgroups.has("memory");
    box->watch_sockets = shared_->cgroups.socket_keeper() == "monitor";
    PROCTOR_TRY(box->launch.counts, shared_->counts.take());
    return std::unique_ptr<Box>(std::move(box));
  }

  CgroupLimits limits() const {
    CgroupLimits l;
    l.memory_bytes = spec().memory_bytes;
    const std::uint64_t own = kOwnProcesses + (spec().launcher.empty() ? 0 : 1);
    l.processes = spec().processes == 0 ? 0 : spec().processes + own;
    l.cpus = spec().cpus;
    l.cpu_usage = 0 < spec().cpu.count();
    return l;
  }

  Result<BoxLaunch> prepare(const ExecSpec& exec, BubblewrapBox& box) const {
    BoxLaunch launch;
    SandboxSpec seen = spec();
    HostView view = shared_->view;
    if (shared_->lean) {
      PROCTOR_TRY(const bool shows,
                  shared_->lean->show(seen, view, box.shown, room_then(box.group)));
      if (shows)
        launch.enter = [lean = &*shared_->lean, shown = &box.shown] { return lean->enter(*shown); };
      launch.own_null = shows && shared_->lean->own_devices();
    }
    if (spec().user) {
      if (!launch.enter || !shared_->own_users)
        return Error{Errc::kInvalid,
                     "bubblewrap: no command runs here as a user of its own, or it "
                     "is shown too many places for that"};
      launch.user = launch.speaker = spec().user->id();
    }
    const bool watched = exec.attempted && shared_->watch;
    launch.argv = bubblewrap_argv(view, seen, exec.command, watched);
    launch.label = shared_->label;
    launch.environment = bubblewrap_environment(seen);
    launch.init_status = watched;
    launch.seccomp = watched ? shared_->watch->given(spec(), exec) : shared_->seccomp;
    launch.doors = &box.group.doors();
    launch.rlimits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, open_files_here(spec().processes)}};
    if (0 < spec().file_bytes) launch.rlimits.emplace_back(RLIMIT_FSIZE, spec().file_bytes);
    if (0 < spec().memory_bytes && !shared_->cgroups.has("memory")) {
      launch.rlimits.emplace_back(RLIMIT_AS, spec().memory_bytes);
    }
    if (0 < spec().processes && !shared_->cgroups.has("pids")) {
      launch.rlimits.emplace_back(RLIMIT_NPROC, spec().processes);
    }
    // bwrap's namespace has what bwrap may have, of what is counted in the one that it starts in.
    if (rlimit signals{}; ::geteuid() != 0 && shared_->counts.works() &&
                          ::getrlimit(RLIMIT_SIGPENDING, &signals) == 0)
      launch.rlimits.emplace_back(RLIMIT_SIGPENDING, signals.rlim_cur / kUserShare);
    if (0 < spec().cpu.count()) {
      launch.rlimits.emplace_back(RLIMIT_CPU, cpu_seconds_of_one(spec()));
    }
    return launch;
  }

  std::shared_ptr<Shared> shared_;
};

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
  for (const char* dir : kEtcShown)
    if (fs::is_directory(dir, ec)) v.etc_shown.emplace_back(dir);
  if (fs::exists("/etc/resolv.conf", ec)) v.resolver = "/etc/resolv.conf";
  const auto mask = [&](const char* at) {
    struct stat st {};
    if (::stat(at, &st) != 0) return;
    // Root's, and shut to all who are not: what no capability opens either, for root is nobody
    // inside where the user is one of his own.
    const bool closed = st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & S_IRWXO) == 0;
    if (S_ISDIR(st.st_mode)) {
      (closed ? v.proc_closed_dirs : v.proc_masked_dirs).emplace_back(at);
    } else {
      (closed ? v.proc_closed_files : v.proc_masked_files).emplace_back(at);
    }
  };
  for (const char* at : kMaskedProc) mask(at);
  v.close_devices = ::geteuid() == 0;  // who is the user inside then, by another number
  for (const char* at : kRootsProc)
    if (v.close_devices) mask(at);
  return v;
}

// Our own /etc: names for the two users there are, and copies of what programs need to find
// libraries and the time zone.
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
    PROCTOR_CHECK_OK(write_file(etc / name, text, Durability::kLazy, kOpenFile));
  }
  PROCTOR_CHECK_OK(make_dirs(etc / "ssl/certs"));
  PROCTOR_CHECK_OK(make_dirs(etc / "alternatives"));
  std::error_code ec;
  for (const char* name :
       {"ld.so.cache", "ld.so.conf", "localtime", "mime.types", "ssl/openssl.cnf"}) {
    const fs::path from = fs::path("/etc") / name;
    // /etc/localtime stays a link into /usr/share/zoneinfo.  What is not there is not needed.
    fs::copy(from, etc / name, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
  }
  return ok_status();
}

class BubblewrapEngine final : public SandboxEngine {
 public:
  BubblewrapEngine(HeldFolder files, std::shared_ptr<Shared> shared)
      : files_(std::move(files)), shared_(std::move(shared)) {}

  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }

  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    PROCTOR_CHECK_OK(check_bubblewrap_spec(spec));
    return std::unique_ptr<Sandbox>(std::make_unique<BubblewrapSandbox>(shared_, spec));
  }

  Result<std::shared_ptr<SharedNetwork>> open_network(const std::string&,
                                                      const std::string&) override {
    return BoxNetwork::make();
  }

  std::map<std::string, std::string> enforcement() const override {
    auto out = shared_->cgroups.keepers();
    out["memory"] = shared_->cgroups.keeper("memory", "rlimit");
    // The kernel exempts its own root from the count of processes.
    out["processes"] = shared_->cgroups.keeper("pids", ::geteuid() == 0 ? "none" : "rlimit");
    out["user_counts"] = shared_->counts.works() ? "namespace" : "none";
    out["users"] = shared_->own_users ? "own" : "one";
    out["attempts"] = shared_->watch ? "seccomp" : "none";
    out["inodes"] = own_inodes() ? "own" : "shared";
    return out;
  }

  bool has_own_users() const override { return shared_->own_users; }

  std::vector<fs::path> shared_places() const override {
    if (own_inodes()) return {};
    const HostView& v = shared_->view;
    std::vector<fs::path> out = {v.etc, v.init, v.empty};
    out.insert(out.end(), v.dirs.begin(), v.dirs.end());
    out.insert(out.end(), v.etc_shown.begin(), v.etc_shown.end());
    for (const Device& device : kDevices) out.push_back(fs::path("/dev") / device.name);
    return out;
  }

  Status clean_up(const std::set<std::string>&) override {
    shared_->cgroups.clean_up();
    kill_orphans(shared_->label);
    remove_left_folders(kEtcPrefix);
    return ok_status();
  }

 private:
  bool own_inodes() const { return shared_->lean && shared_->lean->shared().empty(); }

  HeldFolder files_;
  std::shared_ptr<Shared> shared_;
};

// One empty command proves namespaces, mounts, filter and groups before any run depends on them.
Status probe(const std::shared_ptr<Shared>& shared, const fs::path& empty) {
  SandboxSpec spec;
  spec.label = "probe";
  spec.workspace = empty;
  if (shared->own_users) {
    PROCTOR_TRY(spec.user, OwnUser::take());
  }
  ExecSpec nothing;
  nothing.command = ":";
  nothing.timeout = milliseconds(10'000);
  bool seen = !shared->watch;
  nothing.attempted = [&seen](const CallAttempt&) { seen = true; };
  nothing.see_programs = true;
  BubblewrapSandbox sandbox(shared, spec);
  PROCTOR_TRY(const ExecOutcome outcome, sandbox.run(nothing, {}));
  if (outcome.end == ExecOutcome::End::kExited && outcome.exit_code == 0 && seen)
    return ok_status();
  return Error{Errc::kUnavailable, "bubblewrap: an empty command did not succeed inside it"};
}

// Where temporary folders cannot be mapped neither can most of what sandboxes are shown.
Status own_users_work(const SandboxOptions& options, const fs::path& folder) {
  if (!options.own_users) return Error{Errc::kUnavailable, "one user is wanted (--one-user)"};
  PROCTOR_TRY(const std::shared_ptr<const OwnUser> user, OwnUser::take());
  PROCTOR_TRY(const UniqueFd seen, user->view(folder));
  return ok_status();
}

// With as much of what keeps sandboxes apart and cheap as works here.
Status settle(const std::shared_ptr<Shared>& shared, const fs::path& empty) {
  Status works = probe(shared, empty);
  const auto without = [&](bool had, const char* what, const auto& drop) {
    if (works.ok() || !had) return;
    log::info(what + works.error().detail);
    drop();
    works = probe(shared, empty);
  };
  std::optional<CallWatch> watch;
  without(shared->watch.has_value(),
          "attempts of commands are not seen: ", [&] { watch.swap(shared->watch); });
  if (!works.ok()) watch.swap(shared->watch);  // it is something else
  without(shared->own_users, "all sandboxes are one user: ", [&] { shared->own_users = false; });
  without(shared->counts.works(), "sandboxes are counted with the worker: ", [&] {
    shared->counts = UserCountsPool::none();
  });
  without(shared->lean.has_value(),
          "bubblewrap starts on the whole host: ", [&] { shared->lean.reset(); });
  return works;
}

enum class Tried { kNo, kYes };

Result<std::unique_ptr<SandboxEngine>> open_engine(const SandboxOptions& options, Tried tried) {
  HostView view = look_at_host();
  if (view.bwrap.empty()) {
    return Error{Errc::kUnavailable,
                 "bubblewrap: no bwrap on PATH (on Debian: apt-get install bubblewrap)"};
  }
  PROCTOR_TRY(HeldFolder files, make_runtime_folder(kEtcPrefix));
  view.etc = files.path() / "etc";
  view.init = files.path() / "init";
  view.empty = files.path() / "empty";
  const fs::path empty = view.empty;
  PROCTOR_CHECK_OK(make_dirs(empty));
  PROCTOR_CHECK_OK(make_dirs(view.etc));
  PROCTOR_CHECK_OK(fill_etc(view.etc));
  PROCTOR_CHECK_OK(write_file(view.init, oci_init_program(), Durability::kLazy, /*mode=*/0755));
  PROCTOR_TRY(std::string seccomp, make_seccomp_program(Programs::kNative));
  auto shared = std::make_shared<Shared>(
      std::move(view), std::move(seccomp),
      options.cgroups ? CgroupHost::detect(options.owner) : CgroupHost::none(), options.owner);
  if (Result<CallWatch> watch = CallWatch::make(Programs::kNative); watch.ok())
    shared->watch = std::move(watch).value();
  else
    log::info("attempts of commands are not seen: " + watch.error().detail);
  const fs::path root = files.path() / "root";
  PROCTOR_CHECK_OK(make_dirs(root));
  Result<LeanHost> lean = LeanHost::make(shared->view, root);
  if (!lean.ok() && ::geteuid() == 0)  // nobody else can make one
    log::info("bubblewrap starts on the whole host: " + lean.error().detail);
  if (lean.ok()) {
    shared->lean = std::move(lean).value();
    if (const std::string& why = shared->lean->shared(); !why.empty())
      log::info("sandboxes share inodes of this host's folders: " + why);
    const Status users = own_users_work(options, empty);
    shared->own_users = users.ok();
    if (!users.ok() && ::geteuid() == 0)
      log::info("all sandboxes are one user: " + users.error().detail);
  }
  if (tried == Tried::kYes) PROCTOR_CHECK_OK(settle(shared, empty));
  return std::unique_ptr<SandboxEngine>(
      std::make_unique<BubblewrapEngine>(std::move(files), std::move(shared)));
}
}  // namespace

Result<std::unique_ptr<SandboxEngine>> open_bubblewrap_engine(const SandboxOptions& options) {
  return open_engine(options, Tried::kYes);
}

Result<std::unique_ptr<SandboxEngine>> open_untried_bubblewrap_engine(
    const SandboxOptions& options) {
  return open_engine(options, Tried::kNo);
}
}  // namespace proctor
