#include "worker/sandbox/lean_host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/parse.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {
constexpr mode_t kFolderMode = 0755, kFileMode = 0644;

// Everything below works in a folder that becomes the root of a namespace of this thread's own.
class RoomMaker {
 public:
  RoomMaker(const HostView& host, const fs::path& root, LeanRoom& room)
      : host_(host), root_(root.string()), room_(room) {}

  Status run() {
    PROCTOR_CHECK_OK(call("unshare", ::unshare(CLONE_FS | CLONE_NEWNS)));
    // Slave: what is unmounted on the host goes away here too, and nothing of ours gets out.
    PROCTOR_CHECK_OK(call("make mounts slaves", mount("", "/", nullptr, MS_REC | MS_SLAVE)));
    PROCTOR_TRY(room_.mounted, mount_points_here());
    PROCTOR_CHECK_OK(call("mount tmpfs", ::mount("tmpfs", root_.c_str(), "tmpfs",
                                                 MS_NOSUID | MS_NOEXEC, "mode=755,size=1m")));
    PROCTOR_CHECK_OK(make_dirs(root_ + LeanRoom::kEmpty));
    for (const std::string& dir : host_.dirs) PROCTOR_CHECK_OK(show_with_all_below(dir));
    for (const auto& [link, target] : host_.links)
      PROCTOR_CHECK_OK(call("link", ::symlink(target.c_str(), (root_ + link).c_str())));
    PROCTOR_CHECK_OK(show(host_.etc.string(), LeanRoom::kEtc));
    // Parts of our etc from here on: bwrap makes one mount for all of it.
    for (const std::string& dir : host_.etc_shown) PROCTOR_CHECK_OK(show(dir, dir));
    PROCTOR_CHECK_OK(bind("/proc", "/proc", 0));
    PROCTOR_CHECK_OK(show_devices());
    PROCTOR_CHECK_OK(show_init());
    PROCTOR_CHECK_OK(make_dirs(root_ + "/tmp"));  // bwrap builds there
    PROCTOR_CHECK_OK(make_dirs(root_ + "/file"));
    PROCTOR_CHECK_OK(make_dirs(root_ + "/folder"));
    for (std::size_t i = 0; i < LeanRoom::kPlaces; ++i) {
      const std::string folder = root_ + LeanRoom::place("folder", i);
      const std::string file = root_ + LeanRoom::place("file", i);
      PROCTOR_CHECK_OK(call("mkdir " + folder, ::mkdir(folder.c_str(), kFolderMode)));
      PROCTOR_CHECK_OK(call("make " + file, ::mknod(file.c_str(), S_IFREG | kFileMode, 0)));
    }
    PROCTOR_CHECK_OK(call("chdir", ::chdir(root_.c_str())));
    // Over itself: what was the root is then on top, and taken away with all that hangs on it.
    PROCTOR_CHECK_OK(call("pivot_root", static_cast<int>(::syscall(SYS_pivot_root, ".", "."))));
    PROCTOR_CHECK_OK(call("detach the host", ::umount2(".", MNT_DETACH)));
    PROCTOR_CHECK_OK(call("chdir", ::chdir("/")));
    return call("make it read-only", close_root());
  }

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

  // A folder as it is but for its inodes, at `at` of the room, without what is mounted below.  By
  // a descriptor and from within the empty folder, which is the second that it wants: who is shown
  // it reads the options in /proc/self/mountinfo, and bwrap reads them, letter by letter escaped by
  // the kernel, for each mount that it makes.
  bool overlay(const std::string& folder, const std::string& at) const {
    const UniqueFd lower(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!lower.valid() || ::chdir((root_ + LeanRoom::kEmpty).c_str()) != 0) return false;
    const std::string options =
        std::string("lowerdir=/proc/self/fd/").append(std::to_string(lower.get())).append(":.");
    return ::mount("overlay", (root_ + at).c_str(), "overlay", MS_RDONLY | MS_NODEV | MS_NOATIME,
                   options.c_str()) == 0;
  }
  void note_shared(const std::string& place) {
    if (room_.shared.empty()) room_.shared = errno_error(place, errno).detail;
  }
  Status show(const std::string& folder, const std::string& at) {
    PROCTOR_CHECK_OK(make_dirs(root_ + at));
    if (overlay(folder, at)) return ok_status();
    note_shared(folder);
    return call("bind " + folder, mount(folder, root_ + at, nullptr, MS_BIND));
  }
  Status show_with_all_below(const std::string& folder) {
    PROCTOR_CHECK_OK(make_dirs(root_ + folder));
    if (!overlay(folder, folder)) {
      note_shared(folder);
      return bind(folder, folder, MS_REC);
    }
    for (const std::string& place : mounts_below(room_.mounted, folder)) {
      // What is not there any more, or lies hidden below another mount, nobody can be shown.
      if (::access((root_ + place).c_str(), F_OK) != 0) continue;
      if (overlay(place, place)) continue;
      note_shared(place);
      PROCTOR_CHECK_OK(call("bind " + place, mount(place, root_ + place, nullptr, MS_BIND)));
    }
    return ok_status();
  }

