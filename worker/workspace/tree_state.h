#pragma once
// Trees looked at again: is one still what it was, what does it look like, has it been written to?
#include <cstdint>
#include <ctime>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// Whether a tree that lies below workspaces is still what it was when one was made of it.  Somebody
// who deletes trees/ under a live run makes checks fail that would have passed, and nothing that
// they leave shows it: so the tree is looked at after them.  Blocking; a value, any thread.
// Fails with kUnavailable, for it is the host's doing; kCorrupt likewise where it cannot be looked
// at.
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

// A tree as it looks from outside, in one digest: names, kinds, modes, sizes and times of change of
// everything below a folder, without reading a file.  For "has anything been done since?" while an
// agent is at work in it: what lies there is hostile, no link is followed and nothing but folders
// is opened.  Blocking; any thread.  Errors: kExhausted, more than it looks at; kUnavailable, a
// folder that cannot be read.
struct TreeState {
  std::string digest;
  std::uint64_t files = 0, bytes = 0;
};
Result<TreeState> state_of_tree(const fs::path& dir);

// Was anything below a folder written since a moment?  By the times of change, which the kernel
// sets and no program can: that tells an agent's changes from those of setup in one layer without a
// look at every file before each agent.  Reads only, any thread.

// The moment that the kernel stamps changes with.  It moves every few milliseconds, so changes of
// one moment may lie before it or after it.
timespec stamp_now();

// Has this file or folder been changed since, or is it not there?
bool changed_since(const fs::path& path, const timespec& moment);

// The folder itself counts, .git in it does not.  True also where something cannot be read: nobody
// knows then.
bool touched_since(const fs::path& dir, const timespec& moment);
}  // namespace proctor
