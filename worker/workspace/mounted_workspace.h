#pragma once
// MountedWorkspace, the one implementation of Workspace, and the Docker volumes that show
// workspaces.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/overlay_pool.h"
#include "worker/workspace/trusted_part.h"
#include "worker/workspace/workspace.h"

namespace proctor {
using DockerLabels = std::map<std::string, std::string>;

// Named volumes of the Docker Engine.  Blocking, 30 s at most each.  Thread-safe.
// Fails with kUnavailable (no engine, no answer), kInvalid (the engine refuses, with its words).
class DockerVolumes {
 public:
  explicit DockerVolumes(std::string socket) : socket_(std::move(socket)) {}
  // A volume that shows the folder `device` (driver "local", a bind mount).
  Status create(const std::string& name, const fs::path& device, const DockerLabels& labels) const;
  Status remove(const std::string& name) const;  // absent is fine
  // Names of the volumes that have all of `labels`, with their labels.
  Result<std::map<std::string, DockerLabels>> list(const DockerLabels& labels) const;

 private:
  std::string socket_;
};

// How a MountedWorkspace is made.
struct WorkspaceSetup {
  fs::path dir;            // of a copy: its own folder, not there yet
  fs::path apply_scratch;  // of prepare_apply
  std::string docker_socket;
  std::shared_ptr<Owed> owed_volumes;  // the store's: what an absent engine keeps
  // Before the first volume: removes those of earlier lives, if the engine was away until now.
  std::function<void()> clean_volumes{};
  std::shared_ptr<TreeCache> folders;  // the store's
  std::string volume_name;
  DockerLabels volume_labels;
  DiskBound bound{};
  bool own_user = false;  // of an overlay, where there is one to be had
  Extractor extractor{};
  Remover remover{};
  WorkspaceKind copies = WorkspaceKind::kCopy;  // what copies are called here
};

// The one implementation of Workspace: an overlay or a copy in a folder of its own.
// Owns its overlay or its copy, and its Docker volume.  One thread at a time.
class MountedWorkspace final : public Workspace {
 public:
  // `overlays`: where its overlay comes from and goes back to; null: it is a copy.
  static Result<std::unique_ptr<Workspace>> create(const Snapshot& snapshot,
                                                   std::shared_ptr<OverlayPool> overlays,
                                                   WorkspaceSetup setup, const SetupLayer* layer);
  // The workspace of an overlay that was left mounted, and of the volume that `setup` names.
  enum class Volume { kNone, kMade };
  static Result<std::unique_ptr<Workspace>> adopt(const Snapshot& snapshot,
                                                  std::shared_ptr<OverlayPool> overlays,
                                                  WorkspaceSetup setup, const fs::path& dir,
                                                  Volume volume);
  MountedWorkspace(const MountedWorkspace&) = delete;
  MountedWorkspace& operator=(const MountedWorkspace&) = delete;
  ~MountedWorkspace() override;

  WorkspaceKind kind() const override { return overlays_ ? overlays_->kind() : setup_.copies; }
  RemovalCost close() override;
  std::optional<LeftWorkspace> left_to_others() const override;
  const fs::path& dir() const override { return merged_; }
  std::shared_ptr<const OwnUser> user() const override { return mount_ ? mount_->user() : nullptr; }
  Written written() const override;
  std::optional<Bounded> bounded() const override;
  bool used_up() override;
  Result<fs::path> surrender() override;
  Result<bool> lay_below(const SetupLayer& layer) override;
  Result<std::string> docker_volume() override;
  Result<Patch> extract_patch(std::size_t bytes_max,
                              const std::vector<std::string>& kept = {}) override;
  Result<AppliedPatch> apply(const std::string& diff) override;
  Status put_file(const std::string& relative, std::string_view bytes, std::uint32_t mode,
                  Way way = Way::kRefused) override;
  Result<std::vector<std::string>> restore(const std::vector<std::string>& globs,
                                           const std::vector<std::string>& names) override;
  Result<std::vector<std::string>> restore_again(
      const std::vector<std::string>& globs, const MadeUnder& made,
      const std::map<std::string, PlacedFile>& placed) override;
  Result<std::vector<std::string>> restore_copy(
      const TreeCopy& copy, const std::vector<std::string>& globs, const MadeUnder& made,
      const std::map<std::string, PlacedFile>& placed) override;
  Result<std::vector<std::string>> restore_git(const MadeUnder& made,
                                               const std::vector<SeenAt>& places) override;
  Result<MadeUnder> made_under(const std::vector<std::string>& globs,
                               const fs::path& keep) override;
  Status whole(TreeMark::Look look) const override;
  Result<std::vector<std::string>> changed_under(const std::vector<std::string>& globs) override;

 private:
  MountedWorkspace(const Snapshot& snapshot, std::shared_ptr<OverlayPool> overlays,
                   const ObjectId& content, WorkspaceSetup setup);
  void remove(RemovalCost& cost);
  Status prepare();
  Status prepare_copy();
  OverlayLayers layers() const;
  Result<ObjectDb> objects() const;
  ScanInput scan_input() const;
  TrustedPart git_part() const;
  // Is more in what was left than the worker itself makes a patch of?
  bool is_much(const fs::path& left) const;

  Snapshot snapshot_;
  std::optional<FileLock>
      use_;  // of its tree: below the overlay, and the objects it is compared to
  std::shared_ptr<OverlayPool> overlays_;
  ObjectId content_;
  WorkspaceSetup setup_;
  std::optional<SetupLayer> layer_;
  fs::path merged_;
  std::unique_ptr<OverlayMount> mount_;
  CopiedFiles copied_;
  CopiedFiles vouched_;  // protected files, as they were when they were last found right
  bool has_volume_ = false;
};
}  // namespace proctor
