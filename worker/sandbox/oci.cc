#include "worker/sandbox/oci.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "worker/sandbox/box_namespaces.h"
#include "worker/sandbox/boxed_sandbox.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/lean_host.h"
#include "worker/sandbox/oci_config.h"
#include "worker/sandbox/raw_calls.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
constexpr mode_t kFolder = 0755;

// The container reads the options of its root in /proc/self/mountinfo, where the kernel keeps them
// as they were given: by descriptor they tell nothing of this host.  Without memory of its own, for
// a child that has its parent's.
class Words {
 public:
  Words& add(const char* text) {
    while (*text != '\0' && end_ + 1 < sizeof text_) text_[end_++] = *text++;
    text_[end_] = '\0';
    return *this;
  }
  Words& add_descriptor(int fd) {
    char digits[16] = {};
    std::size_t at = sizeof digits - 1;
    do {
      digits[--at] = static_cast<char>('0' + fd % 10);
      fd /= 10;
    } while (0 < fd);
    return add("/proc/self/fd/").add(digits + at);
  }
  const char* text() const { return static_cast<const char*>(text_); }

 private:
  char text_[160] = {};
  std::size_t end_ = 0;
};

// As options of tmpfs.
std::string owned_by(const UserCounts* owner) {
  if (owner == nullptr) return {};
  const std::string id = std::to_string(owner->root());
  return std::string(",uid=").append(id).append(",gid=").append(id);
}

// The root file system of one OCI container: an overlay of an image's unpacked root and a private
// tmpfs, mounted by the process that becomes the runtime, in a mount namespace of its own.  When
// that process and its container are gone, so is all of it.
// Constructed before fork; enter() runs between fork and exec and calls only what is
// async-signal-safe.  Source: mount_namespaces(7), overlayfs.rst.
class OciRoot {
 public:
  // What is mounted beside the root, for a runtime that makes it a container of a user namespace.
  struct Beside {
    bool devices = false;  // of its own, in place of the host's /dev: shown would be the host's
    bool sys = false;      // sysfs of the network it starts in, which is not that namespace's
    // Where root is a user of its own, to whom the root and what is shown belong; null: he is not.
    const UserCounts* owner = nullptr;
  };
  // Folders that lie in `bundle` and are made here: the root itself, and what backs it, which holds
  // `layer_bytes` at most.
  static Result<OciRoot> prepare(const fs::path& image_root, const fs::path& bundle,
                                 std::uint64_t layer_bytes, Beside beside) {
    OciRoot out(image_root, bundle, layer_bytes, beside);
    PROCTOR_CHECK_OK(make_dirs(out.root_));
    PROCTOR_CHECK_OK(make_dirs(out.layer_));
    if (beside.sys) PROCTOR_CHECK_OK(make_dirs(out.sys_));
    return out;
  }

  const fs::path& path() const { return root_; }
  const std::string& sys() const { return sys_; }  // where that is; empty: it is not
  // A folder or file of the host's as the owner is to see it, and at which place; `written`: or
  // enter() fails, for what cannot be his may still be read.
  Result<std::string> show(const std::string& from, bool written) {
    struct stat st {};
    if (::stat(from.c_str(), &st) != 0) return errno_error("show " + from, errno);
    std::string at = layer_ + "/shown" + std::to_string(places_.size());
    places_.push_back({from, at, S_ISDIR(st.st_mode), written});
    return at;
  }

  // A folder of the host's with inodes of this container's own, as the owner is to see it, and at
  // which place.  Without what is mounted below.
  std::string show_own(const std::string& from) {
    std::string at = layer_ + "/own" + std::to_string(own_.size());
    own_.push_back({from, at, /*folder=*/true, /*written=*/false});
    return at;
  }

