#pragma once
// What somebody else's container uses, read on this host by the number of its first process: for
// limits that the engine does not keep.  Nothing is known where that process is not to be seen
// (an engine on another machine, or one that lives in a pid namespace of its own).
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace proctor {

// CPU time of its control group; of the processes that live where groups do not count it.
std::optional<std::chrono::milliseconds> container_cpu_time(pid_t init);
// The first process and all below it.
std::vector<pid_t> container_processes(pid_t init);

}  // namespace proctor