  // Where no device can be made bwrap takes the host's: each of them read-only, and still a device.
  Status show_devices() {
    const std::string dev = root_ + LeanRoom::kDev;
    PROCTOR_CHECK_OK(make_dirs(dev));
    room_.own_devices = make_devices(dev.c_str());
    if (!room_.own_devices) {
      note_shared("make a device");
      PROCTOR_CHECK_OK(make_dirs(root_ + LeanRoom::kTerminalsAlone));
      PROCTOR_CHECK_OK(call("bind /dev", mount(LeanRoom::kDev, dev, nullptr, MS_BIND)));
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
  // One file, through an overlay of the folder that it lies in.
  Status show_init() {
    PROCTOR_CHECK_OK(write_file(root_ + LeanRoom::kInit, "", Durability::kLazy));
    std::string from = host_.init.string();
    const std::string around = "/around";
    PROCTOR_CHECK_OK(make_dirs(root_ + around));
    const bool own = overlay(host_.init.parent_path().string(), around);
    if (own) from = root_ + around + "/" + host_.init.filename().string();
    if (!own) note_shared(from);
    PROCTOR_CHECK_OK(call("bind " + from, mount(from, root_ + LeanRoom::kInit, nullptr, MS_BIND)));
    return own ? call("unmount", ::umount2((root_ + around).c_str(), MNT_DETACH)) : ok_status();
  }
  Status bind(const std::string& from, const std::string& at, unsigned long flags) {
    PROCTOR_CHECK_OK(make_dirs(root_ + at));
    return call("bind " + from, mount(from, root_ + at, nullptr, MS_BIND | flags));
  }

  const HostView& host_;
  const std::string root_;
  LeanRoom& room_;
};
}  // namespace

std::string unescaped_mount_word(std::string_view word) {
  constexpr std::size_t kDigits = 3;
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view digits = word.substr(i + 1, kDigits);
    const auto code = whole_number<unsigned>(digits, 8);
    const bool escaped = word[i] == '\\' && digits.size() == kDigits && code;
    out.push_back(escaped ? static_cast<char>(*code) : word[i]);
    if (escaped) i += kDigits;
  }
  return out;
}

std::vector<std::string> mount_points(std::string_view mountinfo) {
  constexpr std::size_t kPlaceAt = 4;
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    const std::vector<std::string_view> words = split(take_until(mountinfo, '\n'), ' ');
    if (kPlaceAt < words.size() && !words[kPlaceAt].empty())
      out.push_back(unescaped_mount_word(words[kPlaceAt]));
  }
  return out;
}

Result<std::vector<std::string>> mount_points_here() {
  constexpr std::size_t kMountsMost = std::size_t{16} << 20;
  PROCTOR_TRY(const std::string mountinfo, read_file("/proc/thread-self/mountinfo", kMountsMost));
  return mount_points(mountinfo);
}

std::vector<std::string> mounts_below(const std::vector<std::string>& mounted,
                                      const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& place : mounted)
    if (place.starts_with(folder + "/")) out.push_back(place);
  return out;
}

