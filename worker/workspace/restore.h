#pragma once
// Puts the snapshot's own version of chosen files back into a workspace.  Symlinks that the agent
// planted on the way are removed, never followed.  One thread; blocking.
// Fails like scan_changes and the file system.
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/workspace/changes.h"

namespace proctor {

struct RestoreInput {
  fs::path dir;    // the merged tree
  ScanInput scan;  // where to see what was changed; `wanted` and `contents` are set here
  const std::vector<std::string>& globs;
};
// The paths that match and differ from the snapshot, sorted.  `new_folders` (may be null) takes
// those that the snapshot does not have, with a '/'.
Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input,
                                               std::vector<std::string>* new_folders = nullptr);
// The paths that were put back or removed, sorted.
Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input);

// The snapshot's own version of one path, with the time of every file of a checkout.
Status put_back(const ObjectDb& db, int root, const std::string& path, const GitTreeEntry& entry);
// rm -rf of one path; what is gone already is fine.
Status take_away(int root, const std::string& path);

}  // namespace proctor