  // False: errno says why not.
  bool enter() const {
    // Slave: what is unmounted on the host goes away here too, and nothing of ours gets out.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
      return false;
    // Backs the mount points that the runtime makes before it turns the root read-only.
    if (::mount("tmpfs", layer_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, layer_options_.c_str()) !=
            0 ||
        ::mkdir(upper_.c_str(), kFolder) != 0 || ::mkdir(work_.c_str(), kFolder) != 0)
      return false;
    if (!raw::make_file(marker_.c_str(), kFolder) || !give(upper_) || !give(marker_)) return false;
    if (!mount_overlay()) return false;
    if (beside_.sys && ::mount("sysfs", sys_.c_str(), "sysfs",
                               MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
      return false;
    if (::mkdir(none_.c_str(), kFolder) != 0) return false;
    for (const Place& place : own_)
      if (!attach_own(place)) return false;
    for (const Place& place : places_)
      if (!attach(place)) return false;
    return !beside_.devices || mount_devices();
  }

 private:
  OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes,
          Beside beside)
      : root_(bundle / "root"),
        layer_(bundle / "layer"),
        upper_(layer_ + "/upper"),
        work_(layer_ + "/work"),
        none_(layer_ + "/none"),
        // Programs ask for it to know that they are in a container, as the Docker Engine lets them.
        marker_(upper_ + "/.dockerenv"),
        image_(image_root.string()),
        owned_(owned_by(beside.owner)),
        layer_options_("mode=755,size=" + std::to_string(layer_bytes) + owned_),
        device_options_("mode=755,size=64k" + owned_),
        sys_(beside.sys ? bundle / "sys" : fs::path()),
        beside_(beside) {}

  struct Place {
    std::string from, at;
    bool folder, written;
  };
  // Gives it to the owner, if there is one.
  bool give(const std::string& path) const {
    return beside_.owner == nullptr ||
           ::lchown(path.c_str(), beside_.owner->root(), beside_.owner->root()) == 0;
  }

  int open_as_owner(const std::string& folder) const {
    if (beside_.owner == nullptr) return raw::open_place(folder.c_str());
    const int tree = ::open_tree(AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return 0 <= tree && beside_.owner->lend(tree) ? tree : -1;
  }

  bool mount_overlay() const {
    const int image = open_as_owner(image_), layer = raw::open_place(layer_.c_str());
    if (image < 0 || layer < 0) return false;
    Words options;
    options.add("lowerdir=").add_descriptor(image).add(",upperdir=").add_descriptor(layer);
    options.add("/upper,workdir=").add_descriptor(layer).add("/work");
    return ::mount("overlay", root_.c_str(), "overlay", MS_NODEV, options.text()) == 0 &&
           raw::close(image) && raw::close(layer);
  }

  bool mount_devices() const {
    return ::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, device_options_.c_str()) == 0 &&
           make_devices("/dev", beside_.owner == nullptr ? 0 : beside_.owner->root());
  }

  bool attach(const Place& place) const {
    constexpr unsigned kForOwner = 0600;
    if (place.folder ? ::mkdir(place.at.c_str(), kFolder) != 0 && errno != EEXIST
                     : !raw::make_file(place.at.c_str(), kForOwner))
      return false;
    const int tree = ::open_tree(AT_FDCWD, place.from.c_str(),
                                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0) return false;
    if (beside_.owner != nullptr && !beside_.owner->lend(tree) && place.written) {
      const int error = errno;
      struct stat st {};  // it may be his as it is
      const bool his = ::fstat(tree, &st) == 0 && st.st_uid == beside_.owner->root();
      errno = error;
      if (!his) return false;
    }
    return ::move_mount(tree, "", AT_FDCWD, place.at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
           raw::close(tree);
  }

  bool attach_own(const Place& place) const {
    const int lower = open_as_owner(place.from);
    const int none = raw::open_place(none_.c_str());  // it wants two
    if (lower < 0 || none < 0 || ::mkdir(place.at.c_str(), kFolder) != 0) return false;
    Words options;
    options.add("lowerdir=").add_descriptor(lower).add(":").add_descriptor(none);
    const bool mounted = ::mount("overlay", place.at.c_str(), "overlay",
                                 MS_RDONLY | MS_NODEV | MS_NOATIME, options.text()) == 0;
    if (!raw::close(lower) || !raw::close(none)) return false;
    // Not every file system can lie below an overlay: then it is shown as it is.
    return mounted || attach(place);
  }

  fs::path root_;
  std::string layer_, upper_, work_, none_, marker_, image_, owned_, layer_options_,
      device_options_, sys_;
  Beside beside_;
  std::vector<Place> places_, own_;
};

// runsc: gVisor as the runtime of OCI containers.  The system calls of what runs inside are served
// by a kernel in user space (the "sentry"), and files by a second process (the "gofer"); the host's
// kernel is asked by those two alone, behind a seccomp filter of theirs.
// Pure.  Source: runsc flags(1) of 20221219; gvisor.dev/docs/architecture_guide/security.

// Where everything of one container lies.
struct RunscPlaces {
  fs::path runtime, bundle, state;
  std::string name;
};
// The memory that the sentry, the gofer and runsc hold in the groups beside the command (they were
// seen to need 19 MiB for an empty one).
constexpr std::uint64_t kSentryMemory = std::uint64_t{32} << 20;

// Threads of theirs; and for each process inside one that runs its code and one that serves it.
constexpr std::uint64_t kThreads = 512;
constexpr std::uint64_t kThreadsPerProcess = 4;

// The arguments of runsc, which starts the container.  It is in its control groups, mounts and
// network already, and finds the pipe for the status as its standard input: this version passes no
// other descriptor on.
std::vector<std::string> runsc_argv(const SandboxSpec& spec, const RunscPlaces& places) {
  // A network of its own is one of the sentry's making, with lo alone.  Where others share it, or
  // it is the host's, the host's kernel has the sockets.
  const bool outside = spec.network || spec.shared;
  return {places.runtime.string(), "--root=" + places.state.string(),
          "--log=" + (places.bundle / "log").string(),
          "--platform=ptrace",  // works also where the host is a virtual machine itself
          "--ignore-cgroups",   // we have made them, and it is in them
          std::string("--network=") + (outside ? "host" : "none"),
          // Sockets of the folders that are shown can be spoken to, as in every other kind.
          "--host-uds=open", "run", "--bundle=" + places.bundle.string(), places.name};
}

// Of the host's kernel: what the command may have, and beside it what serves it.
CgroupLimits runsc_limits(const SandboxSpec& spec) {
  CgroupLimits out;
  if (0 < spec.memory_bytes) out.memory_bytes = spec.memory_bytes + kSentryMemory;
  if (0 < spec.processes)
    out.processes =
        static_cast<std::uint64_t>(processes_limit(spec)) * kThreadsPerProcess + kThreads;
  out.cpus = spec.cpus;
  out.cpu_usage = true;
  return out;
}

constexpr const char* kFolderPrefix = "proctor-oci-";
constexpr std::uint64_t kMountPointBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kRootBytes = std::uint64_t{1} << 30;
constexpr std::size_t kLogMax = std::size_t{64} << 10;

struct Shared {
  Shared(fs::path program, HeldFolder folder, ImageStore store, CgroupHost groups,
         std::string seccomp)
      : runtime(std::move(program)),
        dir(std::move(folder)),
        images(std::move(store)),
        cgroups(std::move(groups)),
        filter(for_first_process(seccomp)),
        userspace(runtime.filename() == kRunsc),
        counts(runtime.filename() == kRunc ? UserCountsPool(UserCountsPool::For::kContainer)
                                           : UserCountsPool::none()) {}
  fs::path shown() const { return dir.path() / "shown"; }  // to every container
  fs::path init() const { return shown() / "init"; }
  fs::path etc() const { return shown() / "etc"; }
  fs::path state() const { return dir.path() / "state"; }  // the runtime's own
  fs::path runtime;
  HeldFolder dir;
  ImageStore images;
  CgroupHost cgroups;
  std::string filter;                // for system calls, the first process's
  std::optional<CallWatch> watch{};  // none: nobody sees what a command attempts
  bool userspace;                    // by runsc
  UserCountsPool counts;
  bool own_users = false;  // the root of a container is as its spec says
  std::atomic<std::uint64_t> next{1};
};

struct OciBox final : Box {
  ~OciBox() override {
    group = Cgroup();  // what still ran in it is dead now, and holds nothing below
    (void)remove_tree(state).ok();
    (void)remove_tree(bundle).ok();
    (void)remove_tree(mounts).ok();
  }
  std::string complaint(const std::string& said) const override {
    const Result<std::string> log = read_file(bundle / "log", kLogMax);
    const std::string& text = log.ok() && !log->empty() ? *log : said;
    return runtime + " did not start the command: " +
           (text.empty() ? std::string("it ended without a word") : printable(text, 600));
  }
  fs::path bundle, state, mounts;  // mounts: what those inside look through
  std::string runtime;             // its name
  std::shared_ptr<const UserCounts> counts;
  std::optional<OciRoot> root;
};

class OciSandbox final : public BoxedSandbox {
 public:
  OciSandbox(std::shared_ptr<Shared> shared, SandboxSpec spec, fs::path image_root)
      : BoxedSandbox(std::move(spec)),
        shared_(std::move(shared)),
        image_root_(std::move(image_root)) {}

 private:
  Result<std::unique_ptr<Box>> make_box(const ExecSpec& exec) override {
    const std::uint64_t number = shared_->next++;
    std::string name = "c" + std::to_string(number);
    // runsc's control socket has the container's name in the host's network namespace, where other
    // workers have theirs.
    if (shared_->userspace) name += "-" + shared_->dir.path().filename().string();
    // Beside those of bubblewrap sandboxes of the same attempt.
    const std::string group = spec().label + ".oci" + std::to_string(number);
    auto box = std::make_unique<OciBox>();
    box->cpu_by_group = true;
    box->runtime = shared_->runtime.filename();
    box->watch_memory = !shared_->cgroups.has("memory");
    box->watch_sockets = shared_->cgroups.socket_keeper() == "monitor";
    box->bundle = shared_->dir.path() / name;
    box->state = shared_->state() / name;
    box->mounts = box->bundle.string() + ".mounts";
    PROCTOR_CHECK_OK(make_private_dirs(box->bundle));
    PROCTOR_CHECK_OK(make_dirs(box->mounts));
    if (spec().user) box->launch.speaker = spec().user->id();
    PROCTOR_TRY(box->counts, shared_->counts.take(box->launch.speaker));
    PROCTOR_TRY(box->root,
                OciRoot::prepare(image_root_, box->mounts, layer_bytes(), shown_beside(*box)));
    OciHost host = host_of(*box, group);
    host.watched = exec.attempted && shared_->watch;
    SandboxSpec seen = spec();
    const fs::path own = box->root->show_own(shared_->shown().string());
    host.init = own / "init";
    host.etc = own / "etc";
    const std::set<std::string> own_mounts = show_own(*box->root, seen);
    if (seen.user) PROCTOR_CHECK_OK(show_to_user(*box->root, seen, host, own_mounts));
    PROCTOR_CHECK_OK(write_file(box->bundle / "config.json", oci_config(seen, host, exec.command),
                                Durability::kLazy));
    if (host.watched) box->launch.seccomp = shared_->watch->given(spec(), exec);
    box->launch.environment = (host.watched ? for_first_process({}) : shared_->filter) +
                              oci_limits(spec(), host) + oci_environment(spec());
    box->launch.enter = [root = &*box->root] { return root->enter(); };
    box->launch.own_null = shown_beside(*box).devices;
    box->launch.kill_inside = [cgroup = &box->group] { cgroup->kill(); };
    if (shared_->userspace) {
      PROCTOR_CHECK_OK(start_by_runsc(*box, name));
    } else {
      start_by_runc(*box, name, group);
    }
    return std::unique_ptr<Box>(std::move(box));
  }

  void start_by_runc(OciBox& box, const std::string& name, const std::string& group) const {
    box.group = shared_->cgroups.runtime_group(group, spec().memory_bytes);
    // Kept after its end: the counts are read, then all of it is removed here, which costs less
    // than a second runtime.
    box.launch.argv = {shared_->runtime.string(), "--root", shared_->state().string(), "--log",
                       box.bundle / "log", "run", "--keep", "--preserve-fds",
                       // The status, the environment and, if it is watched, the filters.
                       box.launch.seccomp.empty() ? "2" : "3", "--bundle", box.bundle.string(),
                       name};
    // For some milliseconds of work threads only get in each other's way, and there is nothing to
    // collect: together that saves a tenth.
    box.launch.env = {"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=64MiB"};
  }

  Status start_by_runsc(OciBox& box, const std::string& name) const {
    PROCTOR_CHECK_OK(make_private_dirs(box.state));
    PROCTOR_TRY(box.group, shared_->cgroups.make("runsc-" + name, runsc_limits(spec())));
    box.launch.doors = &box.group.doors();
    box.launch.argv = runsc_argv(spec(), {shared_->runtime, box.bundle, box.state, name});
    box.launch.status_as_input = true;
    box.runtime_memory = kSentryMemory;
    return ok_status();
  }

  // What a runtime in a user namespace cannot make, or show, by itself.
  OciRoot::Beside shown_beside(const OciBox& box) const {
    if (!box.counts) return {};
    return {.devices = true,
            .sys = spec().network || spec().shared,
            .owner = spec().user ? box.counts.get() : nullptr};
  }

  // Those of its mounts that others are shown too, with inodes of its own; an overlay would hide
  // what is mounted below.
  static std::set<std::string> show_own(OciRoot& root, SandboxSpec& seen) {
    std::set<std::string> out;
    std::optional<std::vector<std::string>> mounted;
    std::error_code ec;
    for (SandboxMount& m : seen.mounts) {
      if (!m.shared || m.writable || !fs::is_directory(m.host, ec)) continue;
      if (!mounted) {
        auto here = mount_points_here();
        if (!here.ok()) break;
        mounted = std::move(here).value();
      }
      if (!mounts_below(*mounted, m.host.string()).empty()) continue;
      m.host = root.show_own(m.host.string());
      out.insert(m.at);
    }
    return out;
  }

  // All that a container is shown of this host, as it belongs to him, where the root has it.
  static Status show_to_user(OciRoot& root, SandboxSpec& seen, OciHost& host,
                             const std::set<std::string>& own_mounts) {
    if (!seen.program) {
      PROCTOR_TRY(seen.workspace, root.show(seen.workspace.string(), /*written=*/true));
    }
    for (SandboxMount& m : seen.mounts) {
      if (own_mounts.contains(m.at)) continue;
      PROCTOR_TRY(m.host, root.show(m.host.string(), m.writable));
    }
    if (seen.network) {
      PROCTOR_TRY(host.resolver, root.show(host.resolver.string(), /*written=*/false));
    }
    return ok_status();
  }

  // A program's root is writable: what it writes there is memory, and counts as such.
  std::uint64_t layer_bytes() const {
    if (!spec().program) return kMountPointBytes;
    return 0 < spec().memory_bytes ? spec().memory_bytes : kRootBytes;
  }

  OciHost host_of(const OciBox& box, const std::string& group) const {
    OciHost host;
    host.rootfs = box.root->path();
    host.cgroups_path = shared_->cgroups.runtime_path(group);
    host.open_files = open_files_here(spec().processes);
    host.limit_memory = shared_->cgroups.has("memory");
    host.limit_processes = shared_->cgroups.has("pids");
    host.limit_cpus = shared_->cgroups.has("cpu");
    host.userspace = shared_->userspace;
    host.hide_groups = shared_->cgroups.has("unified");
    host.counts = box.counts.get();
    host.sys = box.root->sys();
    host.limits_itself = spec().user != nullptr;
    return host;
  }

  std::shared_ptr<Shared> shared_;
  fs::path image_root_;
};

class OciEngine final : public SandboxEngine {
 public:
  explicit OciEngine(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  SandboxKind kind() const override { return SandboxKind::kOci; }
  bool has_own_users() const override { return shared_->own_users; }

  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    PROCTOR_CHECK_OK(check_image_spec("oci", spec));
    std::error_code ec;
    if (spec.program) {
      // It sees only what its own mounts show.
    } else if (!spec.workspace.is_absolute() || !fs::is_directory(spec.workspace, ec)) {
      return Error{Errc::kNotFound, "oci sandbox: workspace '" + spec.workspace.string() +
                                        "': expected a host folder"};
    }
    if (spec.user && !shared_->own_users)
      return Error{Errc::kInvalid, "oci: no command runs here as a user of its own"};
    PROCTOR_TRY(const StoredImage image, shared_->images.find(spec.image));
    SandboxSpec whole = spec;
    if (spec.program) {
      if (!image.config)
        return Error{
            Errc::kInvalid,
            "image " + spec.image + " was imported before programs were kept: import it again"};
      PROCTOR_TRY(whole, with_image_program(spec, *image.config));
    }
    return std::unique_ptr<Sandbox>(
        std::make_unique<OciSandbox>(shared_, std::move(whole), shared_->images.root_of(image)));
  }

  Result<std::shared_ptr<SharedNetwork>> open_network(const std::string&,
                                                      const std::string&) override {
    return BoxNetwork::make();
  }

  std::map<std::string, std::string> enforcement() const override {
    auto out = shared_->cgroups.keepers();
    out["attempts"] = shared_->watch ? "seccomp" : "none";
    if (shared_->userspace) {
      for (const char* limit : {"processes", "open_files", "file", "network", "seccomp",
                                "user_counts", "inodes", "kernel"})
        out[limit] = "gvisor";
      out["memory_sockets"] = shared_->cgroups.keeper("memory", "none");
      return out;
    }
    out["user_counts"] = shared_->counts.works() ? "namespace" : "none";
    out["users"] = shared_->own_users ? "own" : "one";
    out["inodes"] = shared_->counts.works() ? "own" : "shared";
    return out;
  }

  Status clean_up(const std::set<std::string>&) override {
    shared_->cgroups.clean_up();
    remove_left_oci_folders();
    return ok_status();
  }

 private:
  std::shared_ptr<Shared> shared_;
};

// The files that the Docker Engine writes into a container.
Status fill_etc(const fs::path& etc) {
  PROCTOR_CHECK_OK(make_dirs(etc));
  const std::pair<const char*, std::string> files[] = {
      {"hosts",
       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
       "ff00::0\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n"},
      {"hostname", std::string(kContainerHostname) + "\n"},
  };
  for (const auto& [name, text] : files)
    PROCTOR_CHECK_OK(write_file(etc / name, text, Durability::kLazy, kOpenFile));
  return ok_status();
}

// One empty container, whose root is a user of its own, proves that layers and places can be his
// and that the runtime takes such a namespace.
Status own_users_work(const std::shared_ptr<Shared>& shared) {
  if (!shared->counts.works())
    return Error{Errc::kUnavailable, "no user namespace for the runtime to join"};
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-oci-probe"));
  SandboxSpec spec;
  spec.label = "probe";
  PROCTOR_TRY(spec.user, OwnUser::take());
  PROCTOR_TRY(const UniqueFd seen, spec.user->view(shared->images.dir()));
  spec.image = "probe";
  spec.program = {{kContainerInitAt}, {"--lacks"}, "/"};
  spec.mounts = {{dir.path() / "written", "/written", true}};
  for (const char* folder : {"written", "image"}) PROCTOR_CHECK_OK(make_dirs(dir.path() / folder));
  ExecSpec nothing;
  nothing.timeout = std::chrono::minutes(1);
  OciSandbox sandbox(shared, spec, dir.path() / "image");
  PROCTOR_TRY(const ExecOutcome outcome, sandbox.run(nothing, {}));
  if (outcome.end == ExecOutcome::End::kExited && outcome.exit_code == 0) return ok_status();
  return Error{Errc::kUnavailable, "an empty container of one did not succeed"};
}

Result<fs::path> find_runtime(const SandboxOptions& options) {
  if (::geteuid() != 0) return Error{Errc::kUnavailable, "oci: its containers need root"};
  if (options.images.empty()) return Error{Errc::kUnavailable, "oci: no image store was named"};
  return find_oci_runtime(options.oci_runtime);
}
}  // namespace

Result<std::unique_ptr<SandboxEngine>> open_oci_engine(const SandboxOptions& options) {
  if (options.owner.empty()) return Error{Errc::kInvalid, "oci sandbox: an owner without name"};
  PROCTOR_TRY(fs::path runtime, find_runtime(options));
  PROCTOR_TRY(ImageStore images, ImageStore::open(options.images));
  PROCTOR_TRY(HeldFolder dir, make_runtime_folder(kFolderPrefix));
  PROCTOR_TRY(std::string seccomp, make_seccomp_program(Programs::kAlso32Bits));
  auto shared = std::make_shared<Shared>(std::move(runtime), std::move(dir), std::move(images),
                                         CgroupHost::detect(options.owner), std::move(seccomp));
  // What it starts has no process of ours as its parent: only a group names all of it.
  if (shared->userspace && !shared->cgroups.has("memory"))
    return Error{Errc::kUnavailable, "oci: runsc needs control groups that limit memory"};
  PROCTOR_CHECK_OK(fill_etc(shared->etc()));
  PROCTOR_CHECK_OK(
      write_file(shared->init(), oci_init_program(), Durability::kLazy, /*mode=*/0755));
  PROCTOR_CHECK_OK(make_private_dirs(shared->state()));
  if (!shared->userspace) {
    if (Result<CallWatch> watch = CallWatch::make(Programs::kAlso32Bits); watch.ok())
      shared->watch = std::move(watch).value();
    else
      log::info("attempts of commands are not seen: " + watch.error().detail);
    const Status users = options.own_users
                             ? own_users_work(shared)
                             : Status(Error{Errc::kUnavailable, "one user is wanted (--one-user)"});
    shared->own_users = users.ok();
    if (!users.ok()) log::info("all containers are one user: " + users.error().detail);
  }
  return std::unique_ptr<SandboxEngine>(std::make_unique<OciEngine>(std::move(shared)));
}

void remove_left_oci_folders() {
  remove_left_folders(kFolderPrefix);
}

bool oci_offers(const SandboxOptions& options, const std::string& image) {
  if (!find_runtime(options).ok()) return false;
  const auto images = ImageStore::open(options.images);
  return images.ok() && images->find(image).ok();
}

std::optional<std::string> oci_any_image(const SandboxOptions& options) {
  if (!find_runtime(options).ok()) return std::nullopt;
  const auto images = ImageStore::open(options.images);
  if (!images.ok()) return std::nullopt;
  const auto all = images->list();
  if (!all.ok() || all->empty()) return std::nullopt;
  return all->front().id;
}

std::vector<std::string> oci_images(const SandboxOptions& options) {
  std::set<std::string> out;
  const auto images = ImageStore::open(options.images);
  if (!images.ok()) return {};
  const auto all = images->list();
  if (!all.ok()) return {};
  for (const StoredImage& image : *all) {
    out.insert(image_feature(image.id));
    if (!image.manifest.empty()) out.insert(image_feature(image.manifest));
    for (const std::string& name : image.names) out.insert(image_feature(name));
  }
  const auto end = kOciImagesMost < out.size() ? std::next(out.begin(), kOciImagesMost) : out.end();
  return {out.begin(), end};
}
}  // namespace proctor
