#include "worker/workspace/mounted_workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/base/apply.h"
#include "common/base/folder_tree.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "common/base/text.h"
#include "worker/sandbox/docker_api.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/extract.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/protect.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {
constexpr std::size_t kAnswerBytes = std::size_t{16} << 20;
constexpr std::chrono::seconds kAnswerWithin{30};

Result<HttpReply> ask(const std::string& socket, std::string_view method, const std::string& target,
                      const std::string& body) {
  auto answer =
      DockerApi(socket).call(method, "/volumes" + target, body, kAnswerWithin, kAnswerBytes);
  if (answer.ok() || answer.error().code == Errc::kInvalid) return answer;
  return Error{Errc::kUnavailable, answer.error().detail};
}

Error refused(const std::string& what, const HttpReply& answer) {
  const Errc code = answer.status / 100 == 4 ? Errc::kInvalid : Errc::kUnavailable;
  return Error{code, what + ": docker answers " + std::to_string(answer.status) + ": " +
                         printable(answer.body, 300)};
}
}  // namespace

Status DockerVolumes::create(const std::string& name, const fs::path& device,
                             const DockerLabels& labels) const {
  const Json body = {{"Name", name},
                     {"Driver", "local"},
                     {"DriverOpts", {{"type", "none"}, {"o", "bind"}, {"device", device.string()}}},
                     {"Labels", labels}};
  const std::string what = "create volume " + name;
  auto answer = ask(socket_, "POST", "/create", body.dump());
  if (!answer.ok()) return in_context(what, answer.error());
  if (answer->status / 100 != 2) return refused(what, *answer);
  return ok_status();
}

Status DockerVolumes::remove(const std::string& name) const {
  const std::string what = "remove volume " + name;
  auto answer = ask(socket_, "DELETE", "/" + url_encode(name), "");
  if (!answer.ok()) return in_context(what, answer.error());
  if (answer->status / 100 != 2 && answer->status != 404) return refused(what, *answer);
  return ok_status();
}

Result<std::map<std::string, DockerLabels>> DockerVolumes::list(const DockerLabels& labels) const {
  Json wanted = Json::array();
  for (const auto& [k, v] : labels) wanted.push_back(k + "=" + v);
  const Json filter = {{"label", wanted}};
  PROCTOR_TRY(const HttpReply answer,
              ask(socket_, "GET", "?filters=" + url_encode(filter.dump()), ""));
  if (answer.status != 200) return refused("list volumes", answer);
  PROCTOR_TRY(const Json json, parse_json(answer.body, {kAnswerBytes, 16}));
  std::map<std::string, DockerLabels> out;
  const Json& volumes = member_at(json, "Volumes");
  if (!volumes.is_array()) return out;
  for (const Json& v : volumes) {
    const std::string name = text_at(v, "Name");
    if (name.empty()) continue;
    DockerLabels& own = out[name];
    for (const auto& [k, value] : member_at(v, "Labels").items())
      if (value.is_string()) own[k] = value.string();
  }
  return out;
}

