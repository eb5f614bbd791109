#pragma once
// How a worker's Sync says, among its features, that the meter books of an earlier life of its are
// whole: whatever that life began is running or unacknowledged in this Sync, so what it does not
// mention never began.
#include <algorithm>
#include <string>
#include <vector>

#include "common/wire/messages.h"

namespace proctor::wire {

inline std::string books_feature(BootId life) {
  return "books:" + std::to_string(life.raw());
}

inline bool has_books_of(const Sync& sync, BootId life) {
  return std::ranges::find(sync.features, books_feature(life)) != sync.features.end();
}

}  // namespace proctor::wire
