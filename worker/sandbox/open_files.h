#pragma once
// How many descriptors a process in a sandbox may have: so few that all processes of a few
// sandboxes together leave their neighbours some of what the machine has (fs.file-max, proc(5)),
// for the kernel counts open files by machine alone.  Thread-safe.
#include <cstdint>

namespace proctor {

inline constexpr std::uint64_t kLeastOpenFiles = 1'024;  // what programs expect to have
inline constexpr std::uint64_t kMostOpenFiles =
    65'536;  // Go and Node raise their soft limit to the hard one

// Pure.  `of_worker`: its own hard limit; `of_machine`: fs.file-max; `processes`: the sandbox's
// limit, 0 where it has none.  A sixteenth of the machine's for each sandbox, between the two
// bounds above, and never more than the worker may give.
std::uint64_t open_files_limit(std::uint64_t of_worker, std::uint64_t of_machine,
                               std::uint32_t processes);

// Of this process and this machine, as both are now.
std::uint64_t open_files_here(std::uint32_t processes);

}  // namespace proctor
