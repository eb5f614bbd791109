#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "common/base/text.h"
#include "worker/git/mirror.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/lives.h"
#include "worker/workspace/mounted_workspace.h"
#include "worker/workspace/probe.h"
#include "worker/workspace/snapshot.h"
#include "worker/workspace/workspace.h"

namespace proctor {
namespace {

constexpr std::size_t kNameBytes = 100;

// Owners and labels become folder, label and volume names.
Status check_name(std::string_view what, std::string_view name) {
  const auto plain = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= kNameBytes && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), plain)) {
    return ok_status();
  }
  return Error{Errc::kInvalid, std::string(what) + " \"" + printable(name) +
                                   "\" must be letters, digits, '-', '_', '.', at most 100"};
}

struct Kinds {
  WorkspaceKind mine, copies;  // copies: where an engine must see it, or an overlay will not do
};

// `wanted`: this one or none.
Result<Kinds> kinds_that_work(const fs::path& dir, std::optional<WorkspaceKind> wanted) {
  Kinds out{WorkspaceKind::kCopy, WorkspaceKind::kCopy};
  std::string missing;
  for (const WorkspaceKind kind : kWorkspaceKinds) {
    if (wanted && kind != *wanted) continue;
    out.mine = kind;
    const Status probe = probe_workspaces(dir, kind);
    if (probe.ok()) break;
    const std::string why = std::string(to_string(kind)) + ": " + probe.error().detail;
    if (wanted) return Error{Errc::kUnavailable, "workspaces: " + why};
    missing += "; no " + why;
  }
  if (!missing.empty()) log::info("workspaces: " + std::string(to_string(out.mine)) + missing);
  // Beside overlays of root there are no copies.
  if (!is_overlay(out.mine))
    out.copies = out.mine;
  else if (out.mine != WorkspaceKind::kOverlay &&
           probe_workspaces(dir, WorkspaceKind::kReflink).ok())
    out.copies = WorkspaceKind::kReflink;
  return out;
}

// None: workspaces have no users of their own here.
std::optional<OwnViews> own_views(const fs::path& root, const fs::path& life, const Kinds& kinds) {
  if (kinds.mine != WorkspaceKind::kOverlay) return std::nullopt;
  OwnViews views(root);
  const Status probe = probe_own_users(life, views);
  if (probe.ok()) return views;
  log::info("workspaces have no users of their own: " + probe.error().detail);
  return std::nullopt;
}

class Store final : public WorkspaceStore {
 public:
  Store(WorkspaceStoreOptions options, Kinds kinds, MirrorStore mirrors, TreeStore trees,
        SetupLayers layers, Life life, std::optional<BoundedDisks> disks,
        std::optional<OwnViews> views)
      : options_(std::move(options)),
        kinds_(kinds),
        mirrors_(std::move(mirrors)),
        trees_(std::move(trees)),
        layers_(std::move(layers)),
        life_(std::move(life)) {
    if (is_overlay(kinds_.mine))
      overlays_ = std::make_shared<OverlayPool>(life_.dir(), kinds_.mine, std::move(disks),
                                                options_.remover, std::move(views));
  }
  ~Store() override {
    if (overlays_) overlays_->close();
  }

  Result<Snapshot> snapshot(const Repository& repository, const fs::path& base) override {
    Key key{repository.source, base.string(), repository.commit, repository.tree,
            repository.submodules};
    {
      const std::lock_guard guard(mutex_);
      PROCTOR_CHECK_OK(life_.stay());
      if (const auto it = known_.find(key); it != known_.end() && is_there(it->second))
        return it->second;
    }
    PROCTOR_CHECK_OK(prepare_apply(apply_scratch()));
    PROCTOR_TRY(Snapshot made, trees_.snapshot(mirrors_, repository, base));
    const auto use = use_tree(made.tree_dir.parent_path());  // what was just made stays
    make_room();
    const std::lock_guard guard(mutex_);
    return known_.insert_or_assign(std::move(key), std::move(made)).first->second;
  }

  const SetupLayers& layers() const override { return layers_; }

