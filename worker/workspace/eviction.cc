#include "worker/workspace/eviction.h"

#include <algorithm>
#include <tuple>

namespace proctor {

std::vector<std::string> to_evict(std::vector<CachedItem> items, std::uint64_t bytes_max) {
  std::uint64_t total = 0;
  for (const CachedItem& item : items) total += item.bytes;
  std::sort(items.begin(), items.end(), [](const CachedItem& a, const CachedItem& b) {
    return std::tie(a.used_ms, a.name) < std::tie(b.used_ms, b.name);
  });
  std::vector<std::string> out;
  for (const CachedItem& item : items) {
    if (total <= bytes_max) break;
    if (item.in_use) continue;
    total -= item.bytes;
    out.push_back(item.name);
  }
  return out;
}

}  // namespace proctor
