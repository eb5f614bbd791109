#pragma once
// Whether a tree that lies below workspaces is still what it was when one was made of it.  Whoever
// deletes trees/ under a live run makes checks fail that would have passed, and nothing that they
// leave shows it: so the tree is looked at after them.  Blocking; a value, any thread.
// Fails with kUnavailable, for it is the host's doing; kCorrupt likewise where it cannot be looked
// at.
#include <ctime>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

class TreeMark {
 public:
  // `tree`: of snapshot.h, its `work` folder and its sentinel, which is written last.
  static Result<TreeMark> of(const fs::path& tree);

  enum class Look {
    kSentinel,  // is it there, under the same folder?
    kFolders,   // and has none of its folders lost or got an entry since?
  };
  Status check(Look look) const;

 private:
  fs::path tree_;
  dev_t device_ = 0;
  ino_t folder_ = 0, sentinel_ = 0;
  timespec at_{};
};

// The file of a tree that is written last: its sentinel.
inline constexpr const char* kTreeSentinel = "boot";

}  // namespace proctor
