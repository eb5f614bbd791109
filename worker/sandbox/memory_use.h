#pragma once
// How much memory some processes hold together, where no control group counts it.  What several of
// them share counts once (proportional set size); of a process that may not be looked at so
// closely, what it has to itself.  Files of a tmpfs that nobody maps are not in it, and
// nobody limits those (`memory_files`).  Blocking.  Thread-safe.  Source: proc(5), smaps_rollup and
// statm.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace proctor {

// None: the host had no descriptor or memory to look with.
std::optional<std::uint64_t> memory_of(const std::vector<pid_t>& processes);
// Of the text of /proc/PID/smaps_rollup, swapped out pages included; 0: not in it.
std::uint64_t proportional_bytes(std::string_view smaps_rollup);

}  // namespace proctor
