#include "worker/workspace/layer_overlap.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/text.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/layer_marks.h"

namespace proctor {
namespace {

constexpr int kMeetDepthMax = 128;

Result<bool> folders_meet(int upper, int setup, WorkspaceKind kind, int depth) {
  if (kMeetDepthMax < depth || is_opaque(upper, kind) || is_opaque(setup, kind)) return true;
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(upper));
  for (const std::string& name : inside) {
    struct stat mine {
    }, theirs{};
    if (::fstatat(upper, name.c_str(), &mine, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("look at " + printable(name), errno);
    if (::fstatat(setup, name.c_str(), &theirs, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return errno_error("look at " + printable(name), errno);
    }
    // A folder in both says nothing of the tree yet, unless one has changed what it is.
    if (!S_ISDIR(mine.st_mode) || !S_ISDIR(theirs.st_mode) || mine.st_mode != theirs.st_mode)
      return true;
    PROCTOR_TRY(const UniqueFd below, beneath::open_dir(upper, name));
    PROCTOR_TRY(const UniqueFd of_setup, beneath::open_dir(setup, name));
    PROCTOR_TRY(const bool meet, folders_meet(below.get(), of_setup.get(), kind, depth + 1));
    if (meet) return true;
  }
  return false;
}

}  // namespace

Result<bool> layers_meet(const fs::path& upper, const fs::path& setup, WorkspaceKind kind) {
  PROCTOR_TRY(const UniqueFd mine, beneath::open_root(upper.string()));
  PROCTOR_TRY(const UniqueFd theirs, beneath::open_root(setup.string()));
  return folders_meet(mine.get(), theirs.get(), kind, 0);
}

}  // namespace proctor
