// A log that was removed or emptied while it held what the journal does not: its index tells.
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/digest.h"
#include "coordinator/journal/journal_check.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

// As a killed coordinator leaves its files: `lives` are durable, in the log.
void die_with(const Folder& folder, std::uint32_t lives, std::uint32_t first = 0) {
  const pid_t pid = ::fork();
  REQUIRE(0 <= pid);
  if (pid == 0) {
    auto journal = Journal::open(folder.file);
    if (!journal.ok()) ::_exit(1);
    for (std::uint32_t run = first; run < first + lives; ++run)
      if (!journal.value()->append_and_wait(life_of(run)).ok()) ::_exit(2);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

fs::path part(const Folder& folder, const char* ending) {
  return folder.file.string() + ending;
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("a log that is gone or empty is damage while its index knows of it") {
    for (const bool removed : {true, false}) {
      CAPTURE(removed);
      const Folder folder;
      die_with(folder, 3);
      REQUIRE(0 < fs::file_size(part(folder, "-wal")));
      REQUIRE(must(check_journal(folder.file)).problems.empty());
      die_with(folder, 0);  // the check has moved nothing; this has: all is in the journal now
      REQUIRE(must(check_journal(folder.file)).ended == 3);
      die_with(folder, 3, 3);
      if (removed)
        fs::remove(part(folder, "-wal"));
      else
        fs::resize_file(part(folder, "-wal"), 0);
      const JournalFinding found = must(check_journal(folder.file));
      REQUIRE(found.problems.size() == 1);
      CHECK(found.problems[0].find("-wal is missing or empty") != std::string::npos);
      CHECK(error_of(Journal::open(folder.file)).code == Errc::kCorrupt);
      CHECK(error_of(JournalReader::open(folder.file)).code == Errc::kCorrupt);
      CHECK(error_of(Journal::open(folder.file)).code == Errc::kCorrupt);  // none of them moved it
    }
  }

  TEST_CASE("a journal that is removed or renamed under its writer is written no more") {
    for (const bool removed : {true, false}) {
      CAPTURE(removed);
      const Folder folder;
      auto journal = folder.open();
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      if (removed)
        fs::remove(folder.file);
      else
        fs::rename(folder.file, folder.file.string() + ".aside");
      const Error error = error_of(journal->append_and_wait(life_of(2)));
      CHECK(error.code == Errc::kUnavailable);
      CHECK(error.detail.find("was removed or renamed") != std::string::npos);
      CHECK_FALSE(journal->close().ok());
    }
  }

  TEST_CASE("a log whose frames are all in the journal may be gone") {
    const Folder folder;
    die_with(folder, 3);
    die_with(folder, 0);  // opening it moves the log
    fs::remove(part(folder, "-wal"));
    CHECK(must(check_journal(folder.file)).problems.empty());
    CHECK(must(must(Journal::open(folder.file))->load()).ended.size() == 3);
  }

  TEST_CASE("an index from before the last boot tells nothing of a log that is gone") {
    const Folder folder;
    die_with(folder, 3);
    fs::remove(part(folder, "-wal"));
    fs::last_write_time(part(folder, "-shm"),
                        fs::file_time_type::clock::now() - std::chrono::hours(24) * 365 * 20);
    CHECK(must(check_journal(folder.file)).problems.empty());
  }
}
