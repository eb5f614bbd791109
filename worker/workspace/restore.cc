#include "worker/workspace/restore.h"

#include <algorithm>

#include "worker/git/tree_list.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/glob.h"

namespace proctor {
namespace {

using beneath::Missing;

Status put_back(const ObjectDb& db, int root, const std::string& path, const GitTreeEntry& entry) {
  PROCTOR_TRY(const std::string bytes, db.blob(entry.id));
  PROCTOR_TRY(const auto parent, beneath::open_parent(root, path, Missing::kMakeAndReplace));
  if (entry.mode == git_mode::kSymlink) {
    return beneath::write_link(parent.dir.get(), parent.name, bytes);
  }
  return beneath::write_file(parent.dir.get(), parent.name, bytes,
                             entry.mode == git_mode::kExecutable ? 0755 : 0644);
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

}  // namespace

Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input) {
  ScanInput scan = input.scan;
  scan.contents = false;
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    return folder || any_glob_covers(input.globs, path);
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  std::vector<std::string> paths;
  for (const auto& [path, change] : changes.changed) paths.push_back(path);
  paths.insert(paths.end(), changes.refused.begin(), changes.refused.end());
  std::erase_if(paths, [&](const std::string& p) { return !any_glob_covers(input.globs, p); });
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
    if (input.spare) {
      PROCTOR_TRY(const bool spared, input.spare(path, !entry.ok()));
      if (spared) continue;
    }
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
