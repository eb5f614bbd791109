// Suspension where the kernel has no freezer for us: by signals.
#include "worker/sandbox/suspension.h"

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

bool all_stopped(pid_t root) {
  return std::ranges::all_of(tree_below(root), [](const TreeMember& m) {
    return m.state == 'T' || m.state == 'Z' || m.state == 'X';
  });
}

}  // namespace

TEST_SUITE("suspension") {
  TEST_CASE("without a freezer every process of a tree is stopped and then goes on") {
    Child outer = start_tree();
    const pid_t root = outer.pid();
    REQUIRE(wait_for([&] { return 3 <= tree_below(root).size(); }));
    ::kill(root, SIGSTOP);  // stands for bwrap, which only waits
    Cgroup none;
    Suspension suspension(none);
    suspension.suspend(root);
    CHECK(wait_for([&] { return all_stopped(root); }));
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
    ::kill(root, SIGSTOP);
    const pid_t own = tree_below(root).front().pid;
    ::kill(own, SIGSTOP);
    const auto state_of_own = [&] {
      for (const TreeMember& m : tree_below(root))
        if (m.pid == own) return m.state;
      return '?';
    };
    REQUIRE(wait_for([&] { return state_of_own() == 'T'; }));
    Cgroup none;
    Suspension suspension(none);
    suspension.suspend(root);
    suspension.resume(root);
    CHECK(state_of_own() == 'T');
    ::kill(root, SIGCONT);
    for (const TreeMember& m : tree_below(root)) ::kill(m.pid, SIGKILL);
    outer.stop(milliseconds(0));
  }
}
