#pragma once
// Folders of a snapshot that a candidate has replaced by links: git, called there, looks for its
// repository where the link leads and above, and would obey it.  Nothing may run in these folders
// meanwhile.  Blocking; thread-safe.  Fails like the file system.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/workspace.h"

namespace proctor {

// For each of `places`, of which the first is the workspace: what is named ".git" in a folder to
// which a link leads or above it, and "HEAD" of what is a bare repository there; sorted.  `links`:
// paths of the workspace, folders in `tree`.  Where a link leads is read as commands read it; who
// leads out of all places leads to what no command finds as it was left; a link that leads through
// /proc, /dev or /sys, by which every place is to be reached again, is named itself.
Result<std::vector<std::vector<std::string>>> linked_git(const std::vector<std::string>& links,
                                                         const fs::path& tree,
                                                         const std::vector<SeenAt>& places);

}  // namespace proctor
