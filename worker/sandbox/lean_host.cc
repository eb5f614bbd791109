#include "worker/sandbox/lean_host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "worker/sandbox/devices.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {

constexpr std::size_t kPlaces = 96;  // of each kind; a contract with more gets the whole host
constexpr const char* kEtc = "/etc";
constexpr const char* kInit = "/init";
constexpr const char* kEmpty = "/empty";
constexpr const char* kDev = "/dev";
constexpr const char* kTerminals = "/dev/pts";
constexpr const char* kTerminalsAlone = "/pts";

std::string place(const char* kind, std::size_t i) {
  return std::string("/") + kind + "/" + std::to_string(i);
}

// Everything below works in a folder that becomes the root of a namespace of this thread's own.
class HostMaker {
 public:
  explicit HostMaker(fs::path root) : root_(std::move(root)) {}

  Status run(const HostView& host) {
    PROCTOR_CHECK_OK(call("unshare", ::unshare(CLONE_FS | CLONE_NEWNS)));
    // Slave: what is unmounted on the host goes away here too, and nothing of ours gets out.
    PROCTOR_CHECK_OK(call("make mounts slaves", mount("", "/", nullptr, MS_REC | MS_SLAVE)));
    PROCTOR_CHECK_OK(call("mount tmpfs", ::mount("tmpfs", root_.c_str(), "tmpfs",
                                                 MS_NOSUID | MS_NOEXEC, "mode=755,size=1m")));
    for (const std::string& dir : host.dirs) PROCTOR_CHECK_OK(bind(dir, dir, MS_REC));
    for (const auto& [link, target] : host.links)
      PROCTOR_CHECK_OK(call("link", ::symlink(target.c_str(), (root_.string() + link).c_str())));
    PROCTOR_CHECK_OK(bind(host.etc.string(), kEtc, 0));
    // Parts of our etc from here on: bwrap makes one mount for all of it.
    for (const std::string& dir : host.etc_shown)
      PROCTOR_CHECK_OK(call("bind " + dir, mount(dir, root_.string() + dir, nullptr, MS_BIND)));
    PROCTOR_CHECK_OK(bind("/proc", "/proc", 0));
    PROCTOR_CHECK_OK(show_devices());
    PROCTOR_CHECK_OK(bind_file(host.init.string(), kInit));
    PROCTOR_CHECK_OK(make_dirs(root_ / "tmp"));  // bwrap builds there
    PROCTOR_CHECK_OK(make_dirs(root_.string() + kEmpty));
    for (std::size_t i = 0; i < kPlaces; ++i) {
      PROCTOR_CHECK_OK(make_dirs(root_.string() + place("folder", i)));
      PROCTOR_CHECK_OK(make_dirs(root_ / "file"));
      PROCTOR_CHECK_OK(write_file(root_.string() + place("file", i), "", Durability::kLazy));
    }
    PROCTOR_CHECK_OK(call("chdir", ::chdir(root_.c_str())));
    // Over itself: what was the root is then on top, and taken away with all that hangs on it.
    PROCTOR_CHECK_OK(call("pivot_root", static_cast<int>(::syscall(SYS_pivot_root, ".", "."))));
    PROCTOR_CHECK_OK(call("detach the host", ::umount2(".", MNT_DETACH)));
    PROCTOR_CHECK_OK(call("chdir", ::chdir("/")));
    return call("make it read-only", close_root());
  }

  bool own_devices = false;

