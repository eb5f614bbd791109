#pragma once
// What shows that a coordinator starts, before it has the journal: it shares a lock of the
// campaign's registration from its first moment to its last.  The kernel takes the mark away,
// whatever ends the process.
#include <optional>

#include "common/base/owned.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

// Held as long as it lives.  Nothing where no campaign is registered, or its file system has no
// locks: then nobody sees it start, and all else goes on.
std::optional<UniqueFd> mark_start(const StateFolder& folder);

bool is_starting(const StateFolder& folder);

}  // namespace proctor::cli
