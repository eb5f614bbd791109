#pragma once
// Locks of flock(2) on files that all sandboxes of a host are shown.  Whoever may read a file may
// lock it, and a lock is the inode's: a neighbour's `flock -n /usr/bin/python3` fails for it
// (docs/sandbox.md, what the kernel counts by user).
// Blocking; thread-safe.
#include <sys/types.h>

#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"

namespace proctor {

struct HeldLock {
  dev_t device = 0;
  ino_t inode = 0;
  friend auto operator<=>(const HeldLock&, const HeldLock&) = default;
};
// Stands for all that were not looked at, where there are very many.
inline constexpr HeldLock kMoreLocks{};

// The words of /proc/locks, without those who wait.  A lock of fcntl(2) that keeps another out is
// had for writing alone, which nobody may in a place that all share: those are left out.
// Where they are `most` bytes or more, those of the whole lines before, and kMoreLocks.
std::set<HeldLock> parse_locks(std::string_view words, std::size_t most = std::string_view::npos);
// Of this whole host, as far as this process's namespace is shown it: the first five thousand,
// since the kernel walks the list anew for each page of it, and one sandbox's 200,000 locks held
// its neighbours' checks for half a minute.
std::set<HeldLock> locks_held();

// Those of these places (files, or folders with all below) that one of the locks is on, sorted.
// A walk through them, where they are on the device of a lock that was not looked for before.
std::vector<fs::path> locked_among(const std::vector<fs::path>& places,
                                   const std::set<HeldLock>& locks);

}  // namespace proctor
