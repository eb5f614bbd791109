#include "worker/git/tree_cache.h"

#include <algorithm>

namespace proctor {
namespace {
constexpr std::size_t kEntriesMax = 500'000;  // some 50 MiB
}

Result<TreeCache::Folder> TreeCache::folder(const ObjectDb& db, const ObjectId& id) {
  {
    const std::lock_guard guard(mutex_);
    if (const auto it = known_.find(id); it != known_.end()) return it->second;
  }
  PROCTOR_TRY(std::vector<GitTreeEntry> entries, db.tree(id));
  if (!std::ranges::is_sorted(entries, {}, &GitTreeEntry::name))
    std::ranges::sort(entries, {}, &GitTreeEntry::name);
  const auto made = std::make_shared<const std::vector<GitTreeEntry>>(std::move(entries));
  const std::lock_guard guard(mutex_);
  if (kEntriesMax < entries_ + made->size()) {
    known_.clear();
    entries_ = 0;
  }
  if (known_.emplace(id, made).second) entries_ += made->size();
  return made;
}

}  // namespace proctor
