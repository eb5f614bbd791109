#include "worker/workspace/mounted_workspace.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/workspace/apply.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/ignore_rules.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/patch.h"
#include "worker/workspace/restore.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {

// An edit of a large file makes a small patch, so contents may be larger than the patch; this much
// is read even when the patch must be tiny.
constexpr std::uint64_t kContentBytes = std::uint64_t{64} << 20;

Status make_dir(const fs::path& dir) {
  if (::mkdir(dir.c_str(), 0755) == 0) return ok_status();
  if (errno == EEXIST) return Error{Errc::kConflict, "workspace " + dir.string() + " exists"};
  return errno_error("make " + dir.string(), errno);
}

}  // namespace

MountedWorkspace::MountedWorkspace(const Snapshot& snapshot, WorkspaceKind kind,
                                   const GitProgram& git, const ObjectId& content,
                                   WorkspaceSetup setup)
    : snapshot_(snapshot),
      kind_(kind),
      git_(git),
      content_(content),
      setup_(std::move(setup)),
      merged_(setup_.dir / "merged"),
      upper_(setup_.dir / "upper") {}

Result<std::unique_ptr<Workspace>> MountedWorkspace::create(const Snapshot& snapshot,
                                                            WorkspaceKind kind,
                                                            const GitProgram& git,
                                                            WorkspaceSetup setup) {
  PROCTOR_TRY(const ObjectId content, snapshot_content(snapshot));
  PROCTOR_CHECK_OK(make_dir(setup.dir));
  // From here on the destructor cleans up, whatever fails.
  std::unique_ptr<MountedWorkspace> ws(
      new MountedWorkspace(snapshot, kind, git, content, std::move(setup)));
  PROCTOR_CHECK_OK(ws->prepare());
  return std::unique_ptr<Workspace>(std::move(ws));
}

Status MountedWorkspace::prepare() {
  PROCTOR_CHECK_OK(make_dir(merged_));
  if (kind_ == WorkspaceKind::kCopy) {
    CopiedFiles git_files;
    PROCTOR_CHECK_OK(copy_tree(snapshot_git_layer(snapshot_), merged_, git_files));
    return copy_tree(snapshot_.tree_dir, merged_, copied_);
  }
  PROCTOR_CHECK_OK(make_dir(upper_));
  PROCTOR_CHECK_OK(make_dir(setup_.dir / "work"));
  return mount_overlay(
      {snapshot_git_layer(snapshot_), snapshot_.tree_dir, upper_, setup_.dir / "work", merged_});
}

MountedWorkspace::~MountedWorkspace() {
  const auto report = [&](const Status& s) {
    if (!s.ok()) log::warn("workspace " + setup_.dir.string() + ": " + s.error().detail);
    return s.ok();
  };
  if (has_volume_) report(DockerVolumes(setup_.docker_socket).remove(setup_.volume_name));
  // A folder that may still be mounted is left to clean_up().
  if (kind_ == WorkspaceKind::kOverlay && !report(unmount(merged_))) return;
  report(remove_tree(setup_.dir));
}

Result<std::string> MountedWorkspace::docker_volume() {
  if (setup_.docker_socket.empty()) {
    return Error{Errc::kUnavailable, "docker volume: this worker has no docker engine"};
  }
  if (!has_volume_) {
    PROCTOR_CHECK_OK(DockerVolumes(setup_.docker_socket)
                         .create(setup_.volume_name, merged_, setup_.volume_labels));
    has_volume_ = true;
  }
  return setup_.volume_name;
}

Result<ObjectDb> MountedWorkspace::objects() const {
  // The lower layer's objects: the agent's own are never read.
  return ObjectDb::open({snapshot_git_layer(snapshot_) / ".git" / "objects"});
}

ScanInput MountedWorkspace::scan_input() const {
  ScanInput scan;
  const bool overlay = kind_ == WorkspaceKind::kOverlay;
  scan.dir = overlay ? upper_ : merged_;
  scan.overlay = overlay;
  scan.copied = overlay ? nullptr : &copied_;
  scan.tree = content_;
  return scan;
}

Result<Patch> MountedWorkspace::extract_patch(std::size_t bytes_max) {
  PROCTOR_TRY(ObjectDb db, objects());
  IgnoreRules ignore(snapshot_);
  ScanInput scan = scan_input();
  scan.content_max = std::max<std::uint64_t>(bytes_max, kContentBytes);
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    PROCTOR_TRY(const bool ignored, ignore.ignored(path, folder));
    return !ignored;
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  return make_patch(db, content_, changes, bytes_max);
}

Status MountedWorkspace::apply(const std::string& diff) {
  return apply_diff(git_, setup_.apply_scratch, merged_, diff);
}

Status MountedWorkspace::put_file(const std::string& relative, std::string_view bytes,
                                  std::uint32_t mode) {
  const std::string what = "put " + printable(relative);
  if (is_dot_git(std::string_view(relative).substr(0, relative.find('/')))) {
    return Error{Errc::kInvalid, what + ": inside .git"};
  }
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(merged_.string()));
  auto parent = beneath::open_parent(root.get(), relative, beneath::Missing::kMake);
  if (!parent.ok()) return in_context(what, parent.error());
  return beneath::write_file(parent->dir.get(), parent->name, bytes, mode);
}

Result<std::vector<std::string>> MountedWorkspace::restore(const std::vector<std::string>& globs) {
  if (globs.empty()) return std::vector<std::string>{};
  PROCTOR_TRY(ObjectDb db, objects());
  return restore_paths(db, RestoreInput{merged_, scan_input(), globs});
}

}  // namespace proctor
