#include "worker/workspace/overlay_pool.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/cache.h"

namespace proctor {
Status make_dir(const fs::path& dir) {
  if (::mkdir(dir.c_str(), 0755) == 0) return ok_status();
  if (errno == EEXIST) return Error{Errc::kConflict, "workspace " + dir.string() + " exists"};
  return errno_error("make " + dir.string(), errno);
}

namespace {
constexpr const char* kSetupNote = "setup-layer";  // beside merged
constexpr std::size_t kPathBytes = 4096;
constexpr std::size_t kRestingMax = 16;  // two rooms for each of eight slots

// Names of its extended attributes (their values cannot change without moving the ctime).
std::optional<std::string> attribute_names(const fs::path& path) {
  std::array<char, 1024> names{};
  const ssize_t n = ::llistxattr(path.c_str(), names.data(), names.size());
  if (n < 0) return std::nullopt;
  return std::string(names.data(), static_cast<std::size_t>(n));
}

// Of what commands wrote beside the workspace.
bool clear_folder(const fs::path& path) {
  return remove_tree(path).ok() && make_dir(path).ok();
}
}  // namespace

OverlayMount::OverlayMount(fs::path dir, OverlayLayers layers, const OverlayMeans& means)
    : dir_(std::move(dir)),
      layers_(std::move(layers)),
      upper_(dir_ / "upper"),
      work_(dir_ / "work"),
      merged_(dir_ / "merged"),
      kind_(means.kind),
      remover_(means.remover),
      view_(means.view) {}

void OverlayMount::use_bounded_disk() {
  bounded_ = true;
  upper_ = bounded_folder(dir_) / "upper";
  work_ = bounded_folder(dir_) / "work";
}

std::optional<fs::path> OverlayMount::beside() const {
  if (!bounded_) return std::nullopt;
  return bounded_folder(dir_) / "beside";
}

Result<std::unique_ptr<OverlayMount>> OverlayMount::create(fs::path dir, OverlayLayers layers,
                                                           const OverlayMeans& means) {
  PROCTOR_CHECK_OK(make_dir(dir));
  // From here on the destructor cleans up, whatever fails.
  std::unique_ptr<OverlayMount> made(new OverlayMount(std::move(dir), std::move(layers), means));
  PROCTOR_CHECK_OK(made->mount(means.disks));
  return made;
}

Result<std::unique_ptr<OverlayMount>> OverlayMount::adopt(fs::path dir, OverlayLayers layers,
                                                          const Remover& remover) {
  OverlayMeans means;
  means.remover = remover;
  std::unique_ptr<OverlayMount> left(new OverlayMount(std::move(dir), std::move(layers), means));
  left->adopted_ = true;
  PROCTOR_TRY(left->use_, use_tree(left->layers_.tree.parent_path()));
  PROCTOR_TRY(left->below_, TreeMark::of(left->layers_.tree.parent_path()));
  if (auto setup = read_file(left->dir_ / kSetupNote, kPathBytes); setup.ok()) {
    left->layers_.setup = std::move(setup).value();
    PROCTOR_TRY(left->use_setup_, use_tree(left->layers_.setup.parent_path()));
  }
  // Nothing but an overlay is ever mounted there; a folder that is none was unmounted.
  struct stat merged {
  }, above{};
  if (::lstat(left->merged_.c_str(), &merged) != 0 || ::lstat(left->dir_.c_str(), &above) != 0 ||
      merged.st_dev == above.st_dev)
    return Error{Errc::kNotFound, "workspace " + left->dir_.string() + ": not mounted any more"};
  std::error_code ec;
  if (fs::is_directory(bounded_folder(left->dir_), ec)) left->use_bounded_disk();
  if (is_own_user(merged.st_uid)) PROCTOR_CHECK_OK(left->take_from_user());
  return left;
}

// A user of its own ends with the life that made it, and nobody else can make anything in what is
// his.  On the disk all of it is root's: the same layers, mounted for root.
Status OverlayMount::take_from_user() {
  PROCTOR_CHECK_OK(unmount_strictly(merged_));
  const fs::path work = work_.string() + "-left";  // the first one's mount was volatile
  PROCTOR_CHECK_OK(make_dir(work));
  return mount_as_it_is(work);
}

// A workspace with a layer must look as if setup had just run in it: the top folder is the upper
// layer's, so it gets the mode and the owner that setup left it with.
Status OverlayMount::mount_layers(const fs::path& work) {
  if (!layers_.setup.empty()) {
    PROCTOR_TRY(use_setup_, use_tree(layers_.setup.parent_path()));
    PROCTOR_CHECK_OK(write_file(dir_ / kSetupNote, layers_.setup.string(), Durability::kLazy));
    struct stat st {};
    if (::lstat(layers_.setup.c_str(), &st) != 0 ||
        ::chown(upper_.c_str(), st.st_uid, st.st_gid) != 0 ||
        ::chmod(upper_.c_str(), st.st_mode & 07777U) != 0)
      return errno_error("folder as in " + layers_.setup.string(), errno);
  }
  return mount_as_it_is(work);
}

Status OverlayMount::mount_as_it_is(const fs::path& work) {
  const OverlayDirs dirs{layers_.git, layers_.tree, upper_, work, merged_, layers_.setup};
  return mount_overlay(dirs, kind_, view_.get());
}

Result<fs::path> OverlayMount::surrender() {
  PROCTOR_CHECK_OK(unmount_strictly(merged_));
  return upper_;
}

Status OverlayMount::lay_below(const fs::path& setup) {
  PROCTOR_CHECK_OK(unmount_strictly(merged_));
  layers_.setup = setup;
  adopted_ = true;                              // never handed on
  const fs::path work = work_.string() + "-2";  // the first one's mount was volatile
  PROCTOR_CHECK_OK(make_dir(work));
  return mount_layers(work);
}

Status OverlayMount::mount(const BoundedDisks* disks) {
  PROCTOR_TRY(use_, use_tree(layers_.tree.parent_path()));
  PROCTOR_TRY(below_, TreeMark::of(layers_.tree.parent_path()));
  if (0 < layers_.bound.bytes && disks != nullptr) {
    use_bounded_disk();
    PROCTOR_CHECK_OK(disks->mount(dir_, layers_.bound));
    PROCTOR_CHECK_OK(make_dir(*beside()));
  }
  for (const fs::path& dir : {merged_, upper_, work_}) PROCTOR_CHECK_OK(make_dir(dir));
  PROCTOR_CHECK_OK(mount_layers(work_));
  // After mounting, which may leave its own attributes there.
  if (::lstat(upper_.c_str(), &as_made_) != 0) return errno_error(upper_.string(), errno);
  attributes_as_made_ = attribute_names(upper_).value_or("?");
  return ok_status();
}

OverlayMount::~OverlayMount() {
  RemovalCost nobodys;
  remove(nobodys);
}

void OverlayMount::remove(RemovalCost& cost) {
  if (std::exchange(removed_, true)) return;
  const auto report = [&](const Status& s) {
    if (!s.ok()) log::warn("workspace " + dir_.string() + ": " + s.error().detail);
    return s.ok();
  };
  const bool unmounted = report(unmount(merged_));
  if (unmounted && report(unmount_bounded(dir_))) report(remove_left(dir_, remover_, cost));
}

bool OverlayMount::untouched() const {
  if (adopted_ || !whole(TreeMark::Look::kSentinel).ok()) return false;
  struct stat now {};
  if (::lstat(upper_.c_str(), &now) != 0) return false;
  std::error_code ec;
  return same_time(now.st_ctim, as_made_.st_ctim) && same_time(now.st_mtim, as_made_.st_mtim) &&
         now.st_mode == as_made_.st_mode && now.st_uid == as_made_.st_uid &&
         now.st_gid == as_made_.st_gid && attribute_names(upper_) == attributes_as_made_ &&
         fs::is_empty(upper_, ec);
}

OverlayPool::OverlayPool(fs::path dir, WorkspaceKind kind, std::optional<BoundedDisks> disks,
                         Remover remover, std::optional<OwnViews> views)
    : dir_(std::move(dir)),
      kind_(kind),
      disks_(std::move(disks)),
      remover_(std::move(remover)),
      views_(std::move(views)) {}

std::unique_ptr<OverlayMount> OverlayPool::take_resting(const OverlayLayers& layers) {
  const std::lock_guard guard(mutex_);
  const auto it = resting_.find(layers);
  if (it == resting_.end() || it->second.empty()) return nullptr;
  std::unique_ptr<OverlayMount> mount = std::move(it->second.back());
  it->second.pop_back();
  --count_;
  return mount;
}

Result<std::unique_ptr<OverlayMount>> OverlayPool::take(OverlayLayers layers) {
  layers.own_user = layers.own_user && views_;
  while (auto resting = take_resting(layers))  // but for one whose folders were deleted meanwhile
    if (resting->untouched()) return resting;
  OverlayMeans means{kind_, disks_ ? &*disks_ : nullptr, remover_};
  if (layers.own_user) {
    auto view = views_->take();
    if (view.ok()) means.view = std::move(view).value();
    if (!view.ok()) log::info("a workspace has no user of its own: " + view.error().detail);
    layers.own_user = means.view != nullptr;
  }
  return OverlayMount::create(dir_ / ("overlay-" + std::to_string(next_++)), std::move(layers),
                              means);
}

RemovalCost OverlayPool::give_back(std::unique_ptr<OverlayMount> mount) {
  RemovalCost cost;
  const auto beside = mount->beside();
  if (!mount->untouched() ||
      (beside && (is_used_up(bounded_folder(mount->dir())) || !clear_folder(*beside)))) {
    mount->remove(cost);
    return cost;
  }
  std::unique_ptr<OverlayMount> leaves;  // unmounted without the lock, as `mount` is
  const std::lock_guard guard(mutex_);
  if (closed_) return cost;
  std::vector<std::unique_ptr<OverlayMount>>& mine = resting_[mount->layers()];
  if (kRestingMax <= count_) {
    // One of another tree has rested longest: campaigns go through their tasks in order.
    for (auto& [layers, others] : resting_) {
      if (&others == &mine || others.empty()) continue;
      leaves = std::move(others.back());
      others.pop_back();
      --count_;
      break;
    }
    if (!leaves) return cost;
  }
  mine.push_back(std::move(mount));
  ++count_;
  return cost;
}

void OverlayPool::close() {
  std::map<OverlayLayers, std::vector<std::unique_ptr<OverlayMount>>> leaving;
  const std::lock_guard guard(mutex_);
  closed_ = true;
  leaving.swap(resting_);
  count_ = 0;
}
}  // namespace proctor
