#pragma once
// What to remove when mirrors, trees and setup layers together take more than they may: the least
// recently used first, never what is in use.  Pure; any thread.
#include <cstdint>
#include <string>
#include <vector>

namespace proctor {

struct CachedItem {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t used_ms = 0;  // wall clock, of its last use
  bool in_use = false;
};
// Names of those to remove, in that order, so that at most `bytes_max` are left if that can be.
std::vector<std::string> to_evict(std::vector<CachedItem> items, std::uint64_t bytes_max);

}  // namespace proctor
