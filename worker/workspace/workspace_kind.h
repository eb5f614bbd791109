#pragma once
// How workspaces come by their files.  Overlays have an upper layer that holds what was changed and
// nothing else; the others are copies of all there is.
#include <array>
#include <optional>
#include <string_view>

namespace proctor {

enum class WorkspaceKind {
  kOverlay,      // of the kernel, mounted by root
  kUserOverlay,  // of the kernel, in a user namespace (common/base/namespaces.h): nobody outside
                 // it, the Docker engine for one, sees what is mounted
  kReflink,      // a copy that shares its blocks with the original
  kCopy,
};

// From the one that is tried first to the one that works everywhere.
inline constexpr std::array kWorkspaceKinds = {WorkspaceKind::kOverlay, WorkspaceKind::kUserOverlay,
                                               WorkspaceKind::kReflink, WorkspaceKind::kCopy};

std::string_view to_string(WorkspaceKind k);
std::optional<WorkspaceKind> parse_workspace_kind(std::string_view text);

constexpr bool is_overlay(WorkspaceKind k) {
  return k == WorkspaceKind::kOverlay || k == WorkspaceKind::kUserOverlay;
}

}  // namespace proctor
