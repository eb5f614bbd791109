#pragma once
// Protected paths before a check, where the candidate's code has run: nothing is there but what the
// snapshot, the setup of the untouched snapshot and the contract put there.  Links that were
// planted are removed, never followed.  One thread; blocking. Fails like scan_changes and the file
// system.
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/workspace/restore.h"
#include "worker/workspace/workspace.h"

namespace proctor {

struct ProtectInput {
  fs::path dir;    // the merged tree
  ScanInput scan;  // `strict` is set here
  const std::vector<std::string>& globs;
  const MadeUnder& made;
  const std::map<std::string, PlacedFile>& placed;
  CopiedFiles& vouched;  // what was found right is added
};
// The paths that were put back or removed, sorted.
Result<std::vector<std::string>> protect_paths(ObjectDb& db, const ProtectInput& input);

// What a setup made or changed under the globs, as MadeUnder::paths.
Result<MadeUnder> list_made(ObjectDb& db, const RestoreInput& input);
// Copies of those of `dir` that are there.
Status keep_made(const fs::path& dir, const std::vector<std::string>& paths, const fs::path& keep);

}  // namespace proctor
