#include "worker/workspace/probe.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>

#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "worker/workspace/layer_marks.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {

// What the upper layer does not say in the way that we read it; empty: it says all.
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
