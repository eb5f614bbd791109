#pragma once
// When to check a whole state whose steps must stay cheap.  Not thread-safe.
#include <cstddef>

namespace proctor {

class CheckPace {
 public:
  // After each step: is the check due, for a state of `entries`?  A state of up to 16 is checked
  // after each step; a larger one costs each step as much as a look at 16 entries.
  bool due(std::size_t entries) {
    steps_ += 16;
    if (steps_ < entries) return false;
    steps_ = 0;
    return true;
  }

 private:
  std::size_t steps_ = 0;  // times 16, since the last check
};

}  // namespace proctor
