#pragma once
// What a worker of this release knows of methods that one of an older release does not, as a
// feature of its Sync: nobody is given a run whose method he cannot have read.
#include <string_view>

namespace proctor {

inline constexpr std::string_view kHasToolLoop = "method:tool_loop";
// A gateway's `tools`.
inline constexpr std::string_view kHasAgentTools = "method:tools";

}  // namespace proctor
