#pragma once
// A commit's whole tree as a flat list, submodules grafted in when asked.  Reads objects only.
// Fails like ObjectDb, and with kExhausted beyond the limits below (a tree can be a bomb: ten
// levels of ten names for one same subtree are 10^10 files).
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/git/object_db.h"

namespace proctor {

inline constexpr std::size_t kTreeFilesMax = 2'000'000;
inline constexpr std::size_t kTreeDepthMax = 100;
inline constexpr std::size_t kTreePathBytes = 4000;  // PATH_MAX less what is before it

struct ListedEntry {
  std::string path;  // relative, '/' between components, any other byte possible
  std::uint32_t mode = 0;
  ObjectId id;
};

// Everything under `tree` that is not a folder, in git's order.  With `trees`, the ids of every
// tree met (the root too) are added to it.
Result<std::vector<ListedEntry>> list_tree(const ObjectDb& db, const ObjectId& tree,
                                           std::vector<ObjectId>* trees = nullptr);

// The entry at `path`; kNotFound.
Result<GitTreeEntry> entry_at(const ObjectDb& db, const ObjectId& tree, std::string_view path);

}  // namespace proctor
