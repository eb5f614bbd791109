#pragma once
// The cache of mirrors, trees and setup layers: who uses what, and what goes where they take too
// much.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// Something that may have to go.
struct CachedItem {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t used_ms = 0;  // wall clock, of its last use
  bool in_use = false;
};
// Names of those to remove when all together take more than they may, in that order, so that at
// most `bytes_max` are left if that can be: the least recently used first, never what is in use.
// Pure; any thread.
std::vector<std::string> to_evict(std::vector<CachedItem> items, std::uint64_t bytes_max);

// The mirrors, trees and setup layers of one root, which all its workers share: who uses what, when
// it was used last, and making room.  Uses locks between processes, so any worker or
// `proctor-worker gc` may make room at any time.  Blocking.  Thread-safe (values).
//   <root>/trees/<tree>.use     held shared by every workspace of the tree; its mtime: last used
//   <root>/layers/<key>.use     the same, of a layer that setup left
//   <root>/mirrors/.use         held shared while a tree is made from mirrors
//   <root>/mirrors/<key>/use    its mtime: last used

// Says that this tree (the folder of a snapshot, above its checkout), or this layer, is in use as
// long as the lock lives.  kUnavailable: it has been evicted; whoever needs it makes it again.
Result<FileLock> use_tree(const fs::path& tree);
// The same of all mirrors below `mirrors`.
Result<FileLock> use_mirrors(const fs::path& mirrors);
// One of them is used now.
void touch_mirror(const fs::path& mirror);

struct CacheReport {
  std::uint64_t items = 0, bytes = 0;  // there were
  std::uint64_t removed = 0, removed_bytes = 0;
  std::uint64_t in_use = 0;  // trees and layers that have workspaces, mirrors that are being read
};
// Removes the least recently used until all together take at most `bytes_max`, mirrors that were
// set aside as damaged, and what killed makers left.
Result<CacheReport> make_room(const fs::path& root, std::uint64_t bytes_max);
}  // namespace proctor
