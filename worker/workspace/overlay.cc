#include "worker/workspace/overlay.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace proctor {
namespace {

// Characters that mean something in mount options; such roots get copies instead.
constexpr std::string_view kSpecial = ",:\\\"'";

// Upper layers must be readable by themselves: a change of mode copies the data too
// (metacopy=off), a renamed folder is copied by its mover (redirect_dir=nofollow), and no index of
// hard links is kept.  volatile: no sync on unmount, since a workspace does not outlive its run.
constexpr std::array<const char*, 3> kOptions = {
    ",redirect_dir=nofollow,metacopy=off,index=off,volatile",
    ",redirect_dir=off,metacopy=off,index=off", ""};

}  // namespace

Status mount_overlay(const OverlayDirs& dirs) {
  for (const fs::path* p : {&dirs.setup, &dirs.git, &dirs.tree, &dirs.upper, &dirs.work}) {
    if (p->string().find_first_of(kSpecial) != std::string::npos) {
      return Error{Errc::kInvalid, "overlay: path with one of , : \\ or a quote: " + p->string()};
    }
  }
  const std::string layers = "lowerdir=" + (dirs.setup.empty() ? "" : dirs.setup.string() + ":") +
                             dirs.git.string() + ":" + dirs.tree.string() +
                             ",upperdir=" + dirs.upper.string() + ",workdir=" + dirs.work.string();
  int e = 0;
  for (const char* options : kOptions) {
    const std::string data = layers + options;
    if (::mount("proctor", dirs.merged.c_str(), "overlay", MS_NODEV | MS_NOATIME, data.c_str()) ==
        0) {
      return ok_status();
    }
    e = errno;
    if (e != EINVAL) break;  // EINVAL: an option this kernel does not know
  }
  return errno_error("mount overlay on " + dirs.merged.string(), e);
}

Status unmount(const fs::path& merged) {
  if (::umount2(merged.c_str(), UMOUNT_NOFOLLOW) == 0) return ok_status();
  if (errno == EBUSY && ::umount2(merged.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) {
    return ok_status();
  }
  if (errno == EINVAL || errno == ENOENT) return ok_status();  // not a mount point
  return errno_error("unmount " + merged.string(), errno);
}

Status unmount_strictly(const fs::path& merged) {
  if (::umount2(merged.c_str(), UMOUNT_NOFOLLOW) == 0) return ok_status();
  return errno_error("unmount " + merged.string(), errno);
}

bool is_opaque(int dir) {
  std::array<char, 8> value{};
  const ssize_t n = ::fgetxattr(dir, "trusted.overlay.opaque", value.data(), value.size());
  return n == 1 && value[0] == 'y';
}

Status probe_overlay(const fs::path& root) {
  if (::geteuid() != 0) return Error{Errc::kUnavailable, "overlay: not root"};
  PROCTOR_TRY(const TempDir dir, TempDir::create("probe", root));
  const fs::path& at = dir.path();
  const OverlayDirs dirs{at / "git", at / "tree", at / "upper", at / "work", at / "merged"};
  for (const fs::path* p : {&dirs.git, &dirs.tree, &dirs.upper, &dirs.work, &dirs.merged}) {
    PROCTOR_CHECK_OK(make_dirs(*p));
  }
  PROCTOR_CHECK_OK(write_file(dirs.tree / "gone", "x", Durability::kLazy));
  PROCTOR_CHECK_OK(write_file(dirs.tree / "mode", "data", Durability::kLazy));
  PROCTOR_CHECK_OK(mount_overlay(dirs));
  const bool changed = ::unlink((dirs.merged / "gone").c_str()) == 0 &&
                       ::chmod((dirs.merged / "mode").c_str(), 0755) == 0;
  PROCTOR_CHECK_OK(unmount(dirs.merged));
  struct stat st {};
  const auto copied = read_file(dirs.upper / "mode", 16);
  if (!changed || ::lstat((dirs.upper / "gone").c_str(), &st) != 0 || !S_ISCHR(st.st_mode) ||
      st.st_rdev != 0 || !copied.ok() || *copied != "data") {
    return Error{Errc::kUnavailable, "overlay: the upper layer is not as expected"};
  }
  return ok_status();
}

}  // namespace proctor
