#pragma once
// Where workers keep mirrors, trees, workspaces and spools unless they are told otherwise:
// $XDG_STATE_HOME/proctor, else ~/.local/state/proctor (XDG Base Directory Specification).
#include "common/base/files.h"

namespace proctor {

fs::path default_worker_root();

}  // namespace proctor
