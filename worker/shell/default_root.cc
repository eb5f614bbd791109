#include "worker/shell/default_root.h"

#include <cstdlib>

namespace proctor {

fs::path default_worker_root() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "proctor";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home == '/' ? home : "/tmp") / ".local/state/proctor";
}

}  // namespace proctor
