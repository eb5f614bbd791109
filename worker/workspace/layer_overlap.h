#pragma once
// Do two upper layers of one tree say anything about the same path?  Where they do not, it makes no
// difference which of them lies above the other.  Reads names only.  Blocking.
#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/workspace_kind.h"

namespace proctor {

// True as well where that cannot be told: nested too deep, marks with names of their own.
// `kind`: of both.
Result<bool> layers_meet(const fs::path& upper, const fs::path& setup, WorkspaceKind kind);

}  // namespace proctor
