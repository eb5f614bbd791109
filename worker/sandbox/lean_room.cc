#include "worker/sandbox/lean_room.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/parse.h"
#include "worker/sandbox/devices.h"

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

// "\040" for a space, as the kernel writes it.
std::string unescaped(std::string_view word) {
  constexpr std::size_t kDigits = 3;
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view digits = word.substr(i + 1, kDigits);
    const bool octal =
        word[i] == '\\' && digits.size() == kDigits &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return '0' <= c && c <= '7'; });
    if (octal) {
      out.push_back(
          static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0')));
      i += kDigits;
    } else {
      out.push_back(word[i]);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> mount_points(std::string_view mountinfo) {
  constexpr std::size_t kPlaceAt = 4;
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    const std::vector<std::string_view> words = split(take_until(mountinfo, '\n'), ' ');
    if (kPlaceAt < words.size() && !words[kPlaceAt].empty())
      out.push_back(unescaped(words[kPlaceAt]));
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

}  // namespace proctor
