#include "worker/workspace/workspace.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>

#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/git/mirror.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/mounted_workspace.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {
constexpr const char* kLock = ".lock";

Status bury(const fs::path& dir) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir, ec)) {
    if (!entry.is_directory()) continue;
    PROCTOR_CHECK_OK(unmount(entry.path() / "merged"));
    PROCTOR_CHECK_OK(unmount_bounded(entry.path()));
  }
  return remove_tree(dir);
}

// Those of an owner but for `mine`; the names of the ones that somebody holds.
Result<std::vector<std::string>> bury_lives(const fs::path& owner_dir, const fs::path& mine) {
  PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
  std::vector<std::string> living;
  std::vector<fs::path> others;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(owner_dir, ec)) {
    if (entry.is_directory()) others.push_back(entry.path());
  }
  if (ec) return errno_error("list " + owner_dir.string(), ec.value());
  for (const fs::path& dir : others) {
    if (dir == mine || !FileLock::try_acquire(dir / kLock).ok()) {
      living.push_back(dir.filename().string());
      continue;
    }
    PROCTOR_CHECK_OK(bury(dir));
  }
  return living;
}

// The owner's name without what its root's place adds to it; empty: nothing is added.
std::string_view placeless(std::string_view owner) {
  constexpr std::size_t kHash = 12;
  const std::size_t dash = owner.rfind('-');
  const bool hashed = dash != std::string_view::npos && owner.size() - dash - 1 == kHash &&
                      owner.find_first_not_of("0123456789abcdef", dash + 1) == owner.npos;
  return hashed ? owner.substr(0, dash) : std::string_view();
}

// One life of one worker: a folder that is locked for as long as the process lives, so that the
// next life (or a sibling of the same name) can tell what was left behind from what is in use.
// Owns <owner folder>/life-XXXXXX; removed at the end when empty.  Blocking.  Thread-safe.
class Life {
 public:
  static Result<Life> begin(const fs::path& owner_dir) {
    // Until the new folder is locked nobody may take it for a dead one.
    PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
    std::string name = (owner_dir / "life-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return errno_error("make " + name, errno);
    PROCTOR_TRY(FileLock lock, FileLock::acquire(fs::path(name) / kLock));
    spread_subfolders(name);
    return Life(name, std::move(lock));
  }

  Life(Life&&) noexcept = default;
  Life& operator=(Life&&) noexcept = default;
  ~Life() {
    if (dir_.empty()) return;
    std::error_code ec;
    fs::remove(dir_ / kLock, ec);
    fs::remove(dir_, ec);  // only when empty
  }

  const fs::path& dir() const { return dir_; }
  std::string name() const { return dir_.filename().string(); }
  // Makes its folder anew, under the same name, where somebody has deleted it.
  Status stay() {
    if (std::error_code ec; fs::exists(dir_ / kLock, ec)) return ok_status();
    PROCTOR_TRY(const FileLock owner, FileLock::acquire(dir_.parent_path() / kLock));
    PROCTOR_TRY(lock_, FileLock::acquire(dir_ / kLock));
    return ok_status();
  }

  // Makes a folder of a life that is over, with what is mounted below it, ours; its new place.
  // kNotFound: no such folder of a dead life of this owner.
  Result<fs::path> take_over(const fs::path& dir) const {
    const fs::path owner_dir = dir_.parent_path(), life = dir.parent_path();
    std::error_code ec;
    if (life.parent_path() != owner_dir || life == dir_ || !fs::is_directory(dir, ec))
      return Error{Errc::kNotFound, "no folder of an earlier life: " + dir.string()};
    PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
    if (const auto dead = FileLock::try_acquire(life / kLock); !dead.ok()) return dead.error();
    const fs::path mine = dir_ / (life.filename().string() + "-" + dir.filename().string());
    // What is mounted below moves with it: only a mount's own place cannot be renamed.
    fs::rename(dir, mine, ec);
    if (ec) return errno_error("take over " + dir.string(), ec.value());
    return mine;
  }

  // Unmounts and removes the folders of lives that are over, also those of this owner's name
  // before the root was moved (an owner is named NAME-HASH, by where its root is); the names of
  // those of this owner that are not, ours included.
  Result<std::vector<std::string>> bury_the_dead() const {
    const fs::path owner_dir = dir_.parent_path();
    const std::string own = owner_dir.filename().string();
    std::vector<fs::path> before;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(owner_dir.parent_path(), ec)) {
      const std::string other = entry.path().filename().string();
      if (entry.is_directory() && other != own && !placeless(own).empty() &&
          placeless(other) == placeless(own))
        before.push_back(entry.path());
    }
    for (const fs::path& dir : before) {
      PROCTOR_TRY(const std::vector<std::string> living, bury_lives(dir, {}));
      if (living.empty()) PROCTOR_CHECK_OK(remove_tree(dir));
    }
    return bury_lives(owner_dir, dir_);
  }

 private:
  Life(fs::path dir, FileLock lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  fs::path dir_;
  FileLock lock_;
};

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
