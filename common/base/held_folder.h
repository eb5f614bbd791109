#pragma once
// HeldFolder: a temporary folder that is locked by who made it for as long as he lives, so that the
// next life can tell what a killed one left.  The kernel ends the lock with its holder: no process
// id would do, for those who share the place need not see each other's processes.
// Thread-safe (no state).  Fails with errno_error.
// Source: flock(2); systemd-tmpfiles(8) leaves locked folders alone too.
#include <string>
#include <utility>

#include "common/base/files.h"
#include "common/base/unique_fd.h"

namespace proctor {

class HeldFolder {
 public:
  // "<prefix><our pid>-...", for us alone; the number is for people.  Empty `parent`: where
  // temporary folders are.
  static Result<HeldFolder> make(const std::string& prefix, const fs::path& parent = {});
  const fs::path& path() const { return dir_.path(); }

 private:
  HeldFolder(UniqueFd lock, TempDir dir) : lock_(std::move(lock)), dir_(std::move(dir)) {}
  UniqueFd lock_;  // until the folder is gone
  TempDir dir_;
};

// Removes those of this user that nobody holds.
void remove_left_folders(const std::string& prefix, const fs::path& parent = {});

}  // namespace proctor
