#pragma once
// From git objects to files and back to a tree id.  Blobs byte for byte: no filters, no line-end
// conversion, no attributes.  Blocking; one caller per folder.
// Fails like ObjectDb and the file system.
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"

namespace proctor {

// Every checked-out file has this mtime, so that two checkouts of one tree are alike and git's
// index can be written once and stay right in every copy.
inline constexpr long kCheckoutTime = 1'577'836'800;  // 2020-01-01T00:00:00Z; zip needs >= 1980

// Writes `entries` (of list_tree) into the empty folder `dir`.  A gitlink becomes an empty folder,
// as in a clone without submodules.
Status write_checkout(const ObjectDb& db, const std::vector<ListedEntry>& entries,
                      const fs::path& dir);

// The tree id of what is in `dir`, from the bytes on disk; `gitlinks` by path.  ".git" at the top
// is left out, and so are empty folders.
Result<ObjectId> hash_checkout(const fs::path& dir,
                               const std::map<std::string, ObjectId>& gitlinks);

}  // namespace proctor
