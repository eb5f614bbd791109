#pragma once
// How the upper layer of an overlay says what it hides of the layers below.  Each kind of overlay
// has its own words, and reads no others: what an agent writes in another's means nothing.
// Any thread.  Source: Documentation/filesystems/overlayfs.rst of Linux ("whiteouts and opaque
// directories", "userxattr").
#include <sys/stat.h>

#include "worker/workspace/workspace_kind.h"

namespace proctor {

// Was the folder made anew over one of the lower layers, which it hides?
bool is_opaque(int dir, WorkspaceKind kind);
// By what stat says of an entry: is it the mark of one that was removed?
bool is_whiteout(const struct stat& st);

}  // namespace proctor
