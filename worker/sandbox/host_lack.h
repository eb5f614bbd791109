#pragma once
// What a host cannot give to another sandbox, because whoever else runs there has all of it: of
// what the kernel counts for a user or for the whole machine, and what no namespace divides
// (docs/sandbox.md).  Asked when a check has not passed: it may be no fault of what was checked.
// Asked when nothing of that check runs any more, so that no candidate brings it about alone.
// Blocking: one more sandbox, with a program of ours.
#include <set>
#include <stop_token>
#include <string>

#include "worker/sandbox/held_locks.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// "terminals, pages in pipes"; empty: nothing.  `like` is what the command had, of which only its
// label, its image, its hold and its read-only mounts count; `scratch` is made, and removed;
// `earlier`: locks_to_know() before the command began.
// Fails with what the engine fails with.
Result<std::string> host_lack(SandboxEngine& engine, const SandboxSpec& like,
                              const fs::path& scratch, std::stop_token cancel,
                              const std::set<HeldLock>& earlier = {});

// What is locked now, where somebody else's lock reaches a command of this engine; else nothing,
// and nothing is read.  The kernel writes that list for the whole host, and meanwhile nobody else
// on it locks: a run is not to pay for what others hold where it concerns none of its commands.
std::set<HeldLock> locks_to_know(const SandboxEngine& engine);

// What this host had no more of when it was first asked, which is when the first engine is opened:
// that is how it is, and not what a neighbour did.  The same words, one a line.
const std::string& host_lack_before();

}  // namespace proctor
