#pragma once
// Git LFS: files whose blob is a pointer to content that is kept elsewhere.  The pointers of a
// tree, their content (fetched by the `git-lfs` program into the mirror, each verified), and the
// tree with the content in place of the pointers, as an agent expects to find it.  A pointer counts
// as one only where a .gitattributes of the tree says filter=lfs.  Fails with kUnavailable (git-lfs
// is not installed, the server does not have the content; the first files are named), kCorrupt
// (content of another hash), kExhausted, else like ObjectDb.
// Source: the Git LFS specification, version 1.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/git/mirror.h"
#include "worker/git/object_db.h"

namespace proctor {
struct LfsPointer {
  std::string oid;  // sha256 of the content, 64 lower-case hex digits
  std::uint64_t size = 0;
};
inline constexpr std::size_t kLfsPointerBytes = 1024;  // a longer blob is none
inline constexpr std::uint64_t kLfsFileBytes = std::uint64_t{2} << 30;

// Pure.  nullopt: not a pointer.
std::optional<LfsPointer> parse_lfs_pointer(std::string_view blob);
// Pure: does a line of this .gitattributes set filter=lfs?
bool mentions_lfs(std::string_view gitattributes);

// Path and pointer of every LFS file below `tree`; most trees have none, and cost one look.
Result<std::map<std::string, LfsPointer>> lfs_pointers(const ObjectDb& db, const ObjectId& tree);

// `tree` again, with content for pointers; what is new is written to `scratch` (an object folder).
// `objects`: where the tree's objects are.
Result<ObjectId> fill_lfs(const MirrorStore& mirrors, const GitSource& source,
                          const ObjectId& commit, const ObjectId& tree,
                          const std::map<std::string, LfsPointer>& pointers,
                          const std::vector<fs::path>& objects, const fs::path& scratch);
}  // namespace proctor
