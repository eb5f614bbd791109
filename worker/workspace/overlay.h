#pragma once
// Overlays: the kinds of workspaces, how they mark what they hide, their users, their mounts, and
// which of them work here.
#include <sys/stat.h>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// How workspaces come by their files.  Overlays have an upper layer that holds what was changed and
// nothing else; the others are copies of all there is.
enum class WorkspaceKind {
  kOverlay,      // of the kernel, mounted by root
  kUserOverlay,  // of the kernel, in a user namespace (common/base/namespaces.h): nobody outside
                 // it, the Docker engine for one, sees what is mounted
  kReflink,      // a copy that shares its blocks with the original
  kCopy,
};

// From the one that is tried first to the one that works everywhere.
inline constexpr std::array kWorkspaceKinds = {WorkspaceKind::kOverlay, WorkspaceKind::kUserOverlay,
                                               WorkspaceKind::kReflink, WorkspaceKind::kCopy};

constexpr auto words(WorkspaceKind) {
  return std::to_array<Word<WorkspaceKind>>({{"overlay", WorkspaceKind::kOverlay},
                                             {"user-overlay", WorkspaceKind::kUserOverlay},
                                             {"reflink", WorkspaceKind::kReflink},
                                             {"copy", WorkspaceKind::kCopy}});
}

constexpr bool is_overlay(WorkspaceKind k) {
  return k == WorkspaceKind::kOverlay || k == WorkspaceKind::kUserOverlay;
}

// How the upper layer of an overlay says what it hides of the layers below.  Each kind of overlay
// has its own words, and reads no others: what an agent writes in another's means nothing.
// Any thread.  Source: Documentation/filesystems/overlayfs.rst of Linux ("whiteouts and opaque
// directories", "userxattr").

// Was the folder made anew over one of the lower layers, which it hides?
bool is_opaque(int dir, WorkspaceKind kind);
// By what stat says of an entry: is it the mark of one that was removed?
bool is_whiteout(const struct stat& st);

// OwnView: the folders of a store as a user of a workspace's own sees them, who is the owner of all
// that root owns there.  An overlay of such folders is his to write to, in a sandbox that runs as
// him; on the disk it is root's, as every other.  OwnViews keeps them from one workspace to the
// next, for each costs a process and a mount.  Both are thread-safe.  Blocking.
// Fails with kUnavailable, kExhausted (common/base/namespaces.h), errno_error.
// Source: Documentation/filesystems/overlayfs.rst of Linux (idmapped layers, since 5.19).
class OwnView {
 public:
  // `root`: of most folders that will be asked for.
  static Result<std::unique_ptr<const OwnView>> make(const fs::path& root);
  const std::shared_ptr<const OwnUser>& user() const { return user_; }
  // For a layer of mount(2) and for openat(2).
  Result<UniqueFd> open(const fs::path& folder) const;

 private:
  OwnView(std::shared_ptr<const OwnUser> user, fs::path root, UniqueFd seen)
      : user_(std::move(user)), root_(std::move(root)), seen_(std::move(seen)) {}
  std::shared_ptr<const OwnUser> user_;
  fs::path root_;
  UniqueFd seen_;
};

class OwnViews {
 public:
  explicit OwnViews(const fs::path& root) : state_(std::make_shared<State>()) {
    state_->root = root;
  }
  // For one workspace, given back by its destruction.
  Result<std::shared_ptr<const OwnView>> take() const;

 private:
  struct State {
    fs::path root;
    std::mutex mutex;
    std::vector<std::unique_ptr<const OwnView>> idle;
  };
  std::shared_ptr<State> state_;
};

// overlayfs: read-only lower layers (what setup made, the .git of a tree, its checkout) under one
// upper layer that holds exactly what was changed.  Needs root, or mounts of one's own
// (common/base/namespaces.h).  Blocking.
// Fails with errno_error of mount(2).  Source: Documentation/filesystems/overlayfs.rst of Linux.
struct OverlayDirs {
  fs::path git;   // lower layer above the checkout: ".git" only
  fs::path tree;  // bottom layer: the checkout
  fs::path upper;
  fs::path work;
  fs::path merged;
  fs::path setup{};  // top one of the lower layers: the upper layer that a setup left; empty: none
};

// `kind`: one of the kernel's.  `view` (kOverlay, upper and work in one folder): all of it belongs
// to that user, and only as him (ActingAs) can anything be made in it.
Status mount_overlay(const OverlayDirs& dirs, WorkspaceKind kind = WorkspaceKind::kOverlay,
                     const OwnView* view = nullptr);
// Lazily (MNT_DETACH) when something still uses it.  Not mounted is fine.
Status unmount(const fs::path& merged);
// Now or not at all: kUnavailable while something uses it.
Status unmount_strictly(const fs::path& merged);

// Which kinds of workspaces work below a folder.  Each is tried for real, in a folder that is
// removed again.  Blocking.

// kUnavailable and the like, with the reason: this one does not.
Status probe_workspaces(const fs::path& root, WorkspaceKind kind);

// Can overlays of the kernel below `root` belong to a user of their own?  Tried as the kinds are,
// by changes that this user makes.
Status probe_own_users(const fs::path& root, const OwnViews& views);
}  // namespace proctor
