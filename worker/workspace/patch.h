#pragma once
// From a set of changes to a diff that `git apply` takes: text and binary hunks, modes, symlinks,
// exact renames.  Made between two trees in a private object database, so no attribute, driver or
// configuration has a say.  One thread.
// Fails with kExhausted beyond `bytes_max`, else with libgit2's error.
#include "common/base/result.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/workspace.h"

namespace proctor {

Result<Patch> make_patch(ObjectDb& db, const ChangeSet& changes, std::size_t bytes_max);

}  // namespace proctor
