#pragma once
// How much of the disk a sandbox holds: what lies in its writable folders, and what its processes
// keep open after they have removed its name.  Where no kernel limit does it, a monitor asks this
// while the command runs (folder_tree.h says how folders are counted).
// Not counted: files without a name that are only mapped, or on their way through a socket; each is
// bounded by the limit on one file.  One object, one thread; the functions are thread-safe.
#include <sys/types.h>

#include <functional>
#include <stop_token>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {

// Is the limit passed?  Asked again and again.
class DiskLook {
 public:
  // In the folders alone, or among all open descriptors too.
  enum class Where { kNamed, kEverywhere };
  // `limit` outlives it.
  DiskLook(const DiskLimit& limit, Where where) : limit_(&limit), where_(where) {}
  // `inside`: the sandbox's processes.  False where it was stopped before it knew.
  bool passed(const std::function<std::vector<pid_t>()>& inside, const std::stop_token& stop);
  // Has so much been written since the last look began, by anybody, to the file systems of its
  // places, that the limit may have been passed by it?  Costs next to nothing.
  bool may_have_passed() const;

 private:
  std::vector<FolderUse> used_of_systems() const;
  const DiskLimit* limit_;
  const Where where_;
  std::vector<FolderUse> used_;  // by each place's file system, when the last look began
  FolderUse left_;               // to the limit, when it had ended
};

}  // namespace proctor
