#pragma once
// One life of one worker: a folder that is locked for as long as the process lives, so that the
// next life (or a sibling of the same name) can tell what was left behind from what is in use.
// Owns <owner folder>/life-XXXXXX; removed at the end when empty.  Blocking.  Thread-safe.
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

class Life {
 public:
  static Result<Life> begin(const fs::path& owner_dir);
  Life(Life&&) noexcept = default;
  Life& operator=(Life&&) noexcept = default;
  ~Life();

  const fs::path& dir() const { return dir_; }
  std::string name() const { return dir_.filename().string(); }
  // Makes its folder anew, under the same name, where somebody has deleted it.
  Status stay();
  // Makes a folder of a life that is over, with what is mounted below it, ours; its new place.
  // kNotFound: no such folder of a dead life of this owner.
  Result<fs::path> take_over(const fs::path& dir) const;
  // Unmounts and removes the folders of lives that are over, also those of this owner's name
  // before the root was moved (an owner is named NAME-HASH, by where its root is); the names of
  // those of this owner that are not, ours included.
  Result<std::vector<std::string>> bury_the_dead() const;

 private:
  Life(fs::path dir, FileLock lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  fs::path dir_;
  FileLock lock_;
};

}  // namespace proctor
