#pragma once
// Things that this host keeps from a sandbox because others have it: locks on shared files, and
// things that the kernel counts for all.  Blocking.
#include <sys/types.h>
#include <compare>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Locks of flock(2) on files that all sandboxes of a host are shown.  A process that may read a
// file may lock it, and a lock is the inode's: a neighbour's `flock -n /usr/bin/python3` fails for
// it (docs/sandbox.md, what the kernel counts by user).  Thread-safe.

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
// The locks of this whole host, as far as this process's namespace is shown it: the first five
// thousand, since the kernel walks the list anew for each page of it, and one sandbox's 200,000
// locks held its neighbours' checks for half a minute.
std::set<HeldLock> locks_held();

// Those of these places (files, or folders with all below) that one of the locks is on, sorted.
// A walk through them, where they are on the device of a lock that was not looked for before.
std::vector<fs::path> locked_among(const std::vector<fs::path>& places,
                                   const std::set<HeldLock>& locks);

// Things that a host cannot give to another sandbox, because whoever else runs there has all of
// them: the kernel counts them for a user or for the whole machine, and no namespace divides them
// (docs/sandbox.md).  Asked when a check has not passed: it may be no fault of what was checked.
// Asked when nothing of that check runs any more, so that no candidate brings it about alone.
// It takes one more sandbox, with a program of ours.

// "terminals, pages in pipes"; empty: nothing.  `like` is what the command had, of which only its
// label, its image, its hold and its read-only mounts count; `scratch` is made, and removed;
// `earlier`: locks_to_know() before the command began.
// Fails with what the engine fails with.
Result<std::string> host_lack(SandboxEngine& engine, const SandboxSpec& like,
                              const fs::path& scratch, std::stop_token cancel,
                              const std::set<HeldLock>& earlier = {});

// The locks of now, where somebody else's lock reaches a command of this engine; else nothing, and
// nothing is read.  The kernel writes that list for the whole host, and meanwhile nobody else on it
// locks: a run is not to pay for what others hold where it concerns none of its commands.
std::set<HeldLock> locks_to_know(const SandboxEngine& engine);

// The same words, one a line, for what this host had no more of when it was first asked, which is
// when the first engine is opened: that is how it is, and not what a neighbour did.
const std::string& host_lack_before();
}  // namespace proctor