Result<LeanRoom> LeanRoom::make(const HostView& host, const fs::path& scratch) {
  LeanRoom room;
  room.made = std::chrono::steady_clock::now();
  std::optional<Error> failed;
  // A namespace belongs to a thread; the descriptor keeps this one when its thread is gone.
  std::thread([&] {
    if (Status made = RoomMaker(host, scratch, room).run(); !made.ok()) {
      failed = std::move(made).error();
      return;
    }
    room.ns.reset(::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (!room.ns.valid()) failed = errno_error("open a mount namespace", errno);
  }).join();
  if (failed) return *failed;
  return room;
}

namespace {
// An overlay keeps the names that it has looked up: what is new below may not be seen through an
// old one.
constexpr std::chrono::minutes kRoomLife{5};
constexpr const char* kPackages = "/var/lib/dpkg/status";

// Of the host as rooms show it: those folders, and those in them.
std::vector<std::string> watched_of(const HostView& host) {
  std::vector<std::string> out = {kPackages};
  for (const std::string& dir : host.dirs) {
    out.push_back(dir);
    std::error_code ec;
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
      if (it->is_directory(ec)) out.push_back(it->path().string());
  }
  return out;
}

std::string stamp_of(const std::vector<std::string>& watched) {
  std::string out;
  for (const std::string& place : watched) {
    struct stat st {};
    if (::stat(place.c_str(), &st) != 0) continue;
    out.append(std::to_string(st.st_ino)).append(" ");
    out.append(std::to_string(st.st_mtim.tv_sec)).append(".");
    out.append(std::to_string(st.st_mtim.tv_nsec)).append("\n");
  }
  return out;
}
}  // namespace

Result<std::unique_ptr<const LeanRoom>> LeanHost::make_room(const Pool& pool) {
  std::string stamp = stamp_of(pool.watched);
  PROCTOR_TRY(LeanRoom made, LeanRoom::make(pool.host, pool.scratch));
  made.stamp = std::move(stamp);
  return std::make_unique<const LeanRoom>(std::move(made));
}

Result<LeanHost> LeanHost::make(const HostView& host, const fs::path& scratch) {
  auto pool = std::make_shared<Pool>();
  pool->host = host;
  pool->scratch = scratch;
  pool->watched = watched_of(host);
  PROCTOR_TRY(auto first, make_room(*pool));
  pool->shared = first->shared;
  pool->own_devices = first->own_devices;
  HostView& view = pool->view;
  view = host;
  view.etc = LeanRoom::kEtc;
  view.init = LeanRoom::kInit;
  view.empty = LeanRoom::kEmpty;
  if (pool->own_devices) view.dev = LeanRoom::kDev;
  view.close_devices = false;
  view.terminals = pool->own_devices ? LeanRoom::kTerminals : LeanRoom::kTerminalsAlone;
  view.etc_shown.clear();
  pool->idle.push_back(std::move(first));
  return LeanHost(std::move(pool));
}

Result<std::shared_ptr<const LeanRoom>> LeanHost::take(Then then) const {
  const std::string stamp = stamp_of(pool_->watched);
  const auto oldest = std::chrono::steady_clock::now() - kRoomLife;
  std::unique_ptr<const LeanRoom> one;
  std::vector<std::unique_ptr<const LeanRoom>> old;  // unmounted when nobody waits for the lock
  {
    const std::lock_guard lock(pool_->mutex);
    while (!one && !pool_->idle.empty()) {
      auto next = std::move(pool_->idle.back());
      pool_->idle.pop_back();
      (next->stamp == stamp && oldest <= next->made ? one : old.emplace_back()) = std::move(next);
    }
  }
  if (!one) {
    PROCTOR_TRY(one, make_room(*pool_));
    // The same command line, and the same promise, for all.
    if (one->own_devices != pool_->own_devices || (pool_->shared.empty() && !one->shared.empty()))
      return Error{Errc::kUnavailable,
                   "bubblewrap: what the first sandbox was shown of this host can be shown to no "
                   "further one: " +
                       one->shared};
  }
  if (then == Then::kNobodys) return std::shared_ptr<const LeanRoom>(std::move(one));
  return std::shared_ptr<const LeanRoom>(one.release(), [pool = pool_](const LeanRoom* used) {
    const std::lock_guard lock(pool->mutex);
    pool->idle.emplace_back(used);
  });
}

Result<bool> LeanHost::show(SandboxSpec& spec, HostView& view, Shown& shown, Then then) const {
  std::size_t folders = 0, files = 0;
  Shown out;
  PROCTOR_TRY(out.room, take(then));
  const auto rename = [&](const std::string& from, bool written,
                          bool own = false) -> std::optional<std::string> {
    struct stat st {};
    if (::stat(from.c_str(), &st) != 0) return std::nullopt;
    const bool folder = S_ISDIR(st.st_mode);
    std::size_t& next = folder ? folders : files;
    if (next == LeanRoom::kPlaces) return std::nullopt;
    out.places.push_back({from, LeanRoom::place(folder ? "folder" : "file", next++), written, {}});
    Shown::Place& place = out.places.back();
    // An overlay would hide what is mounted below.
    if (own && folder && shared().empty() && mounts_below(out.room->mounted, from).empty())
      place.overlay = "lowerdir=" + place.at + ":" + LeanRoom::kEmpty;
    return place.at;
  };
  SandboxSpec inside = spec;
  HostView seen = pool_->view;
  out.user = spec.user.get();
  const auto workspace = rename(spec.workspace.string(), false);  // it may be his as it is
  if (!workspace) return false;
  inside.workspace = *workspace;
  for (SandboxMount& m : inside.mounts) {
    const auto at = rename(m.host.string(), m.writable, m.shared && !m.writable);
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
  std::array<int, 2 * LeanRoom::kPlaces> trees{};
  // With what is mounted below, as bwrap's own binding has it.
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    const Shown::Place& place = shown.places[i];
    trees.at(i) = ::open_tree(AT_FDCWD, place.from.c_str(),
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (trees.at(i) < 0) return false;
    // What cannot be his may still be read.
    if (shown.user != nullptr && !shown.user->lend(trees.at(i)) && place.written) return false;
  }
  if (::setns(shown.room->ns.get(), CLONE_NEWNS) != 0 || ::unshare(CLONE_NEWNS) != 0) return false;
  for (std::size_t i = 0; i < shown.places.size(); ++i) {
    const Shown::Place& place = shown.places[i];
    if (::move_mount(trees.at(i), "", AT_FDCWD, place.at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return false;
    raw::close(trees.at(i));
    // Not every file system can lie below an overlay: then it is shown as it is.
    if (!place.overlay.empty())
      (void)::mount("overlay", place.at.c_str(), "overlay", MS_RDONLY | MS_NODEV | MS_NOATIME,
                    place.overlay.c_str());
  }
  // Of this sandbox alone: nobody else's terminals are there to be opened.
  return ::mount("devpts", pool_->view.terminals.c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
                 kTerminalOptions) == 0;
}
}  // namespace proctor
