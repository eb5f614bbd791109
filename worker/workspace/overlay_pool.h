#pragma once
// Overlays that nobody changed, kept mounted for the next workspace of the same tree: a run whose
// method or checks leave a workspace as it was costs neither folders nor mounts.
// OverlayMount owns <dir>/{upper,work,merged} and the mount; one thread at a time.  On a bounded
// disk upper and work lie in <dir>/disk, and beside them what else its commands write.  OverlayPool
// is thread-safe; it owns what is at rest in it.  Blocking.
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/bounded_disk.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/removal.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
// The read-only layers of a workspace, and how much may lie above them; equal ones make equal
// workspaces.
struct OverlayLayers {
  fs::path git;      // holds ".git" only
  fs::path tree;     // the checkout
  fs::path setup{};  // what setup made of it; empty: none
  DiskBound bound{};
  bool own_user = false;  // all of it belongs to a user of its own
  friend auto operator<=>(const OverlayLayers&, const OverlayLayers&) = default;
};

// A folder of a workspace; kConflict: it exists.
Status make_dir(const fs::path& dir);

// The means of mounting them.
struct OverlayMeans {
  WorkspaceKind kind = WorkspaceKind::kOverlay;
  const BoundedDisks* disks = nullptr;    // for layers with a bound
  Remover remover{};                      // of what was written
  std::shared_ptr<const OwnView> view{};  // with layers of a user's own, and only then
};

class OverlayMount {
 public:
  // `dir` must not exist; kConflict when it does.
  static Result<std::unique_ptr<OverlayMount>> create(fs::path dir, OverlayLayers layers,
                                                      const OverlayMeans& means = {});
  // One of kOverlay that another process mounted in `dir` and left; it knows the setup layer
  // itself, and it is the worker's, whose ever it was. kNotFound: nothing is mounted there.
  static Result<std::unique_ptr<OverlayMount>> adopt(fs::path dir, OverlayLayers layers,
                                                     const Remover& remover = {});
  OverlayMount(const OverlayMount&) = delete;
  OverlayMount& operator=(const OverlayMount&) = delete;
  ~OverlayMount();  // as remove()
  // Unmounts and removes it, once; what may still be mounted is left to clean_up().  Adds what
  // processes of its own took.
  void remove(RemovalCost& cost);

  const OverlayLayers& layers() const { return layers_; }
  const fs::path& dir() const { return dir_; }
  const fs::path& merged() const { return merged_; }
  const fs::path& upper() const { return upper_; }
  WorkspaceKind kind() const { return kind_; }
  // Whose all of it is, if not the worker's.
  std::shared_ptr<const OwnUser> user() const { return view_ ? view_->user() : nullptr; }
  // On its bounded disk, for homes and results; none: it has no such disk.
  std::optional<fs::path> beside() const;
  // Is the tree below what it was when it was mounted?
  Status whole(TreeMark::Look look) const { return below_->check(look); }
  // Is it exactly as it was mounted?  The same tree, nothing in the upper layer, and the layer's
  // own folder with the same times, owner, mode and extended attributes: any change to it moves its
  // ctime, which nobody can set back.  For an adopted one nobody knows.
  bool untouched() const;
  // Unmounts it for good: the upper layer is the caller's to move away.  kUnavailable while
  // something uses it; it is then as it was.
  Result<fs::path> surrender();
  // Mounts it anew with what it has, and the layer below that.  Requires: nothing uses it.  After
  // an error it is of no use any more.
  Status lay_below(const fs::path& setup);

 private:
  OverlayMount(fs::path dir, OverlayLayers layers, const OverlayMeans& means);
  Status mount(const BoundedDisks* disks);
  void use_bounded_disk();
  Status mount_layers(const fs::path& work);
  Status mount_as_it_is(const fs::path& work);
  Status take_from_user();
  fs::path dir_;
  OverlayLayers layers_;
  bool bounded_ = false;
  fs::path upper_, work_, merged_;
  WorkspaceKind kind_;
  Remover remover_;
  std::shared_ptr<const OwnView> view_;
  bool removed_ = false;
  std::optional<FileLock> use_, use_setup_;  // of the layers below
  std::optional<TreeMark> below_;            // none: it could not be mounted
  bool adopted_ = false;
  struct stat as_made_ {};
  std::string attributes_as_made_;
};

class OverlayPool {
 public:
  // `views`: of a store where workspaces can have users of their own.
  explicit OverlayPool(fs::path dir, WorkspaceKind kind = WorkspaceKind::kOverlay,
                       std::optional<BoundedDisks> disks = {}, Remover remover = {},
                       std::optional<OwnViews> views = {});
  WorkspaceKind kind() const { return kind_; }
  const Remover& remover() const { return remover_; }
  bool has_own_users() const { return views_.has_value(); }
  // One at rest, else a new one.  Where there is no user of its own to be had it has none.
  Result<std::unique_ptr<OverlayMount>> take(OverlayLayers layers);
  // Keeps it if it is untouched and there is room; else it is gone when this returns; what
  // processes of its own took for that.
  RemovalCost give_back(std::unique_ptr<OverlayMount> mount);
  // Keeps nothing any more.
  void close();

 private:
  const fs::path dir_;
  const WorkspaceKind kind_;
  const std::optional<BoundedDisks> disks_;
  const Remover remover_;
  const std::optional<OwnViews> views_;
  std::mutex mutex_;
  std::unique_ptr<OverlayMount> take_resting(const OverlayLayers& layers);
  std::map<OverlayLayers, std::vector<std::unique_ptr<OverlayMount>>> resting_;
  std::size_t count_ = 0;
  bool closed_ = false;
  std::atomic<std::uint64_t> next_{1};
};
}  // namespace proctor
