#include "worker/model/call_rules.h"

#include <algorithm>

namespace proctor {

std::chrono::milliseconds wait_before_next(std::uint32_t failures,
                                           std::chrono::milliseconds backoff,
                                           std::chrono::milliseconds retry_after) {
  std::chrono::milliseconds wait = std::min(backoff, kModelWaitMost);
  for (std::uint32_t i = 1; i < failures && wait < kModelWaitMost; ++i) wait *= 2;
  return std::min(std::max(wait, retry_after), kModelWaitMost);
}

}  // namespace proctor