namespace {
// A file takes whole blocks, and a share of its folder.
constexpr std::uint64_t kCopiedFileSlack = 8192;

constexpr int kMeetDepthMax = 128;

Result<bool> folders_meet(int upper, int setup, WorkspaceKind kind, int depth) {
  if (kMeetDepthMax < depth || is_opaque(upper, kind) || is_opaque(setup, kind)) return true;
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(upper));
  for (const std::string& name : inside) {
    struct stat mine {
    }, theirs{};
    if (::fstatat(upper, name.c_str(), &mine, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("look at " + printable(name), errno);
    if (::fstatat(setup, name.c_str(), &theirs, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return errno_error("look at " + printable(name), errno);
    }
    // A folder in both says nothing of the tree yet, unless one has changed what it is.
    if (!S_ISDIR(mine.st_mode) || !S_ISDIR(theirs.st_mode) || mine.st_mode != theirs.st_mode)
      return true;
    PROCTOR_TRY(const UniqueFd below, beneath::open_dir(upper, name));
    PROCTOR_TRY(const UniqueFd of_setup, beneath::open_dir(setup, name));
    PROCTOR_TRY(const bool meet, folders_meet(below.get(), of_setup.get(), kind, depth + 1));
    if (meet) return true;
  }
  return false;
}

// Do two upper layers of one tree say anything about the same path?  Where they do not, it makes no
// difference which of them lies above the other.  True as well where that cannot be told: nested
// too deep, marks with names of their own.  `kind`: of both.
Result<bool> layers_meet(const fs::path& upper, const fs::path& setup, WorkspaceKind kind) {
  PROCTOR_TRY(const UniqueFd mine, beneath::open_root(upper.string()));
  PROCTOR_TRY(const UniqueFd theirs, beneath::open_root(setup.string()));
  return folders_meet(mine.get(), theirs.get(), kind, 0);
}
}  // namespace

MountedWorkspace::MountedWorkspace(const Snapshot& snapshot, std::shared_ptr<OverlayPool> overlays,
                                   const ObjectId& content, WorkspaceSetup setup)
    : snapshot_(snapshot),
      overlays_(std::move(overlays)),
      content_(content),
      setup_(std::move(setup)) {}

Result<std::unique_ptr<Workspace>> MountedWorkspace::create(const Snapshot& snapshot,
                                                            std::shared_ptr<OverlayPool> overlays,
                                                            WorkspaceSetup setup,
                                                            const SetupLayer* layer) {
  PROCTOR_TRY(FileLock use, use_tree(snapshot.tree_dir.parent_path()));
  PROCTOR_TRY(const ObjectId content, snapshot_content(snapshot));
  // From here on the destructor cleans up, whatever fails.
  std::unique_ptr<MountedWorkspace> ws(
      new MountedWorkspace(snapshot, std::move(overlays), content, std::move(setup)));
  ws->use_ = std::move(use);
  if (layer != nullptr) ws->layer_ = *layer;
  PROCTOR_CHECK_OK(ws->prepare());
  return std::unique_ptr<Workspace>(std::move(ws));
}

Result<std::unique_ptr<Workspace>> MountedWorkspace::adopt(const Snapshot& snapshot,
                                                           std::shared_ptr<OverlayPool> overlays,
                                                           WorkspaceSetup setup,
                                                           const fs::path& dir, Volume volume) {
  PROCTOR_TRY(FileLock use, use_tree(snapshot.tree_dir.parent_path()));
  PROCTOR_TRY(const ObjectId content, snapshot_content(snapshot));
  PROCTOR_TRY(auto mount,
              OverlayMount::adopt(dir, {snapshot_git_layer(snapshot), snapshot.tree_dir},
                                  overlays->remover()));
  std::unique_ptr<MountedWorkspace> ws(
      new MountedWorkspace(snapshot, std::move(overlays), content, std::move(setup)));
  ws->use_ = std::move(use);
  if (const fs::path& below = mount->layers().setup; !below.empty()) {
    PROCTOR_TRY(ws->layer_, open_setup_layer(below.parent_path()));
  }
  ws->merged_ = mount->merged();
  ws->mount_ = std::move(mount);
  ws->has_volume_ = volume == Volume::kMade;
  return std::unique_ptr<Workspace>(std::move(ws));
}

std::optional<LeftWorkspace> MountedWorkspace::left_to_others() const {
  // Of other kinds the mounts or their servers are gone with this life.
  if (!mount_ || mount_->kind() != WorkspaceKind::kOverlay) return std::nullopt;
  return LeftWorkspace{mount_->dir(), has_volume_ ? setup_.volume_name : ""};
}

OverlayLayers MountedWorkspace::layers() const {
  return {snapshot_git_layer(snapshot_), snapshot_.tree_dir, layer_ ? layer_->work() : fs::path(),
          setup_.bound, setup_.own_user};
}

Status MountedWorkspace::prepare() {
  if (!overlays_) return prepare_copy();
  PROCTOR_TRY(mount_, overlays_->take(layers()));
  merged_ = mount_->merged();
  return ok_status();
}

Status MountedWorkspace::prepare_copy() {
  PROCTOR_CHECK_OK(make_dir(setup_.dir));
  merged_ = setup_.dir / "merged";
  PROCTOR_CHECK_OK(make_dirs(merged_));
  CopiedFiles git_files;
  // Nothing is known of its files: each is compared with the snapshot when a patch is made.
  if (layer_) return copy_tree(layer_->work(), merged_, git_files);
  PROCTOR_CHECK_OK(copy_tree(snapshot_git_layer(snapshot_), merged_, git_files));
  return copy_tree(snapshot_.tree_dir, merged_, copied_);
}

MountedWorkspace::~MountedWorkspace() {
  close();
}

RemovalCost MountedWorkspace::close() {
  return cost_of([this](RemovalCost& cost) { remove(cost); });
}

void MountedWorkspace::remove(RemovalCost& cost) {
  const auto report = [&](const Status& s) {
    if (!s.ok()) log::warn("workspace " + merged_.string() + ": " + s.error().detail);
  };
  if (has_volume_) {
    const Status removed = DockerVolumes(setup_.docker_socket).remove(setup_.volume_name);
    report(removed);
    if (!removed.ok()) setup_.owed_volumes->add(setup_.volume_name);
    // What the engine has seen it may still hold: no other run gets that.
    if (mount_) mount_->remove(cost);
    has_volume_ = false;
  } else if (mount_) {
    cost.add(overlays_->give_back(std::move(mount_)));
  }
  mount_.reset();
  if (!overlays_ && !merged_.empty()) report(remove_left(setup_.dir, setup_.remover, cost));
  merged_.clear();
}

Result<std::string> MountedWorkspace::docker_volume() {
  if (setup_.docker_socket.empty()) {
    return Error{Errc::kUnavailable, "docker volume: this worker has no docker engine"};
  }
  if (mount_ && has_own_mounts())
    return Error{Errc::kUnavailable, "docker volume: what is mounted here no engine sees"};
  if (!has_volume_) {
    if (setup_.clean_volumes) setup_.clean_volumes();
    const DockerVolumes docker(setup_.docker_socket);
    PROCTOR_CHECK_OK(docker.create(setup_.volume_name, merged_, setup_.volume_labels));
    setup_.owed_volumes->pay([&](const std::string& name) { return docker.remove(name).ok(); });
    has_volume_ = true;
  }
  return setup_.volume_name;
}

Result<ObjectDb> MountedWorkspace::objects() const {
  // The lower layer's objects: the agent's own are never read.
  return ObjectDb::open({snapshot_git_layer(snapshot_) / ".git" / "objects"});
}

ScanInput MountedWorkspace::scan_input() const {
  return {.dir = mount_ ? mount_->upper() : merged_,
          .kind = kind(),
          .setup = mount_ && layer_ ? layer_->work() : fs::path(),
          .copied = mount_ ? nullptr : &copied_,
          .tree = content_,
          .folders = setup_.folders.get()};
}

// What was removed is in a patch as what was made is: one mark may stand for all of a large tree.
bool MountedWorkspace::is_much(const fs::path& left) const {
  FolderCount count({kMuchBytes, kMuchFiles}, FolderMeasure::kSizes);
  count.add(left);
  if (!mount_) count.add(snapshot_.tree_dir);
  if (count.passed() || !mount_) return count.passed();
  // More than any snapshot has, of which what is hidden is taken away.
  constexpr FolderUse kAll{std::uint64_t{1} << 62, std::uint64_t{1} << 62};
  const FolderUse made = folder_use(left);
  FolderCount both;
  both.add_over(left, snapshot_.tree_dir, kAll);
  const FolderUse rest = both.so_far();
  return rest.bytes + kMuchBytes < kAll.bytes + made.bytes ||
         rest.files + kMuchFiles < kAll.files + made.files;
}

Result<Patch> MountedWorkspace::extract_patch(std::size_t bytes_max,
                                              const std::vector<std::string>& kept) {
  const ScanInput scan = scan_input();
  const Extraction what{snapshot_,   scan.dir,  scan.kind, scan.setup,
                        scan.copied, scan.tree, bytes_max, kept};
  if (setup_.extractor.path.empty()) return extract_here(what, *setup_.folders);
  if (!is_much(scan.dir)) return extract_here(what, *setup_.folders);
  return extract_apart(what, setup_.extractor, setup_.dir.parent_path());
}

Result<AppliedPatch> MountedWorkspace::apply(const std::string& diff) {
  return apply_diff(setup_.apply_scratch, {merged_, user().get(), {}},
                    {snapshot_git_layer(snapshot_) / ".git" / "objects", snapshot_.mirror_objects,
                     content_.hex(), setup_.dir.parent_path()},
                    diff);
}

Status MountedWorkspace::put_file(const std::string& relative, std::string_view bytes,
                                  std::uint32_t mode, Way way) {
  const std::string what = "put " + printable(relative);
  if (is_dot_git(std::string_view(relative).substr(0, relative.find('/')))) {
    return Error{Errc::kInvalid, what + ": inside .git"};
  }
  const ActingAs as(user().get());
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(merged_.string()));
  auto parent = beneath::open_parent(
      root.get(), relative,
      way == Way::kCleared ? beneath::Missing::kMakeAndReplace : beneath::Missing::kMake);
  if (!parent.ok()) return in_context(what, parent.error());
  return beneath::write_file(parent->dir.get(), parent->name, bytes, mode);
}

Result<std::vector<std::string>> MountedWorkspace::restore(const std::vector<std::string>& globs,
                                                           const std::vector<std::string>& names) {
  if (globs.empty() && names.empty()) return std::vector<std::string>{};
  PROCTOR_TRY(ObjectDb db, objects());
  const ActingAs as(user().get());
  return restore_paths(db, {merged_, scan_input(), ProtectedPaths(globs, names)});
}

Result<std::vector<std::string>> MountedWorkspace::restore_again(
    const std::vector<std::string>& globs, const MadeUnder& made,
    const std::map<std::string, PlacedFile>& placed) {
  if (globs.empty() && placed.empty()) return std::vector<std::string>{};
  PROCTOR_TRY(ObjectDb db, objects());
  const ActingAs as(user().get());
  return protect_paths(db, {merged_, scan_input(), globs, made, placed, vouched_});
}

// Not as the workspace's user: a copy is the worker's own.
Result<std::vector<std::string>> MountedWorkspace::restore_copy(
    const TreeCopy& copy, const std::vector<std::string>& globs, const MadeUnder& made,
    const std::map<std::string, PlacedFile>& placed) {
  const auto outside = [&](std::string_view path) {
    if (copy.part.empty() || path == copy.part) return false;
    return !path.starts_with(copy.part) || path[copy.part.size()] != '/';
  };
  std::map<std::string, PlacedFile> placed_there = placed;
  std::erase_if(placed_there, [&](const auto& file) { return outside(file.first); });
  std::vector<std::string> changed;
  if (!globs.empty() || !placed_there.empty()) {
    PROCTOR_TRY(ObjectDb db, objects());
    MadeUnder made_there = made;
    // A copy has no repository of its own.
    std::erase_if(made_there.paths, [&](const std::string& path) {
      return is_of_git(path) || (!path.ends_with('/') && outside(path));
    });
    const ScanInput scan{.dir = copy.dir,
                         .kind = WorkspaceKind::kCopy,
                         .part = copy.part,
                         .tree = content_,
                         .folders = setup_.folders.get()};
    PROCTOR_TRY(changed,
                protect_paths(db, {copy.dir, scan, globs, made_there, placed_there, copy.known}));
  }
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(copy.dir.string()));
  if (copy.part.empty()) PROCTOR_CHECK_OK(take_away(root.get(), std::string(kDotGit)));
  return changed;
}

