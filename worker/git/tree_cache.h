#pragma once
// Folders of snapshots that were read before: workspaces of one tree are asked about the same ones,
// and to read one costs its decompression and its hash.  A folder is named by its content, so what
// is kept is never stale.  Thread-safe.
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "worker/git/object_db.h"

namespace proctor {

class TreeCache {
 public:
  using Folder = std::shared_ptr<const std::vector<GitTreeEntry>>;
  // Its entries in the order of names (git's own has a folder where it were with a '/').
  Result<Folder> folder(const ObjectDb& db, const ObjectId& id);

 private:
  std::mutex mutex_;
  std::map<ObjectId, Folder> known_;
  std::size_t entries_ = 0;  // in all of them
};

}  // namespace proctor
