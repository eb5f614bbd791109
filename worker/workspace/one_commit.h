#pragma once
// The repository that an agent sees: one commit whose tree is the snapshot and nothing else.  No
// remote, tag, reflog, alternate, hook, or object that the tree does not need, so no later commit
// can leak the answer.  Author, dates and message are fixed: the same tree gives the same commit.
// Built once per tree and shared by all its workspaces.  Blocking.
// Fails like ObjectDb, GitProgram and the file system.
#include <vector>

#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"

namespace proctor {

struct OneCommitInput {
  const GitProgram& git;
  std::vector<fs::path> objects;  // where the tree's objects are; the first belongs to a mirror
  ObjectId tree;
  fs::path work;     // its checkout: the index takes its file times and sizes from here
  fs::path git_dir;  // to be made: ".../.git"
};
Status make_one_commit_repository(const OneCommitInput& input);

}  // namespace proctor