namespace {
// But for what the untouched setup made; what was there is told in `out`.
Status remove_all(const SeenAt& place, const std::vector<std::string>& paths, const MadeUnder& made,
                  std::vector<std::string>& out) {
  if (paths.empty()) return ok_status();
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(place.dir.string()));
  for (const std::string& path : paths) {
    if (std::ranges::binary_search(made.paths, path) ||
        std::ranges::binary_search(made.paths, path + '/'))
      continue;
    PROCTOR_TRY(const Seen now, look(root.get(), path));
    if (!now.st) continue;
    PROCTOR_CHECK_OK(beneath::remove(now.parent->dir.get(), now.parent->name));
    out.push_back(place.told + path);
  }
  return ok_status();
}
}  // namespace

TrustedPart MountedWorkspace::git_part() const {
  return {std::string(kDotGit), snapshot_git_layer(snapshot_)};
}

Result<std::vector<std::string>> MountedWorkspace::restore_git(const MadeUnder& made,
                                                               const std::vector<SeenAt>& places) {
  const fs::path written = mount_ ? mount_->upper() : merged_;
  std::vector<std::string> out, links;
  {
    const ActingAs as(user().get());
    // In an overlay that nobody has written a .git into it is its layers'.
    const bool below = layer_.has_value() || std::ranges::none_of(made.paths, is_of_git);
    struct stat st {};
    if (!mount_ || !below || ::lstat((written / kDotGit).c_str(), &st) == 0) {
      PROCTOR_TRY(out, put_part_back(merged_, git_part(), made, vouched_));
    }
    PROCTOR_TRY(const std::vector<std::string> nested,
                nested_git(written, snapshot_.tree_dir, &links));
    PROCTOR_CHECK_OK(remove_all({"", merged_}, nested, made, out));
  }
  if (!links.empty() && !places.empty()) {
    PROCTOR_TRY(const auto led_to, linked_git(links, snapshot_.tree_dir, places));
    for (std::size_t i = 0; i < places.size(); ++i) {
      // What is not the workspace's is the worker's own.
      const ActingAs as(i == 0 ? user().get() : nullptr);
      PROCTOR_CHECK_OK(remove_all(places[i], led_to[i], i == 0 ? made : MadeUnder{}, out));
    }
  }
  std::ranges::sort(out);
  return out;
}

