#pragma once
// One word for a file of the kernel's own, as those of /proc and /sys take it.
#include <cstddef>

namespace proctor {

// Writes `text` to `file` in one call.  Async-signal-safe, and for a child in our memory too.
bool put_word(const char* file, const char* text, std::size_t size);

}  // namespace proctor
