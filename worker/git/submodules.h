#pragma once
// Submodules at their recorded commits: the mirrors they need, and one tree with all of them
// grafted in as plain folders.  Urls come from the pinned commit's .gitmodules, relative ones
// resolved against the superproject's source.
// Fails with kInvalid when a submodule has no usable entry in .gitmodules, else like MirrorStore.
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/git/mirror.h"

namespace proctor {
inline constexpr std::size_t kSubmoduleDepthMax = 8;
inline constexpr std::size_t kSubmodulesMax = 256;

// Mirrors every submodule of `commit`, recursively, and adds their object folders to `objects`.
// Writes the grafted trees to `scratch` (an object folder); the value is the root of the result,
// the commit's own tree when it has no submodule.
// `taken`: path and commit of each, nested ones by their whole path.
Result<ObjectId> graft_submodules(const MirrorStore& mirrors, const GitSource& source,
                                  const ObjectId& commit, const fs::path& scratch,
                                  std::vector<fs::path>& objects,
                                  std::map<std::string, ObjectId>& taken);
}  // namespace proctor