  void make_room() const override {
    if (options_.cache_max == 0) return;
    const auto room = proctor::make_room(options_.root, options_.cache_max);
    if (!room.ok()) log::warn("make room: " + room.error().detail);
    if (room.ok() && 0 < room->removed)
      log::info("evicted " + std::to_string(room->removed) + " mirrors, trees and layers of " +
                std::to_string(room->removed_bytes >> 20U) + " MiB");
  }

  Result<std::unique_ptr<Workspace>> create(const Snapshot& snapshot, const std::string& label,
                                            const SetupLayer* setup, const DiskBound& bound,
                                            ShownTo shown) override {
    PROCTOR_CHECK_OK(check_name("workspace label", label));
    WorkspaceSetup wanted = setup_for(label);
    if (options_.bounded_disks) wanted.bound = bound;
    wanted.own_user = shown == ShownTo::kOwnUser;
    auto made = MountedWorkspace::create(snapshot, is_overlay(kind(shown)) ? overlays_ : nullptr,
                                         std::move(wanted), setup);
    std::error_code ec;
    if (made.ok() || fs::is_directory(snapshot.tree_dir, ec)) return made;
    // Evicted by a sibling since we saw it: the next attempt makes it again.
    const std::lock_guard guard(mutex_);
    std::erase_if(known_,
                  [&](const auto& one) { return one.second.tree_dir == snapshot.tree_dir; });
    return Error{Errc::kUnavailable, "tree " + snapshot.tree + " was evicted"};
  }

  Result<std::unique_ptr<Workspace>> adopt(const Snapshot& snapshot, const std::string& label,
                                           const LeftWorkspace& left) override {
    PROCTOR_CHECK_OK(check_name("workspace label", label));
    const auto kept = kept_.find(left.dir);
    if (kept == kept_.end())
      return Error{Errc::kNotFound, "workspace " + left.dir.string() + " was not kept"};
    WorkspaceSetup setup = setup_for(label);
    using Volume = MountedWorkspace::Volume;
    const Volume volume = left.volume.empty() ? Volume::kNone : Volume::kMade;
    if (volume == Volume::kMade) setup.volume_name = left.volume;
    return MountedWorkspace::adopt(snapshot, overlays_, std::move(setup), kept->second, volume);
  }

  WorkspaceKind kind(ShownTo shown) const override {
    return shown == ShownTo::kDockerEngine && has_own_mounts() ? kinds_.copies : kinds_.mine;
  }
  bool bounds_disks() const override { return options_.bounded_disks; }
  bool has_own_users() const override { return overlays_ && overlays_->has_own_users(); }