Result<MadeUnder> MountedWorkspace::made_under(const std::vector<std::string>& globs,
                                               const fs::path& keep) {
  PROCTOR_TRY(ObjectDb db, objects());
  MadeUnder made;
  if (!globs.empty()) {
    ScanInput scan = scan_input();
    scan.new_folders = &made.paths;
    PROCTOR_TRY(const std::vector<std::string> files,
                changed_paths(db, {merged_, scan, ProtectedPaths(globs)}));
    made.paths.insert(made.paths.end(), files.begin(), files.end());
  }
  PROCTOR_TRY(const std::vector<std::string> of_git, list_part(merged_, git_part()));
  // Where setup's is a layer it lies below what this run has written.
  const fs::path by_setup = !mount_ ? merged_ : layer_ ? layer_->work() : mount_->upper();
  PROCTOR_TRY(const std::vector<std::string> nested, nested_git(by_setup, snapshot_.tree_dir));
  made.paths.insert(made.paths.end(), of_git.begin(), of_git.end());
  made.paths.insert(made.paths.end(), nested.begin(), nested.end());
  std::ranges::sort(made.paths);
  made.paths.erase(std::unique(made.paths.begin(), made.paths.end()), made.paths.end());
  if (!keep.empty() && !made.paths.empty()) PROCTOR_CHECK_OK(keep_made(merged_, made.paths, keep));
  made.at = keep;
  return made;
}

