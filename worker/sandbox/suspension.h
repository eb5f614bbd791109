#pragma once
// Suspension: everything below one process stands still, and goes on.  By the kernel's freezer
// where the host has one (nobody inside notices), else by SIGSTOP to each process of the tree.
// One thread.  Source: cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst (cgroup.freeze), signal(7).
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "worker/sandbox/cgroup.h"

namespace proctor {

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

}  // namespace proctor
