// A disk whose fsync fails.  This executable's fsync and fdatasync stand before libc's, also for
// libsqlite3, so they count and can be told to fail.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "common/base/digest.h"
#include "tests/integration/journal/support.h"

namespace {
std::atomic<int> g_syncs{0};
std::atomic<bool> g_fails{false};

int sync_by(long call, int fd) {
  ++g_syncs;
  if (g_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(call, fd));
}
}  // namespace

extern "C" int fsync(int fd) {
  return sync_by(SYS_fsync, fd);
}
extern "C" int fdatasync(int fd) {
  return sync_by(SYS_fdatasync, fd);
}

using namespace proctor;
using namespace proctor::test;

TEST_SUITE("journal") {
  TEST_CASE("every commit is an fsync and a commit of many batches is not more of them") {
    const Folder folder;
    auto journal = folder.open();
    REQUIRE(journal->append_and_wait(life_of(0)).ok());  // the first one writes the WAL's header
    int before = g_syncs;
    REQUIRE(journal->append_and_wait(life_of(1)).ok());
    const int single = g_syncs - before;
    CHECK(0 < single);
    before = g_syncs;
    const JournalStats stats = journal->stats();
    for (std::uint32_t run = 2; run < 202; ++run) {
      journal->append(life_of(run), [](Status s) { CHECK(s.ok()); });
    }
    REQUIRE(journal->append_and_wait({}).ok());
    const auto commits = static_cast<int>(journal->stats().commits - stats.commits);
    CHECK(commits < 100);
    CHECK(g_syncs - before <= commits * single);
    CHECK(commits <= g_syncs - before + 1);  // the empty batch at the end may be alone
  }

  TEST_CASE("a failed fsync is reported at once and never tried again") {
    const Folder folder;
    {
      auto journal = folder.open();
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      g_fails = true;
      const Error error = error_of(journal->append_and_wait(life_of(2)));
      g_fails = false;
      CHECK(error.code == Errc::kUnavailable);
      CHECK(error.detail.find("fsync failed") != std::string::npos);
      // The disk works again, but nobody knows what it holds: still refused, nothing is synced.
      const int before = g_syncs;
      CHECK(error_of(journal->append_and_wait(life_of(3))).detail == error.detail);
      CHECK(error_of(journal->append_and_wait({})).detail == error.detail);
      CHECK(g_syncs == before);
      REQUIRE(journal->failure().has_value());
      CHECK_FALSE(journal->close().ok());
    }
    const RestoredState state = must(folder.open()->load());
    REQUIRE(1 <= state.ended.size());
    CHECK(state.ended[0].run == RunId(1));
    CHECK(state.ended.size() <= 2);  // the unreported one may or may not have arrived
  }
}
