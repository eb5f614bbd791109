#pragma once
// How long to wait between two calls of a model.  Pure; any thread.
// Source: CVDP 8.3 (attempts), RFC 9110 10.2.3 (Retry-After).
#include <chrono>
#include <cstdint>

namespace proctor {

// By which a single-shot method says that its provider had no room, as programs do (sysexits.h).
inline constexpr int kModelBusyExit = 75;
inline constexpr std::chrono::milliseconds kModelWaitMost{60'000};

// Doubles from `backoff`, at most kModelWaitMost; a provider that names a longer time is heeded,
// up to the same.  `failures`: calls in a row that were not answered, at least 1.
std::chrono::milliseconds wait_before_next(std::uint32_t failures,
                                           std::chrono::milliseconds backoff,
                                           std::chrono::milliseconds retry_after);

}  // namespace proctor