 private:
  static int mount(const std::string& from, const std::string& at, const char* type,
                   unsigned long flags) {
    return ::mount(from.c_str(), at.c_str(), type, flags, nullptr);
  }
  // A child that another thread has just made holds what was open for writing here until it runs
  // its program: the mount is busy for that long.
  static int close_root() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
      const int done =
          mount("", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC);
      if (done == 0 || errno != EBUSY || until <= std::chrono::steady_clock::now()) return done;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static Status call(const std::string& what, int result) {
    if (result == 0) return ok_status();
    return Error{Errc::kUnavailable, errno_error(what, errno).detail};
  }
  // Where no device can be made bwrap takes the host's: each of them read-only, and still a device.
  Status show_devices() {
    const std::string dev = root_.string() + kDev;
    PROCTOR_CHECK_OK(make_dirs(dev));
    own_devices = make_devices(dev.c_str());
    if (!own_devices) {
      PROCTOR_CHECK_OK(make_dirs(root_.string() + kTerminalsAlone));
      PROCTOR_CHECK_OK(call("bind /dev", mount(kDev, dev, nullptr, MS_BIND)));
      for (const Device& device : kDevices) {
        const std::string at = dev + "/" + device.name;
        PROCTOR_CHECK_OK(call("bind " + at, mount(at, at, nullptr, MS_BIND)));
        PROCTOR_CHECK_OK(
            call("close " + at, mount("", at, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY)));
      }
      return ok_status();
    }
    for (const char* folder : {"/pts", "/shm"}) PROCTOR_CHECK_OK(make_dirs(dev + folder));
    for (const auto& [link, target] : {std::pair{"/ptmx", "pts/ptmx"},
                                       {"/fd", "/proc/self/fd"},
                                       {"/core", "/proc/kcore"},
                                       {"/stdin", "/proc/self/fd/0"},
                                       {"/stdout", "/proc/self/fd/1"},
                                       {"/stderr", "/proc/self/fd/2"}})
      PROCTOR_CHECK_OK(call("link", ::symlink(target, (dev + link).c_str())));
    return ok_status();
  }
  Status bind(const std::string& from, const std::string& at, unsigned long flags) {
    PROCTOR_CHECK_OK(make_dirs(root_.string() + at));
    return call("bind " + from, mount(from, root_.string() + at, nullptr, MS_BIND | flags));
  }
  Status bind_file(const std::string& from, const std::string& at) {
    PROCTOR_CHECK_OK(write_file(root_.string() + at, "", Durability::kLazy));
    return call("bind " + from, mount(from, root_.string() + at, nullptr, MS_BIND));
  }

  fs::path root_;
};

}  // namespace

Result<LeanHost> LeanHost::make(const HostView& host, const fs::path& scratch) {
  UniqueFd ns;
  bool own_devices = false;
  std::optional<Error> failed;
  // A namespace belongs to a thread; the descriptor keeps this one when its thread is gone.
  std::thread([&] {
    HostMaker maker(scratch);
    if (Status made = maker.run(host); !made.ok()) {
      failed = std::move(made).error();
      return;
    }
    own_devices = maker.own_devices;
    ns.reset(::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (!ns.valid()) failed = errno_error("open a mount namespace", errno);
  }).join();
  if (failed) return *failed;
  HostView view = host;
  view.etc = kEtc;
  view.init = kInit;
  view.empty = kEmpty;
  if (own_devices) view.dev = kDev;
  view.close_devices = false;
  view.terminals = own_devices ? kTerminals : kTerminalsAlone;
  view.etc_shown.clear();
  return LeanHost(std::move(ns), std::move(view));
}

bool LeanHost::show(SandboxSpec& spec, HostView& view, Shown& shown) const {
  std::size_t folders = 0, files = 0;
  Shown out;
  const auto rename = [&](const std::string& from, bool written) -> std::optional<std::string> {
    struct stat st {};
    if (::stat(from.c_str(), &st) != 0) return std::nullopt;
    std::size_t& next = S_ISDIR(st.st_mode) ? folders : files;
    if (next == kPlaces) return std::nullopt;
    out.places.push_back({from, place(S_ISDIR(st.st_mode) ? "folder" : "file", next++), written});
    return out.places.back().at;
  };
  SandboxSpec inside = spec;
  HostView seen = view_;
  out.user = spec.user.get();
  const auto workspace = rename(spec.workspace.string(), false);  // it may be his as it is
  if (!workspace) return false;
  inside.workspace = *workspace;
  for (SandboxMount& m : inside.mounts) {
    const auto at = rename(m.host.string(), m.writable);
    if (!at) return false;
    m.host = *at;
  }
  if (spec.network && !seen.resolver.empty()) {
    const auto at = rename(seen.resolver, false);
    if (!at) return false;
    seen.resolver = *at;
  }
  spec = std::move(inside);
  view = std::move(seen);
  shown = std::move(out);
  return true;
}

bool LeanHost::enter(const Shown& shown) const {
  std::array<int, 2 * kPlaces> trees{};
  // With what is mounted below, as bwrap's own binding has it.
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    const Shown::Place& place = shown.places[i];
    trees.at(i) = ::open_tree(AT_FDCWD, place.from.c_str(),
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (trees.at(i) < 0) return false;
    // What cannot be his may still be read.
    if (shown.user != nullptr && !shown.user->lend(trees.at(i)) && place.written) return false;
  }
  if (::setns(ns_.get(), CLONE_NEWNS) != 0 || ::unshare(CLONE_NEWNS) != 0) return false;
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    if (::move_mount(trees.at(i), "", AT_FDCWD, shown.places[i].at.c_str(),
                     MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return false;
    raw::close(trees.at(i));
  }
  // Of this sandbox alone: nobody else's terminals are there to be opened.
  return ::mount("devpts", view_.terminals.c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
                 kTerminalOptions) == 0;
}

}  // namespace proctor
