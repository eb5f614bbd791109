#include "worker/workspace/workspace_kind.h"

#include "common/base/result.h"

namespace proctor {

std::string_view to_string(WorkspaceKind k) {
  switch (k) {
    case WorkspaceKind::kOverlay:
      return "overlay";
    case WorkspaceKind::kUserOverlay:
      return "user-overlay";
    case WorkspaceKind::kReflink:
      return "reflink";
    case WorkspaceKind::kCopy:
      return "copy";
  }
  PROCTOR_ASSERT(false);
}

std::optional<WorkspaceKind> parse_workspace_kind(std::string_view text) {
  for (const WorkspaceKind k : kWorkspaceKinds)
    if (to_string(k) == text) return k;
  return std::nullopt;
}

}  // namespace proctor
