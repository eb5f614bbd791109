#pragma once
// Puts the snapshot's own version of chosen files back into a workspace.  Symlinks that the agent
// planted on the way are removed, never followed.  One thread; blocking.
// Fails like scan_changes and the file system.
#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/workspace/changes.h"

namespace proctor {

struct RestoreInput {
  fs::path dir;    // the merged tree
  ScanInput scan;  // where to see what was changed; `wanted` and `contents` are set here
  const std::vector<std::string>& globs;
  // Left as it is?  Asked for each changed path; `is_new`: the snapshot has none.  Null: never.
  std::function<Result<bool>(const std::string& path, bool is_new)> spare;
};
// The paths that match and differ from the snapshot, sorted.
Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input);
// The paths that were put back or removed, sorted.
Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input);

}  // namespace proctor
