#pragma once
// Removal of what a stranger may have left, and the frame of processes that work on such things
// apart.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor::apart {
// A part of this program that runs as a process of its own, with limits, on what a stranger left
// (extract.h, and removal): what both sides of such a process need.  Blocking.

// Exit codes; beyond its CPU time SIGXCPU ends it.
inline constexpr int kDone = 0, kNoUse = 2, kNoMemory = 3;

// The process itself: it dies with the thread that waits for it, and `answer` does what its
// standard input asks for.  The exit code.
int serve(std::size_t bytes_max, Status (*answer)(std::string_view asked));
// From now on.
Status limit_self(std::chrono::seconds cpu, std::uint64_t memory);
struct Use {
  std::chrono::milliseconds cpu{0};
  std::uint64_t memory_peak = 0;
};
void fields(auto& v, Is<Use> auto& use) {
  v("cpu_ms", use.cpu);
  v("memory_peak", use.memory_peak);
}
Use so_far();
}  // namespace proctor::apart

namespace proctor {
// Removal is done here as far as it is little, and the rest by a process of its own with limits, so
// that nobody's tree takes the worker's time.  Blocking; any thread.

// The program that removes what is much: `path remove` calls remove_as_asked().
struct Remover {
  fs::path path{};  // empty: all is removed in this process
  // A million files, as many as a sandbox may leave, take a tenth of it.
  std::chrono::seconds cpu{600};
  std::uint64_t memory = std::uint64_t{1} << 30;
};

// Beyond these a tree is much: what is less costs about as much as a process does.
inline constexpr std::uint64_t kRemovedHereFiles = 2'000,
                               kRemovedHereBytes = std::uint64_t{256} << 20;

struct RemovalCost {
  std::chrono::milliseconds wall{0}, cpu{0};
  std::uint64_t memory_peak = 0;  // of a process of its own
  bool apart = false;             // there was one
  void add(const RemovalCost& other);
};

// The cost of `work`, on this thread, in all; it adds what processes of its own took.
RemovalCost cost_of(const std::function<void(RemovalCost&)>& work);

// As remove_tree(), and adds to `cost` what a process of its own took.  kExhausted beyond its
// limits: the rest stays, for the worker's next start to remove.
Status remove_left(const fs::path& dir, const Remover& remover, RemovalCost& cost);
// The other side: reads standard input; the exit code.
int remove_as_asked();
}  // namespace proctor
