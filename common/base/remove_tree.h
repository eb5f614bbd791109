#pragma once
// remove_tree (files.h) of what may be much: its first part here, and whoever asks has the rest
// removed elsewhere.  Blocking.
#include <cstdint>

#include "common/base/files.h"

namespace proctor {

struct RemovalRoom {
  std::uint64_t entries = 0;  // files, folders and what else has a name
  std::uint64_t bytes = 0;    // on disk
};

// As remove_tree(), until `room` is used up.  False: there is more, and some of it may be gone.
Result<bool> remove_tree_within(const fs::path& dir, RemovalRoom room);

}  // namespace proctor
