#pragma once
// What a tree looks like from outside, as one digest: names, kinds, modes, sizes and times of
// change of everything below a folder, without reading a file.  For "has anything been done since?"
// while an agent is at work in it: what lies there is hostile, no link is followed and nothing but
// folders is opened.  Blocking; any thread.  Errors: kExhausted, more than it looks at;
// kUnavailable, a folder that cannot be read.
#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct TreeState {
  std::string digest;
  std::uint64_t files = 0, bytes = 0;
};
Result<TreeState> state_of_tree(const fs::path& dir);

}  // namespace proctor
