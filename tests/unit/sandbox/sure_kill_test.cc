#include "worker/sandbox/process_tree.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

using namespace proctor;

namespace {

// Waits for a signal.
class Waiting {
 public:
  Waiting() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
    REQUIRE(0 < pid_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  // It has been sent SIGKILL, or never will be: what was sent before is at work by then.
  bool killed() const {
    ::kill(pid_, SIGSTOP);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT) == 0);
    return info.si_code == CLD_KILLED;
  }

 private:
  pid_t pid_;
};

}  // namespace

TEST_SUITE("sure kill") {
  TEST_CASE("who is listed twice is killed and who has only the number that another had is not") {
    const Waiting member, stranger;
    int asked = 0;
    kill_listed([&] {
      ++asked;
      // Between the two the member that had this number has gone.
      return asked == 1 ? std::vector{stranger.pid(), member.pid()} : std::vector{member.pid()};
    });
    CHECK(asked == 2);
    CHECK(member.killed());
    CHECK_FALSE(stranger.killed());
  }

  TEST_CASE("many are killed with few descriptors") {
    std::vector<std::unique_ptr<Waiting>> all;
    std::vector<pid_t> pids;
    for (int i = 0; i < 150; ++i) {
      all.push_back(std::make_unique<Waiting>());
      pids.push_back(all.back()->pid());
    }
    int asked = 0;
    kill_listed([&] {
      ++asked;
      return pids;
    });
    CHECK(2 < asked);
    for (const auto& one : all) CHECK(one->killed());
  }

  TEST_CASE("nobody and the dead are no matter") {
    kill_listed([] { return std::vector<pid_t>(); });
    kill_listed([] { return std::vector<pid_t>{4'194'304}; });
  }
}
