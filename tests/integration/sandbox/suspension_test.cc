// Suspension where the kernel has no freezer for us: by signals.
#include "worker/sandbox/process_tree.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "common/base/subprocess.h"

using namespace proctor;
using std::chrono::milliseconds;

namespace {

// Something that makes children all the time, some in sessions of their own.
Child start_tree() {
  CommandSpec spec;
  spec.argv = {"/bin/sh", "-c",
               "sh -c 'while :; do sleep 0.01; done' & "
               "setsid sh -c 'while :; do :; done' & "
               "while :; do (sleep 0.02) & sleep 0.01; done"};
  auto child = Child::start(spec, "/dev/null", Child::Lifetime::kDiesWithParent);
  REQUIRE(child.ok());
  return std::move(*child);
}

bool wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 2'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

// A shell that waits for the child of its vfork, which was stopped before its exec, is 'D' until
// that goes on.
bool all_stopped(pid_t root) {
  return std::ranges::all_of(tree_below(root), [](const TreeMember& m) {
    return m.state == 'T' || m.state == 'D' || m.state == 'Z' || m.state == 'X';
  });
}

char state_of(pid_t pid) {
  for (const TreeMember& m : tree_below(::getpid()))
    if (m.pid == pid) return m.state;
  return '?';
}

// Once it stands: a fork that was under way when the signal came has come to its end.
void stop(pid_t pid) {
  ::kill(pid, SIGSTOP);
  REQUIRE(wait_for([&] { return state_of(pid) == 'T'; }));
}

}  // namespace

TEST_SUITE("suspension") {
  TEST_CASE("without a freezer every process of a tree is stopped and then goes on") {
    Child outer = start_tree();
    const pid_t root = outer.pid();
    REQUIRE(wait_for([&] { return 3 <= tree_below(root).size(); }));
    stop(root);  // stands for bwrap, which only waits
    Cgroup none;
    Suspension suspension(none);
    suspension.suspend(root);
    CHECK(all_stopped(root));
    // One that was ending when it was stopped may still go.
    const auto standing = [&] {
      std::vector<pid_t> pids;
      for (const TreeMember& m : tree_below(root))
        if (m.state == 'T') pids.push_back(m.pid);
      return pids;
    };
    const std::vector<pid_t> then = standing();
    std::this_thread::sleep_for(milliseconds(100));
    CHECK(all_stopped(root));
    CHECK(standing() == then);
    suspension.suspend(root);  // again: nothing
    suspension.resume(root);
    CHECK(wait_for([&] { return !all_stopped(root); }));
    ::kill(root, SIGCONT);
    for (const TreeMember& m : tree_below(root)) ::kill(m.pid, SIGKILL);
    outer.stop(milliseconds(0));
  }

  TEST_CASE("who was stopped before stays so") {
    Child outer = start_tree();
    const pid_t root = outer.pid();
    REQUIRE(wait_for([&] { return 3 <= tree_below(root).size(); }));
    stop(root);
    const pid_t own = tree_below(root).front().pid;
    stop(own);
    Cgroup none;
    Suspension suspension(none);
    suspension.suspend(root);
    suspension.resume(root);
    CHECK(state_of(own) == 'T');
    ::kill(root, SIGCONT);
    for (const TreeMember& m : tree_below(root)) ::kill(m.pid, SIGKILL);
    outer.stop(milliseconds(0));
  }
}
