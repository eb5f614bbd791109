#pragma once
// CgroupPool: empty control groups that wait for their next command.  A memory group that is
// removed lives on in the kernel as long as page cache of it does, seen by nobody and paid for by
// all who walk over the groups of the host; so groups are used again, and what one holds beyond a
// little is given back by a thread of the pool's, for that takes longer than many a command. Owned
// by CgroupHost; thread-safe.  Never fails: a group that cannot be used again (its counters do not
// begin anew, or a runtime made it) is emptied by that thread and removed. Source:
// Documentation/admin-guide/cgroup-v1/memory.rst (force_empty), cgroup-v2.rst (memory.reclaim,
// memory.peak).
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

// The folders of one group, one for each hierarchy, and what its counters said when it began.
struct CgroupSet {
  std::map<std::string, fs::path> dirs;  // by controller; version 2: one, under "unified"
  std::vector<UniqueFd> doors;
  std::string limits;              // in words: equal words, equal limits
  bool again = false;              // its counters can begin anew
  std::uint64_t memory_limit = 0;  // 0: none
  std::uint64_t memory_before = 0;
  UniqueFd peak;  // version 2: a reset of memory.peak is seen by the descriptor that wrote it
  std::chrono::microseconds cpu_before{0};

  // What it holds now, in bytes.
  Result<std::uint64_t> memory_held() const;
  // More than whoever comes next should begin with.
  bool holds_much() const;
  // The most that it held since its counters began; 0: not known.
  Result<std::uint64_t> memory_peak() const;
  Result<std::uint64_t> oom_kills() const;
  // CPU time since the group was made; none: nobody counts it here.
  Result<std::optional<std::chrono::microseconds>> cpu_total() const;
  // All counters begin anew.  False: they cannot, or the group is gone, or cannot be read.
  bool begin_anew();
  // With whoever is in it.
  void remove();
};

class CgroupPool {
 public:
  CgroupPool() = default;
  CgroupPool(const CgroupPool&) = delete;
  CgroupPool& operator=(const CgroupPool&) = delete;
  ~CgroupPool();
  // One with exactly these limits whose counters begin anew; none: the caller makes one.
  std::optional<CgroupSet> take(const std::string& limits);
  // Nobody is in it.  One that is not used again is removed when it holds no memory any more.
  void put(CgroupSet set);
  // Removes all that wait.
  void clear();

 private:
  void give_back();
  void empty_later(CgroupSet set);
  std::mutex mutex_;
  std::deque<CgroupSet> idle_;  // the oldest first
  std::deque<CgroupSet> full_;  // memory to be given back
  bool working_ = false;
  std::jthread thread_;  // while there are some of these; last: it uses the others
};

}  // namespace proctor
