#pragma once
// A folder or file that is no part of the snapshot's tree but decides what trusted programs do:
// git's own folder, and a home.  Before a check it is as it was when none but
// trusted commands had run, whatever the candidate's left there.  Links are removed and never
// followed.  Blocking; one thread.  Fails with kExhausted beyond the limits of changes.h, else like
// the file system.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/workspace.h"

namespace proctor {

struct TrustedPart {
  std::string path;  // below the folder that candidates write to
  fs::path before;   // a folder that has the path as it was at first; empty: nothing was there
};

// What differs from `before` in `dir`, in the words of MadeUnder::paths; sorted.
Result<std::vector<std::string>> list_part(const fs::path& dir, const TrustedPart& part);

// Makes it what `before` has and what `made` made of that.  Says what was put back or removed,
// sorted; of a folder that goes as a whole, its name alone; a link on the way goes.  `known`: files
// by path, as they were when they were last found right; more are added.
Result<std::vector<std::string>> put_part_back(const fs::path& dir, const TrustedPart& part,
                                               const MadeUnder& made, CopiedFiles& known);

// The same for all that is in a folder.
Result<std::vector<std::string>> put_all_back(const fs::path& dir, const fs::path& before,
                                              CopiedFiles& known);

}  // namespace proctor
