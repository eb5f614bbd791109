#pragma once
// A file system of a bounded size in a sparse file of the host's disk: however fast a command
// writes, and wherever in it, it takes no more of the host than this.  ext4 without a journal, on a
// loop device that goes with its last mount.  Needs root and loop devices.  Blocking.  Thread-safe.
// Source: loop(4), ext4(5), mkfs.ext4(8).
#include <cstdint>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// The room that is needed, in blocks and in entries; no bytes: no bound.
struct DiskBound {
  std::uint64_t bytes = 0, files = 0;
  friend auto operator<=>(const DiskBound&, const DiskBound&) = default;
};

class BoundedDisks {
 public:
  // `root`: of the empty images that all others are copies of, shared by the workers of a host.
  // They are made in `life`, whose next one removes what a killed one left (workspace.cc).
  // kUnavailable: not on this host, with the reason.  Tried for real, with a small one.
  static Result<BoundedDisks> open(const fs::path& root, const fs::path& life);
  // Mounts a new one on `dir`/disk; its file is `dir`/disk.ext4.  `dir` stays the caller's, also
  // after an error.
  Status mount(const fs::path& dir, const DiskBound& bound) const;

 private:
  BoundedDisks(fs::path root, fs::path life) : root_(std::move(root)), life_(std::move(life)) {}
  // An empty one of this size, made when it is asked for first.
  Result<fs::path> blank(const DiskBound& bound) const;
  fs::path root_, life_;
};

// Where mount() put it.
fs::path bounded_folder(const fs::path& dir);
// How many entries commands may have there before they run out: a small one has fewer than was
// asked for; 0: that cannot be said.
std::uint64_t entries_of(const fs::path& folder);
// Has a command reached the end of it?  Then and from then on, there is some room for us again.
// Requires: nothing of a command runs there.
bool is_used_up(const fs::path& folder);
// Lazily when something still uses it.  Not mounted is fine.
Status unmount_bounded(const fs::path& dir);
}  // namespace proctor
