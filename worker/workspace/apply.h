#pragma once
// Applies a diff to the files of a folder, all of it or nothing, with `git apply` under a
// configuration and a repository of our own: whatever .git, .gitattributes or hooks the folder
// holds, nothing in it is executed and no content is converted.  git refuses paths that are
// absolute, leave the folder, pass a symlink or enter .git.  Blocking.
// A patch that does not fit as it is gets two more tries, told by the rung of what is returned:
// with white space of its context ignored, and merged over the contents that its `index` lines
// name.  The merge is made in a repository of its own, and its result is applied exactly, so that
// every byte that reaches the folder came by the first rung's rules.
// Fails with kInvalid and git's words (which file, which line) when it does not apply; kExhausted
// or kUnavailable when the disk failed half-way (the folder must then be thrown away).
#include <string>

#include "common/base/files.h"
#include "common/base/own_user.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"
#include "worker/git/transport.h"
#include "worker/workspace/workspace.h"

namespace proctor {

// What a merge starts from.
struct MergeBase {
  fs::path objects;  // of the snapshot
  fs::path others;   // where contents of other commits may be found
  ObjectId tree;     // what the folder was before anybody changed it
  fs::path work;     // a folder of ours for what the merge makes
};

// `scratch`: a folder of ours for the empty repository; made when missing.
Status prepare_apply(const fs::path& scratch);
// `user`: whose the folder is; null: ours.
Result<AppliedPatch> apply_diff(const GitProgram& git, const fs::path& scratch, const fs::path& dir,
                                const MergeBase& base, const std::string& diff,
                                const OwnUser* user = nullptr);

}  // namespace proctor