  Status clean_up(const std::vector<LeftWorkspace>& keep) override {
    for (const LeftWorkspace& left : keep) {
      if (!left.volume.empty()) volumes_kept_.insert(left.volume);
      auto mine = life_.take_over(left.dir);
      if (mine.ok()) kept_.emplace(left.dir, std::move(mine).value());
      if (!mine.ok()) log::warn("workspace " + left.dir.string() + ": " + mine.error().detail);
    }
    PROCTOR_TRY(living_, life_.bury_the_dead());
    return options_.docker_socket.empty() ? ok_status() : remove_left_volumes();
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, bool>;

  fs::path apply_scratch() const { return options_.root / "apply.git"; }

  // False if a folder that it needs was evicted, or deleted under this life.
  bool is_there(const Snapshot& snapshot) const {
    std::error_code ec;
    return fs::is_directory(snapshot.tree_dir, ec) &&
           fs::is_directory(snapshot.mirror_objects, ec) && fs::is_directory(apply_scratch(), ec);
  }

  // Those of dead lives; later, if there is no engine now.
  Status remove_left_volumes() const {
    const DockerVolumes docker(options_.docker_socket);
    const auto volumes = docker.list(owner_labels());
    volumes_unclean_ = !volumes.ok();
    if (!volumes.ok() && volumes.error().code == Errc::kUnavailable) return ok_status();
    if (!volumes.ok()) return volumes.error();
    for (const auto& [name, labels] : *volumes) {
      const auto life = labels.find("proctor.life");
      const bool alive = life != labels.end() &&
                         std::find(living_.begin(), living_.end(), life->second) != living_.end();
      const bool ours = life != labels.end() && life->second == life_.name();
      if (!alive && !ours && !volumes_kept_.contains(name)) PROCTOR_CHECK_OK(docker.remove(name));
    }
    return ok_status();
  }

  WorkspaceSetup setup_for(const std::string& label) const {
    WorkspaceSetup setup;
    setup.copies = kinds_.copies;
    setup.dir = life_.dir() / label;
    setup.apply_scratch = apply_scratch();
    setup.docker_socket = options_.docker_socket;
    setup.owed_volumes = owed_volumes_;
    setup.folders = folders_;
    setup.extractor = options_.extractor;
    setup.remover = options_.remover;
    setup.clean_volumes = [this] {
      if (!volumes_unclean_.exchange(false)) return;
      if (const Status s = remove_left_volumes(); !s.ok()) log::warn(s.error().detail);
    };
    setup.volume_name = "proctor-" + options_.owner + "-" + life_.name() + "-" + label;
    setup.volume_labels = owner_labels();
    setup.volume_labels["proctor.attempt"] = label;
    setup.volume_labels["proctor.life"] = life_.name();
    return setup;
  }

  // Two stores of one owner name in different folders know nothing of each other's lives.
  DockerLabels owner_labels() const {
    return {{"proctor.owner", options_.owner},
            {"proctor.root", sha256(options_.root.string()).short_hex()}};
  }

  const WorkspaceStoreOptions options_;
  const Kinds kinds_;
  const MirrorStore mirrors_;
  const TreeStore trees_;
  const SetupLayers layers_;
  Life life_;                              // mutex_
  std::shared_ptr<OverlayPool> overlays_;  // null: workspaces are copies
  std::vector<std::string> living_;        // other lives of this owner, at the start
  std::set<std::string> volumes_kept_;     // of this owner's dead lives
  mutable std::atomic<bool> volumes_unclean_{false};
  const std::shared_ptr<TreeCache> folders_ = std::make_shared<TreeCache>();
  const std::shared_ptr<Owed> owed_volumes_ = std::make_shared<Owed>();
  std::map<fs::path, fs::path> kept_;  // where it was left: where it is; not changed later
  std::mutex mutex_;
  std::map<Key, Snapshot> known_;  // snapshots made or seen in this life
};

}  // namespace

Result<std::unique_ptr<WorkspaceStore>> open_workspace_store(const WorkspaceStoreOptions& given) {
  WorkspaceStoreOptions options = given;
  PROCTOR_CHECK_OK(check_name("owner", options.owner));
  std::error_code ec;
  options.root = fs::absolute(given.root, ec);
  PROCTOR_CHECK_OK(make_private_dirs(options.root));
  options.root = fs::canonical(options.root, ec);
  if (ec) return errno_error("open " + given.root.string(), ec.value());
  PROCTOR_TRY(MirrorStore mirrors, MirrorStore::create(options.root / "mirrors"));
  PROCTOR_TRY(TreeStore trees, TreeStore::create(options.root / "trees"));
  PROCTOR_TRY(SetupLayers layers, SetupLayers::create(options.root / "layers"));
  PROCTOR_TRY(Life life, Life::begin(options.root / "workspaces" / options.owner));
  // Below our life: buried with it if we are killed meanwhile.
  PROCTOR_TRY(const Kinds kinds, kinds_that_work(life.dir(), options.kind));
  std::optional<OwnViews> views = own_views(options.root, life.dir(), kinds);
  std::optional<BoundedDisks> disks;
  if (options.bounded_disks) {
    if (kinds.mine != WorkspaceKind::kOverlay)
      return Error{Errc::kUnavailable, "bounded disks: workspaces are no overlays of root here"};
    PROCTOR_TRY(disks, BoundedDisks::open(options.root / "disks", life.dir()));
  }
  return std::unique_ptr<WorkspaceStore>(std::make_unique<Store>(
      std::move(options), kinds, std::move(mirrors), std::move(trees), std::move(layers),
      std::move(life), std::move(disks), std::move(views)));
}

}  // namespace proctor
