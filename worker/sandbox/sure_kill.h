#pragma once
// SIGKILL for processes that a list names by number.  A number may have gone to somebody else since
// the list was made, so each is held first (a pidfd), and killed only where the list, made once
// more, still names it: while it is held and alive, nobody else has its number.
// Thread-safe (no state).  Source: pidfd_open(2), pidfd_send_signal(2).
#include <sys/types.h>

#include <functional>
#include <vector>

namespace proctor {

// Calls `listed` once, and once more for every few it names.
void kill_listed(const std::function<std::vector<pid_t>()>& listed);

}  // namespace proctor
