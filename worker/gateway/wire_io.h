#pragma once
// Waiting for sockets with a word that ends it.  Blocking; any thread.  Internal to this room.
#include <chrono>
#include <cstdint>
#include <string_view>

namespace proctor {

using SteadyClock = std::chrono::steady_clock;
std::uint64_t micros_since(SteadyClock::time_point since);

enum class Waited { kReady, kTime, kStopped };
// Until `fd` is ready for `events`, `until` has come, or `stop` (a descriptor) is readable.
Waited wait_for_fd(int fd, short events, int stop, SteadyClock::time_point until);

enum class Wrote { kAll, kGone, kStopped };
// Of a peer that takes nothing for `idle` the rest is not written: it is as good as gone.
Wrote write_all(int fd, std::string_view bytes, int stop, std::chrono::milliseconds idle);

// Has the peer of a stream socket left?
bool has_left(int fd);

}  // namespace proctor
