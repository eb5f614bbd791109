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

#include "common/base/own_mounts.h"
#include "common/base/unique_fd.h"
#include "worker/workspace/fuse_overlay.h"
#include "worker/workspace/layer_marks.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {

// What the upper layer does not say in the way that we read it; empty: it says all.
std::string unread(const fs::path& upper, WorkspaceKind kind) {
  struct stat st {};
  const bool device = ::lstat((upper / "gone").c_str(), &st) == 0 && is_whiteout(st);
  const fs::path mark = upper / mark_of_removed("gone");
  if (!device && !(is_mark(mark.filename().string(), kind) && fs::exists(mark)))
    return "that a file was removed";
  const auto copied = read_file(upper / "mode", 16);
  if (!copied.ok() || *copied != "data") return "what a file holds whose mode was changed";
  const UniqueFd anew(::open((upper / "anew").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!anew.valid() || !is_opaque(anew.get(), kind))
    return "that a folder was removed and made anew";
  return "";
}

// Versions 1.x of fuse-overlayfs forget of a file that was replaced by rename(2), as editors and
// git do it, that there is one below: removed, it is there again as it was (seen in 1.10
// and 1.17-dev, not in 2.0.0).  An agent's work must not come back.
bool change(const fs::path& merged, bool& returned) {
  const fs::path replaced = merged / "replaced", by = merged / "by", anew = merged / "anew";
  const bool done = ::unlink((merged / "gone").c_str()) == 0 &&
                    ::chmod((merged / "mode").c_str(), 0755) == 0 && ::rmdir(anew.c_str()) == 0 &&
                    ::mkdir(anew.c_str(), 0755) == 0 &&
                    write_file(by, "y", Durability::kLazy).ok() &&
                    ::rename(by.c_str(), replaced.c_str()) == 0 && ::unlink(replaced.c_str()) == 0;
  returned = done && ::access(replaced.c_str(), F_OK) == 0;
  return done;
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
  if (kind == WorkspaceKind::kFuseOverlay && !root && !has_own_mounts())
    return Error{Errc::kUnavailable, "neither root nor mounts of one's own"};
  const OverlayDirs dirs{at / "git", at / "tree", at / "upper", at / "work", at / "merged"};
  for (const fs::path& p : {dirs.git, dirs.tree / "anew", dirs.upper, dirs.work, dirs.merged})
    PROCTOR_CHECK_OK(make_dirs(p));
  for (const char* name : {"gone", "replaced"})
    PROCTOR_CHECK_OK(write_file(dirs.tree / name, "x", Durability::kLazy));
  PROCTOR_CHECK_OK(write_file(dirs.tree / "mode", "data", Durability::kLazy));
  std::optional<FuseServers> servers;
  std::optional<Child> server;
  Status mounted = ok_status();
  if (kind == WorkspaceKind::kFuseOverlay) {
    auto started = servers.emplace().mount(dirs, at / "log");
    if (started.ok()) server.emplace(std::move(started).value());
    if (!started.ok()) mounted = std::move(started).error();
  } else {
    mounted = mount_overlay(dirs, kind, view);
  }
  bool returned = false, changed = false;
  if (mounted.ok()) {
    const ActingAs as(view != nullptr ? view->user().get() : nullptr);
    changed = change(dirs.merged, returned);
  }
  if (changed && view != nullptr) changed = changes_as(*view->user(), dirs.merged);
  PROCTOR_CHECK_OK(unmount(dirs.merged));
  PROCTOR_CHECK_OK(mounted);
  if (returned)
    return Error{Errc::kUnavailable, "a file that was replaced and then removed is there again"};
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
