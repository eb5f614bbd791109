#include "worker/workspace/bounded_disk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "common/base/owned.h"
#include "common/base/subprocess.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {
constexpr std::uint64_t kBlock = 4096, kInode = 256;
// A command that is looked at ten times a second shall be told by the one who looks that it has
// reached its limit, so there is some room beyond that; and the file system needs some itself.
constexpr std::uint64_t kSlack = std::uint64_t{64} << 20;
// What the worker itself goes on with once commands have used all they could.
constexpr const char* kBallast = "ballast";
constexpr std::uint64_t kBallastBytes = std::uint64_t{16} << 20, kBallastFiles = 256;
// That, folders of our own, and what mkfs keeps.
constexpr std::uint64_t kSpareInodes = kBallastFiles + 64;

struct Size {
  std::uint64_t blocks, inodes;
};

Size size_of(const DiskBound& bound) {
  const std::uint64_t room = (bound.bytes + bound.bytes / 8 + kSlack + kBallastBytes) / kBlock;
  const std::uint64_t inodes = std::min(bound.files + kSpareInodes, room);  // ext4: a block each
  return {room + inodes * kInode / kBlock, inodes};
}

// The holes stay holes.
Status copy_image(const fs::path& from, const fs::path& to) {
  const UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const off_t size = in.valid() ? ::lseek(in.get(), 0, SEEK_END) : -1;
  const auto failed = [&] { return errno_error("copy " + from.string(), errno); };
  if (!out.valid() || size < 0 || ::ftruncate(out.get(), size) != 0) return failed();
  for (off_t at = 0; at < size;) {
    off_t data = ::lseek(in.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // nothing but a hole to its end
    if (data < 0) return failed();
    at = ::lseek(in.get(), data, SEEK_HOLE);
    if (at < 0) return failed();
    off_t put = data;
    while (data < at) {
      if (::copy_file_range(in.get(), &data, out.get(), &put, static_cast<std::size_t>(at - data),
                            0) <= 0)
        return failed();
    }
  }
  return ok_status();
}

// A free loop device with this file; whoever mounts it may close it.
Result<UniqueFd> attach(const fs::path& image, std::string& device) {
  const UniqueFd file(::open(image.c_str(), O_RDWR | O_CLOEXEC));
  const UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!file.valid()) return errno_error("open " + image.string(), errno);
  if (!control.valid()) return errno_error("open /dev/loop-control", errno);
  constexpr int kTries = 64;  // others on this host look for one too
  for (int i = 0; i < kTries; ++i) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return errno_error("find a free loop device", errno);
    device = "/dev/loop" + std::to_string(number);
    UniqueFd loop(::open(device.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop.valid()) return errno_error("open " + device, errno);
    struct loop_config config {};
    config.fd = static_cast<std::uint32_t>(file.get());
    config.block_size = kBlock;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(loop.get(), LOOP_CONFIGURE, &config) == 0) return loop;
    if (errno != EBUSY) return errno_error("use " + device, errno);
  }
  return Error{Errc::kUnavailable, "no loop device is free"};
}

Status mount_image(const fs::path& image, const fs::path& at) {
  std::string device;
  PROCTOR_TRY(const UniqueFd loop, attach(image, device));
  // None of it is wanted after a power loss, and inode tables are zero: the file was a hole.
  if (::mount(device.c_str(), at.c_str(), "ext4", MS_NODEV | MS_NOATIME,
              "nobarrier,noinit_itable,errors=continue") != 0)
    return errno_error("mount " + image.string() + " on " + at.string(), errno);
  return ok_status();
}

Status lay_ballast(const fs::path& at) {
  const fs::path ballast = at / kBallast;
  PROCTOR_CHECK_OK(make_dirs(ballast));
  for (std::uint64_t i = 0; i < kBallastFiles; ++i) {
    const std::string name = (ballast / std::to_string(i)).string();
    const UniqueFd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) return errno_error("make " + name, errno);
    if (i == 0 && ::fallocate(fd.get(), 0, 0, off_t{kBallastBytes}) != 0)
      return errno_error("reserve " + name, errno);
  }
  // What fsck would need; in the way of whoever counts.
  if (::rmdir((at / "lost+found").c_str()) != 0) return errno_error(at.string(), errno);
  // Unmounting writes nothing as long as another process has the file system too, as a sandbox that
  // begins has: in its mount namespace, or open.
  const UniqueFd fd(::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::syncfs(fd.get()) != 0) return errno_error("sync " + at.string(), errno);
  return ok_status();
}
}  // namespace

