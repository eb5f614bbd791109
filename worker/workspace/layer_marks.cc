#include "worker/workspace/layer_marks.h"

#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <array>

namespace proctor {
namespace {

bool says_yes(int dir, const char* attribute) {
  std::array<char, 8> value{};
  const ssize_t n = ::fgetxattr(dir, attribute, value.data(), value.size());
  return n == 1 && value[0] == 'y';
}

}  // namespace

bool is_opaque(int dir, WorkspaceKind kind) {
  switch (kind) {
    case WorkspaceKind::kOverlay:
      return says_yes(dir, "trusted.overlay.opaque");
    case WorkspaceKind::kUserOverlay:
      return says_yes(dir, "user.overlay.opaque");
    case WorkspaceKind::kReflink:
    case WorkspaceKind::kCopy:
      break;
  }
  return false;
}

bool is_whiteout(const struct stat& st) {
  return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

}  // namespace proctor
