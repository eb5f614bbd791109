#pragma once
// The mirrors and trees of one root, which all its workers share: who uses what, when it was used
// last, and making room.  Uses locks between processes, so any worker or `proctor-worker gc` may
// make room at any time.  Blocking.  Thread-safe (values).
//   <root>/trees/<tree>.use     held shared by every workspace of the tree; its mtime is the last
//   use <root>/mirrors/.use         held shared while a tree is made from mirrors
//   <root>/mirrors/<key>/use    its mtime is the last use
#include <cstdint>
#include <string>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

// Says that this tree (the folder of a snapshot, above its checkout) is in use as long as the lock
// lives.  kUnavailable: it has been evicted; a new snapshot makes it again.
Result<FileLock> use_tree(const fs::path& tree);
// Likewise of all mirrors below `mirrors`.
Result<FileLock> use_mirrors(const fs::path& mirrors);
// Of one of them, now.
void touch_mirror(const fs::path& mirror);

struct CacheReport {
  std::uint64_t items = 0, bytes = 0;  // there were
  std::uint64_t removed = 0, removed_bytes = 0;
  std::uint64_t in_use = 0;  // trees that have workspaces, mirrors that are being read
};
// Removes the least recently used until mirrors and trees take at most `bytes_max`, and mirrors
// that were set aside as damaged.
Result<CacheReport> make_room(const fs::path& root, std::uint64_t bytes_max);

}  // namespace proctor
