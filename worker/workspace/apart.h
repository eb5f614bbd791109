#pragma once
// A part of this program that runs as a process of its own, with limits, on what a stranger left
// (extract.h, removal.h): what both sides of such a process need.  Blocking.
#include <chrono>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace proctor::apart {

// Exit codes; beyond its CPU time SIGXCPU ends it.
inline constexpr int kDone = 0, kNoUse = 2, kNoMemory = 3;

// It dies with the thread that waits for it, and asks its standard input what to do.
std::string begin(std::size_t bytes_max);
// From now on.
Status limit_self(std::chrono::seconds cpu, std::uint64_t memory);
struct Use {
  std::chrono::milliseconds cpu{0};
  std::uint64_t memory_peak = 0;
};
Use so_far();

}  // namespace proctor::apart
