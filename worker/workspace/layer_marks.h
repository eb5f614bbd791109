#pragma once
// How the upper layer of an overlay says what it hides of the layers below.  Each kind of overlay
// has its own words, and reads no others: what an agent writes in another's means nothing.
// Any thread.  Source: Documentation/filesystems/overlayfs.rst of Linux ("whiteouts and opaque
// directories", "userxattr"); fuse-overlayfs(1) and what its version 1.10 was seen to write.
#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "worker/workspace/workspace_kind.h"

namespace proctor {

// Was the folder made anew over one of the lower layers, which it hides?
bool is_opaque(int dir, WorkspaceKind kind);
// By what stat says of an entry: is it the mark of one that was removed?
bool is_whiteout(const struct stat& st);
// Is this the name of a mark, and no file of anybody's?  Only fuse-overlayfs has such names, and
// neither shows nor takes files that are called so.
bool is_mark(std::string_view name, WorkspaceKind kind);
// Of a mark: what it says was removed here; none: it says something else.
std::optional<std::string> removed_by(std::string_view mark);
// How fuse-overlayfs calls the mark of `name` where it cannot make devices.
std::string mark_of_removed(std::string_view name);

}  // namespace proctor
