#pragma once
// Sandboxes of a worker that was killed while they began.  bwrap's first process inside asks to die
// with its parent only when it has set all up: killed before that, it goes on and runs its command
// for nobody.  Control groups find it where there are any; this finds it by the label that our
// runtimes bear as their first argument.  Blocking.
#include <string>

namespace proctor {

// The first argument of a runtime of `owner`; begins with `program`.
std::string runtime_label(const std::string& program, const std::string& owner);

// Kills (SIGKILL) those that bear it and are no children of this process, until there are none or
// two seconds have passed.  Processes of other users are theirs.
void kill_orphans(const std::string& label);

}  // namespace proctor
