#pragma once
// Walks of a whole folder: how much it uses, and its removal.
#include <sys/stat.h>
#include <cstdint>
#include <set>
#include <stop_token>
#include <utility>

#include "common/base/files.h"
#include "common/base/owned.h"

namespace proctor {
// How much of the disk lies below a folder: the one walk for limits, caches and messages.  The
// files it reads may change meanwhile and be hostile, so it follows no link, stays on one file
// system, and gives up at a depth.  A file of several names counts once; what vanishes counts for
// nothing.  Blocking.  One object, one thread.

// Deeper than this is beyond every limit: nothing that builds or installs goes there.
inline constexpr int kFolderDepthMax = 128;

struct FolderUse {
  std::uint64_t bytes = 0, files = 0;  // files: entries of every kind
};
// The meaning of bytes: blocks on disk, of every entry; or the sizes of the regular files.
enum class FolderMeasure { kBlocks, kSizes };
// All of one folder, in blocks.
FolderUse folder_use(const fs::path& dir);

class FolderCount {
 public:
  // Above `most` it stops counting; 0: no limit.  It also stops when `stop` asks for it.
  explicit FolderCount(FolderUse most = {}, FolderMeasure measure = FolderMeasure::kBlocks,
                       std::stop_token stop = {})
      : most_(most), measure_(measure), stop_(std::move(stop)) {}

  void add(const fs::path& dir);
  // The upper layer of an overlay over another one that holds `there`: together, without what the
  // upper hides of the other.
  void add_over(const fs::path& upper, const fs::path& below, FolderUse there);
  // A file that no folder shows.
  void add_nameless(const struct stat& st);

  bool passed() const {
    return too_deep_ || (0 < most_.bytes && most_.bytes < so_far_.bytes) ||
           (0 < most_.files && most_.files < so_far_.files);
  }
  FolderUse so_far() const { return so_far_; }

 private:
  void count(const struct stat& st);
  void folder(UniqueFd fd, UniqueFd below, int depth);
  void hide(const UniqueFd& below, const char* name, const struct stat& upper);

  const FolderUse most_;
  const FolderMeasure measure_;
  const std::stop_token stop_;
  FolderUse so_far_, hidden_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  dev_t device_ = 0;
  bool too_deep_ = false;
};

// remove_tree (files.h) of what may be much: its first part here, and whoever asks has the rest
// removed elsewhere.  Blocking.

struct RemovalRoom {
  std::uint64_t entries = 0;  // files, folders and what else has a name
  std::uint64_t bytes = 0;    // on disk
};

// As remove_tree(), until `room` is used up.  False: there is more, and some of it may be gone.
Result<bool> remove_tree_within(const fs::path& dir, RemovalRoom room);
}  // namespace proctor
