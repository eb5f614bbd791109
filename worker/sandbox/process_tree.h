#pragma once
// Processes below one process: listing, suspending, killing and finding orphans.
#include <sys/types.h>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/sandbox/cgroup.h"

namespace proctor {
// SIGKILL for processes that a list names by number.  A number may have gone to somebody else since
// the list was made, so each is held first (a pidfd), and killed only where the list, made once
// more, still names it: while it is held and alive, nobody else has its number.
// Thread-safe (no state).  Source: pidfd_open(2), pidfd_send_signal(2).
// Calls `listed` once, and once more for every few it names.
void kill_listed(const std::function<std::vector<pid_t>()>& listed);

// One process of a tree.
struct TreeMember {
  pid_t pid = 0, parent = 0;
  char state = '?';  // as in /proc/PID/stat
};
// Empty: there is no such process.
std::optional<TreeMember> tree_member(pid_t pid);
// All descendants of `root`, parents before children.  Those that come and go meanwhile may be
// missing.
std::vector<TreeMember> tree_below(pid_t root);
// The CPU time of all of them and of `root`, with that of the children they have waited for.
std::chrono::milliseconds cpu_time_of_tree(pid_t root);

// Suspension: everything below one process stands still, and goes on.  By the kernel's freezer
// where the host has one (nobody inside notices), else by SIGSTOP to each process of the tree.
// One thread.  Source: cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst (cgroup.freeze), signal(7).
class Suspension {
 public:
  explicit Suspension(Cgroup& group) : group_(group) {}
  // Idempotent.  `root` itself may go on.
  void suspend(pid_t root);
  void resume(pid_t root);

 private:
  void stop_tree(pid_t root);
  Cgroup& group_;
  bool frozen_ = false;
  std::set<pid_t> stopped_;  // by our signal; who was stopped before stays so
};

// Sandboxes of a worker that was killed while they began.  bwrap's first process inside asks to die
// with its parent only when it has set all up: killed before that, it goes on and runs its command
// for nobody.  Control groups find it where there are any; this finds it by the label that our
// runtimes bear as their first argument.  Blocking.

// The first argument of a runtime of `owner`; begins with `program`.
std::string runtime_label(const std::string& program, const std::string& owner);

// Kills (SIGKILL) those that bear it and are no children of this process, until there are none or
// two seconds have passed.  Processes of other users are theirs.
void kill_orphans(const std::string& label);
}  // namespace proctor