Result<std::vector<std::string>> MountedWorkspace::changed_under(
    const std::vector<std::string>& globs) {
  if (globs.empty()) return std::vector<std::string>{};
  PROCTOR_TRY(ObjectDb db, objects());
  return changed_paths(db, {merged_, scan_input(), ProtectedPaths(globs)});
}

Status MountedWorkspace::whole(TreeMark::Look look) const {
  if (!mount_) return ok_status();
  PROCTOR_CHECK_OK(mount_->whole(look));
  std::error_code ec;
  if (!layer_ || fs::is_directory(layer_->work(), ec)) return ok_status();
  return Error{Errc::kUnavailable, "what setup made was deleted while it was used: " +
                                       layer_->dir.string() + " is not there"};
}

Result<fs::path> MountedWorkspace::surrender() {
  if (has_volume_) {
    PROCTOR_CHECK_OK(DockerVolumes(setup_.docker_socket).remove(setup_.volume_name));
    has_volume_ = false;
  }
  if (mount_) return mount_->surrender();
  return merged_;
}

Result<bool> MountedWorkspace::lay_below(const SetupLayer& layer) {
  if (!mount_ || layer_ || has_volume_) return false;
  PROCTOR_TRY(const bool meet, layers_meet(mount_->upper(), layer.work(), mount_->kind()));
  if (meet) return false;
  layer_ = layer;
  PROCTOR_CHECK_OK(mount_->lay_below(layer.work()));
  return true;
}

std::optional<Workspace::Bounded> MountedWorkspace::bounded() const {
  const auto beside = mount_ ? mount_->beside() : std::nullopt;
  if (!beside) return std::nullopt;
  return Bounded{*beside, entries_of(*beside)};
}

bool MountedWorkspace::used_up() {
  return mount_ && mount_->beside() && is_used_up(bounded_folder(mount_->dir()));
}

Workspace::Written MountedWorkspace::written() const {
  if (mount_ && layer_)
    return {mount_->upper(), 0, 0, layer_->work(), layer_->bytes, layer_->files};
  if (mount_) return {mount_->upper(), 0, 0};
  if (layer_) return {merged_, layer_->bytes_before, layer_->files_before};
  Written out{merged_, 0, copied_.size()};
  for (const auto& [path, file] : copied_)
    out.bytes_before += static_cast<std::uint64_t>(file.size) + kCopiedFileSlack;
  return out;
}
}  // namespace proctor
