// kill -9 of the writer: every batch whose callback reported a commit is there afterwards, whole.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "common/base/digest.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

// The child: appends lives without waiting, reports each committed run as four bytes.
[[noreturn]] void write_until_killed(const fs::path& file, int report, std::uint32_t first) {
  auto journal = Journal::open(file);
  if (!journal.ok()) ::_exit(1);
  for (std::uint32_t run = first;; ++run) {
    journal.value()->append(life_of(run), [report, run](Status s) {
      if (!s.ok() || ::write(report, &run, sizeof run) != sizeof run) ::_exit(2);
    });
    // A small pause now and then, so that groups of many sizes are hit.
    if (run % 64 == 0 && !journal.value()->append_and_wait({}).ok()) ::_exit(3);
  }
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("a killed writer loses no batch that it reported") {
    const Folder folder;
    std::mt19937_64 random(20260307);
    std::size_t reported = 0;
    for (int round = 0; round < 12; ++round) {
      CAPTURE(round);
      int ends[2];
      REQUIRE(::pipe(ends) == 0);
      const pid_t pid = ::fork();
      REQUIRE(0 <= pid);
      if (pid == 0) {
        ::close(ends[0]);
        write_until_killed(folder.file, ends[1], static_cast<std::uint32_t>(round) * 1'000'000);
      }
      ::close(ends[1]);
      // Die after a random number of reports: the moment inside the next group is the scheduler's.
      const std::uint64_t enough = 1 + random() % 400;
      std::vector<std::uint32_t> runs;
      std::uint32_t run = 0;
      bool killed = false;
      while (::read(ends[0], &run, sizeof run) == sizeof run) {
        runs.push_back(run);
        if (enough <= runs.size() && !killed) {
          ::kill(pid, SIGKILL);
          killed = true;  // what is still in the pipe was reported as well
        }
      }
      ::close(ends[0]);
      int status = 0;
      REQUIRE(::waitpid(pid, &status, 0) == pid);
      REQUIRE(WIFSIGNALED(status));
      REQUIRE(enough <= runs.size());
      reported += runs.size();

      const RestoredState state = must(folder.open()->load());
      REQUIRE(reported <= state.ended.size());
      REQUIRE(state.attempts.size() == state.ended.size());
      std::size_t found = 0;
      for (const RestoredAttempt& a : state.attempts) {
        REQUIRE(a.settled);  // never half a batch
        if (found < runs.size() && a.attempt.run == RunId(runs[found])) ++found;
      }
      CHECK(found == runs.size());
      // Later rounds compare with everything that is there now.
      reported = state.ended.size();
    }
  }
}
