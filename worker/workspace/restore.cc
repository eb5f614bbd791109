#include "worker/workspace/restore.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/checkout.h"
#include "worker/workspace/protected_paths.h"

namespace proctor {

using beneath::Missing;

Status put_back(const ObjectDb& db, int root, const std::string& path, const GitTreeEntry& entry) {
  PROCTOR_TRY(const std::string bytes, db.blob(entry.id));
  PROCTOR_TRY(const auto parent, beneath::open_parent(root, path, Missing::kMakeAndReplace));
  if (entry.mode == git_mode::kSymlink) {
    return beneath::write_link(parent.dir.get(), parent.name, bytes);
  }
  PROCTOR_CHECK_OK(beneath::write_file(parent.dir.get(), parent.name, bytes,
                                       entry.mode == git_mode::kExecutable ? 0755 : 0644));
  const timespec times[2] = {{kCheckoutTime, 0}, {kCheckoutTime, 0}};
  if (::utimensat(parent.dir.get(), parent.name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0)
    return ok_status();
  return errno_error("set time of " + printable(path), errno);
}

Status take_away(int root, const std::string& path) {
  auto parent = beneath::open_parent(root, path, Missing::kFail);
  // Gone already: its folder was removed before it.
  if (!parent.ok() &&
      (parent.error().code == Errc::kNotFound || parent.error().code == Errc::kInvalid)) {
    return ok_status();
  }
  if (!parent.ok()) return std::move(parent).error();
  return beneath::remove(parent->dir.get(), parent->name);
}

Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input,
                                               std::vector<std::string>* new_folders) {
  ScanInput scan = input.scan;
  const ProtectedPaths paths_of(input.globs);
  scan.contents = false;
  scan.new_folders = new_folders;
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    return folder ? paths_of.reaches(path) : paths_of.covers(path);
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  std::vector<std::string> paths;
  for (const auto& [path, change] : changes.changed) paths.push_back(path);
  paths.insert(paths.end(), changes.refused.begin(), changes.refused.end());
  std::erase_if(paths, [&](const std::string& p) { return !paths_of.covers(p); });
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input) {
  PROCTOR_TRY(const std::vector<std::string> paths, changed_paths(db, input));
  std::vector<std::string> done;
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(input.dir.string()));
  std::vector<std::pair<std::string, GitTreeEntry>> back;
  // What the snapshot does not have goes first: it may stand where a folder must be.
  for (const std::string& path : paths) {
    auto entry = entry_at(db, input.scan.tree, path);
    done.push_back(path);
    if (entry.ok() && entry->mode != git_mode::kTree && entry->mode != git_mode::kGitlink) {
      back.emplace_back(path, std::move(entry).value());
    } else if (entry.ok() || entry.error().code == Errc::kNotFound) {
      PROCTOR_CHECK_OK(take_away(root.get(), path));
    } else {
      return std::move(entry).error();
    }
  }
  for (const auto& [path, entry] : back) PROCTOR_CHECK_OK(put_back(db, root.get(), path, entry));
  return done;
}

}  // namespace proctor
