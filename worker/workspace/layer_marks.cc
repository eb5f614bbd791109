#include "worker/workspace/layer_marks.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <array>

namespace proctor {
namespace {

constexpr std::string_view kPrefix = ".wh.";
constexpr const char* kOpaque = ".wh..wh..opq";

bool says_yes(int dir, const char* attribute) {
  std::array<char, 8> value{};
  const ssize_t n = ::fgetxattr(dir, attribute, value.data(), value.size());
  return n == 1 && value[0] == 'y';
}

}  // namespace

bool is_opaque(int dir, WorkspaceKind kind) {
  struct stat st {};
  switch (kind) {
    case WorkspaceKind::kOverlay:
      return says_yes(dir, "trusted.overlay.opaque");
    case WorkspaceKind::kUserOverlay:
      return says_yes(dir, "user.overlay.opaque");
    case WorkspaceKind::kFuseOverlay:
      return ::fstatat(dir, kOpaque, &st, AT_SYMLINK_NOFOLLOW) == 0;
    case WorkspaceKind::kReflink:
    case WorkspaceKind::kCopy:
      break;
  }
  return false;
}

bool is_whiteout(const struct stat& st) {
  return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

bool is_mark(std::string_view name, WorkspaceKind kind) {
  return kind == WorkspaceKind::kFuseOverlay && name.starts_with(kPrefix);
}

std::optional<std::string> removed_by(std::string_view mark) {
  const std::string_view name = mark.substr(kPrefix.size());
  // ".wh..opq" is its own word for opaque folders where it can make devices.
  if (name.empty() || name == ".opq" || name.starts_with(kPrefix)) return std::nullopt;
  return std::string(name);
}

std::string mark_of_removed(std::string_view name) {
  return std::string(kPrefix) + std::string(name);
}

}  // namespace proctor
