#pragma once
// How often workers are asked to Sync, and how long one may be silent before it is a suspect: by
// how many there are, so that their Syncs are no more than the loop takes and none is suspected for
// keeping to its interval.
#include <algorithm>
#include <cstddef>

#include "common/base/clock.h"
#include "common/base/limits.h"

namespace proctor {

inline Millis sync_interval_of(std::size_t workers) {
  constexpr std::size_t kShare = 5, kLeast = 200, kMost = 1'000;  // Syncs in a second
  constexpr Millis kLongest{30'000};
  const std::size_t a_second = std::clamp(workers / kShare, kLeast, kMost);
  const Millis each(static_cast<Millis::rep>(workers * 1'000 / a_second));
  return std::clamp(each, limits::kSyncInterval, kLongest);
}

inline Millis suspect_after_of(std::size_t workers, Millis least) {
  return std::max(least, 3 * sync_interval_of(workers));
}

}  // namespace proctor
