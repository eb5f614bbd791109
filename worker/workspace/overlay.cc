#include "worker/workspace/overlay.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "common/base/owned.h"

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
// Without root its marks are attributes that everybody may write; through the overlay nobody can.
constexpr const char* kUserMarks = ",userxattr";

// Whoever is shown the mount reads its options in /proc/self/mountinfo, and the words of the layers
// are kept there as they were given: by descriptor they tell nothing of this host.
constexpr const char* kDescriptors = "/proc/self/fd/";
struct Layer {
  const char* word;
  const fs::path* dir;
};

// The upper layer and its work folder have to be below one mount.
class Layers {
 public:
  explicit Layers(const OwnView* view) : view_(view) {}

  Status open(const OverlayDirs& dirs, const fs::path& dir) {
    const bool written = &dir == &dirs.upper || &dir == &dirs.work;
    if (view_ == nullptr || written) return open_plainly(dirs, dir);
    PROCTOR_TRY(UniqueFd fd, view_->open(dir));
    open_.push_back(std::move(fd));
    return ok_status();
  }
  int last() const { return open_.back().get(); }

 private:
  Status open_plainly(const OverlayDirs& dirs, const fs::path& dir) {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    UniqueFd fd;
    if (view_ == nullptr) {
      fd.reset(::open(dir.c_str(), kFlags));
    } else {
      if (!above_.valid()) {
        PROCTOR_TRY(above_, view_->open(dirs.upper.parent_path()));
      }
      fd.reset(::openat(above_.get(), dir.filename().c_str(), kFlags));
    }
    if (!fd.valid()) return errno_error("overlay: " + dir.string(), errno);
    open_.push_back(std::move(fd));
    return ok_status();
  }

  const OwnView* view_;
  UniqueFd above_;
  std::vector<UniqueFd> open_;
};

bool is_mount_point(const fs::path& path) {
  struct statx st {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) != 0)
    return errno != ENOENT;
  return (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
         (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

}  // namespace

Status mount_overlay(const OverlayDirs& dirs, WorkspaceKind kind, const OwnView* view) {
  for (const fs::path* p : {&dirs.setup, &dirs.git, &dirs.tree, &dirs.upper, &dirs.work}) {
    if (p->string().find_first_of(kSpecial) != std::string::npos) {
      return Error{Errc::kInvalid, "overlay: path with one of , : \\ or a quote: " + p->string()};
    }
  }
  Layers open(view);
  std::string layers;
  for (const auto& [word, dir] :
       {Layer{"lowerdir=", &dirs.setup}, Layer{"", &dirs.git}, Layer{":", &dirs.tree},
        Layer{",upperdir=", &dirs.upper}, Layer{",workdir=", &dirs.work}}) {
    layers += word;
    if (dir->empty()) continue;
    PROCTOR_CHECK_OK(open.open(dirs, *dir));
    layers.append(kDescriptors).append(std::to_string(open.last()));
    if (dir == &dirs.setup) layers += ':';
  }
  // What the kernel makes in the work folder it makes as whoever mounts it.
  const ActingAs as(view != nullptr ? view->user().get() : nullptr);
  int e = 0;
  for (const char* options : kOptions) {
    const std::string data =
        layers + options + (kind == WorkspaceKind::kUserOverlay ? kUserMarks : "");
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
  const int e = errno;
  if (e == EINVAL || e == ENOENT) return ok_status();  // not a mount point
  // Who may not unmount is told so before anybody looks whether there is something.
  if (e == EPERM && !is_mount_point(merged)) return ok_status();
  return errno_error("unmount " + merged.string(), e);
}

Status unmount_strictly(const fs::path& merged) {
  if (::umount2(merged.c_str(), UMOUNT_NOFOLLOW) == 0) return ok_status();
  return errno_error("unmount " + merged.string(), errno);
}

}  // namespace proctor
