#include "worker/workspace/overlay.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <thread>

namespace proctor {
namespace {
bool says_yes(int dir, const char* attribute) {
  std::array<char, 8> value{};
  const ssize_t n = ::fgetxattr(dir, attribute, value.data(), value.size());
  return n == 1 && value[0] == 'y';
}
}  // namespace

bool is_opaque(int dir, WorkspaceKind kind) {
  switch (kind) {
    case WorkspaceKind::kOverlay:
      return says_yes(dir, "trusted.overlay.opaque");
    case WorkspaceKind::kUserOverlay:
      return says_yes(dir, "user.overlay.opaque");
    case WorkspaceKind::kReflink:
    case WorkspaceKind::kCopy:
      break;
  }
  return false;
}

bool is_whiteout(const struct stat& st) {
  return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

namespace {
constexpr int kPlace = O_PATH | O_DIRECTORY | O_CLOEXEC;

bool same_folder(int a, int b) {
  struct stat one {
  }, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}
}  // namespace

Result<std::unique_ptr<const OwnView>> OwnView::make(const fs::path& root) {
  PROCTOR_TRY(std::shared_ptr<const OwnUser> user, OwnUser::take());
  PROCTOR_TRY(UniqueFd seen, user->view(root));
  return std::unique_ptr<const OwnView>(new OwnView(std::move(user), root, std::move(seen)));
}

Result<UniqueFd> OwnView::open(const fs::path& folder) const {
  const UniqueFd plain(::open(folder.c_str(), kPlace));
  if (!plain.valid()) return errno_error("open " + folder.string(), errno);
  if (const std::string below = folder.lexically_relative(root_).string();
      is_safe_relative(below)) {
    UniqueFd seen(::openat(seen_.get(), below.c_str(), kPlace));
    if (seen.valid() && same_folder(seen.get(), plain.get())) return seen;
  }
  return user_->view(folder);  // on a file system of its own
}

Result<std::shared_ptr<const OwnView>> OwnViews::take() const {
  std::unique_ptr<const OwnView> one;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->idle.empty()) {
      one = std::move(state_->idle.back());
      state_->idle.pop_back();
    }
  }
  if (!one) {
    PROCTOR_TRY(one, OwnView::make(state_->root));
  }
  return std::shared_ptr<const OwnView>(one.release(), [state = state_](const OwnView* used) {
    const std::lock_guard lock(state->mutex);
    state->idle.emplace_back(used);
  });
}

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

// A process that is shown the mount reads its options in /proc/self/mountinfo, and the words of the
// layers are kept there as they were given: by descriptor they tell nothing of this host.
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
    UniqueFd fd;
    if (view_ == nullptr) {
      fd.reset(::open(dir.c_str(), kPlace));
    } else if (&dir == &dirs.upper || &dir == &dirs.work) {
      if (!above_.valid()) {
        PROCTOR_TRY(above_, view_->open(dirs.upper.parent_path()));
      }
      fd.reset(::openat(above_.get(), dir.filename().c_str(), kPlace));
    } else {
      PROCTOR_TRY(fd, view_->open(dir));
    }
    if (!fd.valid()) return errno_error("overlay: " + dir.string(), errno);
    open_.push_back(std::move(fd));
    return ok_status();
  }
  int last() const { return open_.back().get(); }

 private:
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

namespace {
// The part that the upper layer does not say in the way that we read it; empty: it says all.
std::string unread(const fs::path& upper, WorkspaceKind kind) {
  struct stat st {};
  if (::lstat((upper / "gone").c_str(), &st) != 0 || !is_whiteout(st))
    return "that a file was removed";
  const auto copied = read_file(upper / "mode", 16);
  if (!copied.ok() || *copied != "data") return "what a file holds whose mode was changed";
  const UniqueFd anew(::open((upper / "anew").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!anew.valid() || !is_opaque(anew.get(), kind))
    return "that a folder was removed and made anew";
  return "";
}

// Does what agents do all day.
bool change(const fs::path& merged) {
  const fs::path anew = merged / "anew";
  return ::unlink((merged / "gone").c_str()) == 0 &&
         ::chmod((merged / "mode").c_str(), 0755) == 0 && ::rmdir(anew.c_str()) == 0 &&
         ::mkdir(anew.c_str(), 0755) == 0;
}

// As git does it when it applies a patch.
bool changes_as(const OwnUser& user, const fs::path& merged) {
  CommandSpec spec;
  spec.argv = {"touch", (merged / "made").string()};
  const auto made = user.run(spec);
  return made.ok() && made->success();
}

Status probe_overlay(const fs::path& at, WorkspaceKind kind, const OwnView* view) {
  const bool root = ::geteuid() == 0;
  if (kind == WorkspaceKind::kOverlay && !root) return Error{Errc::kUnavailable, "not root"};
  if (kind == WorkspaceKind::kUserOverlay && !has_own_mounts())
    return Error{Errc::kUnavailable, root ? "of no use to root" : "no mounts of one's own"};
  const OverlayDirs dirs{at / "git", at / "tree", at / "upper", at / "work", at / "merged"};
  for (const fs::path& p : {dirs.git, dirs.tree / "anew", dirs.upper, dirs.work, dirs.merged})
    PROCTOR_CHECK_OK(make_dirs(p));
  PROCTOR_CHECK_OK(write_file(dirs.tree / "gone", "x", Durability::kLazy));
  PROCTOR_CHECK_OK(write_file(dirs.tree / "mode", "data", Durability::kLazy));
  const Status mounted = mount_overlay(dirs, kind, view);
  bool changed = false;
  if (mounted.ok()) {
    const ActingAs as(view != nullptr ? view->user().get() : nullptr);
    changed = change(dirs.merged);
  }
  if (changed && view != nullptr) changed = changes_as(*view->user(), dirs.merged);
  PROCTOR_CHECK_OK(unmount(dirs.merged));
  PROCTOR_CHECK_OK(mounted);
  if (!changed) return Error{Errc::kUnavailable, "files in it cannot be changed"};
  const std::string missing = unread(dirs.upper, kind);
  if (missing.empty()) return ok_status();
  return Error{Errc::kUnavailable, "its upper layer does not say " + missing};
}

Status probe_reflink(const fs::path& at) {
  PROCTOR_CHECK_OK(write_file(at / "from", std::string(4096, 'x'), Durability::kLazy));
  const UniqueFd from(::open((at / "from").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd to(::open((at / "to").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!from.valid() || !to.valid()) return errno_error("open", errno);
  if (::ioctl(to.get(), FICLONE, from.get()) != 0) return errno_error("share blocks", errno);
  return ok_status();
}
}  // namespace

Status probe_workspaces(const fs::path& root, WorkspaceKind kind) {
  if (kind == WorkspaceKind::kCopy) return ok_status();
  PROCTOR_TRY(const TempDir dir, TempDir::create("probe", root));
  if (kind == WorkspaceKind::kReflink) return probe_reflink(dir.path());
  return probe_overlay(dir.path(), kind, nullptr);
}

Status probe_own_users(const fs::path& root, const OwnViews& views) {
  PROCTOR_TRY(const std::shared_ptr<const OwnView> view, views.take());
  PROCTOR_TRY(const TempDir dir, TempDir::create("probe", root));
  Status probe = ok_status();
  // Whoever acts as another forgets what is to become of him when his parent dies.
  std::thread([&] {
    probe = probe_overlay(dir.path(), WorkspaceKind::kOverlay, view.get());
  }).join();
  return probe;
}
}  // namespace proctor
