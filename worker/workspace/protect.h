#pragma once
// Files of a workspace put back: chosen ones as the snapshot has them, and protected ones before a
// check.  One thread; blocking.  Fails like scan_changes and the file system.
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/workspace.h"

namespace proctor {
// The snapshot's own version of chosen files, put back.  Symlinks that the agent planted on the way
// are removed, never followed.  Here and in protect_paths() a folder that neither snapshot nor
// setup has goes with the last file of it that does.

struct RestoreInput {
  fs::path dir;    // the merged tree
  ScanInput scan;  // where to see what was changed; `wanted` and `contents` are set here
  ProtectedPaths paths;
};
// The paths that match and differ from the snapshot, sorted; new folders as the scan is told.
Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input);
// The paths that were put back or removed, sorted.
Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input);

// rm -rf of one path; what is gone already is fine.
Status take_away(int root, const std::string& path);

// Protected paths before a check, where the candidate's code has run: nothing is there but what the
// snapshot, the setup of the untouched snapshot and the contract put there.  Links that were
// planted are removed, never followed.  kExhausted: what was left is beyond the limits.

struct ProtectInput {
  fs::path dir;    // the merged tree
  ScanInput scan;  // `strict` is set here
  const std::vector<std::string>& globs;
  const MadeUnder& made;
  const std::map<std::string, PlacedFile>& placed;  // protected as well
  CopiedFiles& vouched;                             // what was found right is added
};
// Adds the folders above a path to `out`, each with its '/', as MadeUnder has folders.
void add_folders_of(const std::string& path, std::vector<std::string>& out);
// The paths that were put back or removed, sorted.
Result<std::vector<std::string>> protect_paths(ObjectDb& db, const ProtectInput& input);

// Copies of those of `dir` that are there.
Status keep_made(const fs::path& dir, const std::vector<std::string>& paths, const fs::path& keep);
}  // namespace proctor