fs::path bounded_folder(const fs::path& dir) {
  return dir / "disk";
}

Result<BoundedDisks> BoundedDisks::open(const fs::path& root, const fs::path& life) {
  if (::geteuid() != 0) return Error{Errc::kUnavailable, "bounded disks: not root"};
  BoundedDisks out(root, life);
  PROCTOR_TRY(const TempDir dir, TempDir::create("probe", life));
  const Status tried = out.mount(dir.path(), {1, 1});
  const Status undone = unmount_bounded(dir.path());
  if (!tried.ok()) return Error{Errc::kUnavailable, "bounded disks: " + tried.error().detail};
  PROCTOR_CHECK_OK(undone);
  return out;
}

Result<fs::path> BoundedDisks::blank(const DiskBound& bound) const {
  const Size size = size_of(bound);
  const std::string inodes = std::to_string(size.inodes);
  fs::path image = root_ / (std::to_string(size.blocks) + "-" + inodes + ".ext4");
  std::error_code ec;
  if (fs::exists(image, ec)) return image;
  PROCTOR_CHECK_OK(make_dirs(root_));  // also where it was deleted
  PROCTOR_TRY(const TempDir dir, TempDir::create("new", life_));
  const fs::path made = dir.path() / "image";
  CommandSpec mkfs;
  mkfs.argv = {"/sbin/mkfs.ext4", "-q", "-F", "-b", std::to_string(kBlock)};
  for (const char* word : {"-m", "0", "-O", "^has_journal,^resize_inode", "-E",
                           "lazy_itable_init=1,nodiscard,root_owner=0:0", "-I"})
    mkfs.argv.emplace_back(word);
  for (const std::string& word : {std::to_string(kInode), std::string("-N"), inodes, made.string(),
                                  std::to_string(size.blocks)})
    mkfs.argv.push_back(word);
  PROCTOR_TRY(const std::string said, run_for_output(mkfs));
  const fs::path at = bounded_folder(dir.path());
  PROCTOR_CHECK_OK(make_dirs(at));
  PROCTOR_CHECK_OK(mount_image(made, at));
  const Status laid = lay_ballast(at);
  PROCTOR_CHECK_OK(unmount(at));
  PROCTOR_CHECK_OK(laid);
  // It is there for all later boots.
  const UniqueFd fd(::open(made.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return errno_error("sync " + made.string(), errno);
  PROCTOR_CHECK_OK(rename_path(made, image));
  return image;
}

Status BoundedDisks::mount(const fs::path& dir, const DiskBound& bound) const {
  PROCTOR_TRY(const fs::path empty, blank(bound));
  const fs::path image = dir / "disk.ext4", at = bounded_folder(dir);
  PROCTOR_CHECK_OK(copy_image(empty, image));
  PROCTOR_CHECK_OK(make_dirs(at));
  return mount_image(image, at);
}

std::uint64_t entries_of(const fs::path& folder) {
  struct statvfs st {};
  if (::statvfs(folder.c_str(), &st) != 0 || st.f_files <= kSpareInodes) return 0;
  return st.f_files - kSpareInodes;
}

bool is_used_up(const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(folder / kBallast, ec)) return true;
  struct statvfs st {};
  if (::statvfs(folder.c_str(), &st) != 0) return false;
  // ext4 refuses before it has nothing left.
  constexpr std::uint64_t kFewBytes = std::uint64_t{1} << 20, kFewEntries = 16;
  if (kFewBytes <= st.f_bavail * st.f_frsize && kFewEntries <= st.f_favail) return false;
  (void)remove_tree(folder / kBallast).ok();  // what cannot be removed is tried again
  return true;
}

Status unmount_bounded(const fs::path& dir) {
  return unmount(bounded_folder(dir));
}
}  // namespace proctor
