#pragma once
// What kinds of workspaces work below a folder.  Each is tried for real, in a folder that is
// removed again.  Blocking.
#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/own_view.h"
#include "worker/workspace/workspace_kind.h"

namespace proctor {

// kUnavailable and the like, with the reason: this one does not.
Status probe_workspaces(const fs::path& root, WorkspaceKind kind);

// Do overlays of the kernel below `root` belong to a user of their own, to whom they say all of the
// above?
Status probe_own_users(const fs::path& root, const OwnViews& views);

}  // namespace proctor
