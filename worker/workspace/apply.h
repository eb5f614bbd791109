#pragma once
// Applies a diff to the files of a folder, all of it or nothing, with `git apply` under a
// configuration and a repository of our own: whatever .git, .gitattributes or hooks the folder
// holds, nothing in it is executed and no content is converted.  git refuses paths that are
// absolute, leave the folder, pass a symlink or enter .git.  Blocking.
// Fails with kInvalid and git's words (which file, which line) when it does not apply; kExhausted
// or kUnavailable when the disk failed half-way (the folder must then be thrown away).
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/git/transport.h"

namespace proctor {

// `scratch`: a folder of ours for the empty repository; made when missing.
Status prepare_apply(const fs::path& scratch);
Status apply_diff(const GitProgram& git, const fs::path& scratch, const fs::path& dir,
                  const std::string& diff);

}  // namespace proctor
