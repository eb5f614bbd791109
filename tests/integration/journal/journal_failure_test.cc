// What the journal refuses and how it fails: contradictions, locks, foreign files, full disks.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "common/base/digest.h"
#include "coordinator/journal/journal_check.h"
#include "tests/integration/journal/sql.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

// Runs `body` in a child and gives back the text it returns: for limits and identities that must
// not touch this process.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  REQUIRE(0 <= pid);
  if (pid == 0) {
    ::close(ends[0]);
    const std::string text = body();
    const ssize_t n = ::write(ends[1], text.data(), text.size());
    ::_exit(n == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string out;
  char buffer[512];
  for (ssize_t n = 0; 0 < (n = ::read(ends[0], buffer, sizeof buffer));) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  return out;
}

std::string text_of(const Error& e) {
  return std::string(to_string(e.code)) + ": " + e.detail;
}

// Appends until it fails, then checks that it stays failed and that what was reported is there.
std::string fill(const fs::path& file) {
  std::size_t committed = 0;
  std::string text;
  {
    auto journal = Journal::open(file);
    if (!journal.ok()) return text_of(journal.error());
    std::optional<Error> error;
    for (std::uint32_t run = 0; run < 200'000 && !error; ++run) {
      Status s = journal.value()->append_and_wait(life_of(run));
      if (s.ok()) {
        ++committed;
      } else {
        error = s.error();
      }
    }
    if (!error) return "never full";
    text = text_of(*error);
    if (journal.value()->append_and_wait({}).ok()) return "not sticky";
    if (!journal.value()->failure()) return "no failure kept";
    if (journal.value()->close().ok()) return "closed without its error";
  }
  auto reader = JournalReader::open(file);
  if (!reader.ok()) return "unreadable afterwards: " + reader.error().detail;
  auto state = reader.value().load();
  if (!state.ok()) return "not loadable afterwards: " + state.error().detail;
  if (committed == 0 || state->ended.size() < committed) return "lost what it reported";
  return text;
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("a fact that contradicts the journal stops it and leaves it as it was") {
    struct Row {
      const char* what;
      JournalWrite fact;
    };
    AttemptResult other_report = result_of(attempt(1));
    other_report.report = sha256("another");
    AttemptResult second_outcome = result_of(attempt(2), RunOutcome::kFailure);
    const Row rows[] = {
        {"grant of an unknown attempt",
         AttemptGranted{attempt(9), WorkerId("w"), BootId(7), at(1)}},
        {"grant after the result", AttemptGranted{attempt(1), WorkerId("w"), BootId(7), at(1)}},
        {"denial after the grant", AttemptDenied{attempt(2), 0, ScopeId(0), micro(1), at(1)}},
        {"intent after the grant", AttemptIntent{attempt(2), 1, micro(1), at(1)}},
        {"result of an unknown attempt", result_of(attempt(9))},
        {"another report", other_report},
        {"another charge", AttemptSettled{attempt(1), micro(1), {}, micro(0), at(1)}},
        {"voiding a settled one", AttemptVoided{attempt(1), "x", at(1)}},
        {"losing a finished one", AttemptLost{attempt(1), "x", at(1)}},
        {"parking an ended run", RunParked{RunId(1), ScopeId(0), micro(1), at(1)}},
        {"a second outcome", RunEnded{RunId(1), attempt(1), RunOutcome::kFailure}},
        {"voiding one that was settled as it ran", AttemptVoided{attempt(3), "x", at(1)}},
        {"an ask that was overtaken", AttemptIntent{attempt(4), 1, micro(5), at(1)}},
        {"the same epoch", EpochBegun{Epoch(3), "h", 1, "v", at(1)}},
        {"an older epoch", EpochBegun{Epoch(2), "h", 1, "v", at(1)}},
        {"another cap", ScopeDefined{ScopeId(0), "global", micro(1)}},
        {"an unknown scope", RunParked{RunId(5), ScopeId(7), micro(1), at(1)}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const Folder folder;
      auto journal = folder.open();
      auto before = two_scopes();
      for (const JournalWrite& fact : life_of(1)) before.push_back(fact);
      before.push_back(AttemptIntent{attempt(2), 0, micro(5), at(1)});
      before.push_back(AttemptGranted{attempt(2), WorkerId("w"), BootId(7), at(2)});
      before.push_back(AttemptIntent{attempt(3), 0, micro(5), at(1)});
      before.push_back(AttemptGranted{attempt(3), WorkerId("w"), BootId(7), at(2)});
      before.push_back(AttemptSettled{attempt(3), micro(5), {}, micro(0), at(3)});
      before.push_back(AttemptIntent{attempt(4), 2, micro(5), at(1)});
      before.push_back(EpochBegun{Epoch(3), "h", 1, "v", at(1)});
      REQUIRE(journal->append_and_wait(before).ok());
      const Error error =
          error_of(journal->append_and_wait({MetaSet{"in the same batch", "1"}, row.fact}));
      CHECK(error.code == Errc::kCorrupt);
      CHECK(error_of(journal->append_and_wait({MetaSet{"later", "1"}})).detail == error.detail);
      CHECK(error_of(journal->close()).detail == error.detail);
      const RestoredState state = must(must(JournalReader::open(folder.file)).load());
      CHECK(state.meta.empty());
      CHECK(state.attempts.size() == 4);
      CHECK(state.attempts[0].charged == micro(1'234'567));
      CHECK(state.ended.size() == 1);
    }
  }

  TEST_CASE("a second coordinator is told who has the journal") {
    const Folder folder;
    auto first = folder.open();
    const Error error = error_of(Journal::open(folder.file));
    CHECK(error.code == Errc::kConflict);
    CHECK(error.detail.find("process " + std::to_string(::getpid()) + " on ") != std::string::npos);
    const std::string other = in_child([&] {
      auto second = Journal::open(folder.file);
      return second.ok() ? std::string("opened") : text_of(second.error());
    });
    CHECK(other.find("in use by process " + std::to_string(::getpid())) != std::string::npos);
    first.reset();
    CHECK(Journal::open(folder.file).ok());
  }

  TEST_CASE("one who is about to let go of the journal is waited for") {
    const Folder folder;
    auto first = folder.open();
    std::thread leaves([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      first.reset();
    });
    const auto second = Journal::open(folder.file);
    leaves.join();
    CHECK(second.ok());
  }

  TEST_CASE("files that are not journals of this version are refused with the reason") {
    const Folder folder;
    CHECK(error_of(JournalReader::open(folder.file)).code == Errc::kNotFound);
    CHECK(error_of(Journal::open(folder.dir.path() / "no" / "folder.db")).code == Errc::kNotFound);

    REQUIRE(write_file(folder.file, std::string(8192, 'x')).ok());
    CHECK(error_of(Journal::open(folder.file)).code == Errc::kCorrupt);
    CHECK(error_of(JournalReader::open(folder.file)).code == Errc::kCorrupt);

    const fs::path other = folder.dir.path() / "other.db";
    run_sql(other, "CREATE TABLE theirs(x)");
    const Error foreign = error_of(Journal::open(other));
    CHECK(foreign.code == Errc::kInvalid);
    CHECK(foreign.detail.find("not a Proctor journal") != std::string::npos);

    const fs::path newer = folder.dir.path() / "newer.db";
    REQUIRE(must(Journal::open(newer))->close().ok());
    run_sql(newer, "PRAGMA user_version = 8");
    for (const Error& error : {error_of(Journal::open(newer)), error_of(JournalReader::open(newer)),
                               error_of(check_journal(newer))}) {
      CHECK(error.code == Errc::kConflict);  // it is whole
      CHECK(error.detail.find("schema 8, written by a newer proctor; this one knows up to 7") !=
            std::string::npos);
    }
  }

  TEST_CASE("a journal of each older schema is read as it is and upgraded when it is written to") {
    for (const int schema : {1, 2, 3, 4, 5, 6}) {
      CAPTURE(schema);
      const Folder folder;
      REQUIRE(folder.open()->append_and_wait(life_of(1)).ok());
      // Its rows are those of older writers: a sentence says what became of the agent.
      run_sql(folder.file, ("UPDATE attempts SET rationale = 'the agent ended by itself: exit 3; "
                            "violations: 2 (protected: a)'; " +
                            testing::as_schema(3))
                               .c_str());
      REQUIRE(folder.open()->close().ok());
      const auto facts_in = [](JournalReader& reader) {
        std::vector<std::string> out;
        const auto keep = [&](const StoryFact& f) { out.push_back(f.fact + ": " + f.detail); };
        CHECK(reader.each_fact(std::nullopt, WallTime(0), keep).ok());
        return out;
      };
      const auto [before, facts] = [&] {
        JournalReader newest = must(JournalReader::open(folder.file));
        return std::pair(must(newest.head_until(at(70'000))), facts_in(newest));
      }();
      REQUIRE_FALSE(facts.empty());
      run_sql(folder.file, testing::as_schema(schema).c_str());
      {
        JournalReader reader = must(JournalReader::open(folder.file));
        REQUIRE(reader.hold().ok());
        const RestoredState state = must(reader.load());
        CHECK(state.ended.size() == 1);
        CHECK(state.reviews.empty());
        const AttemptRecord one = must(reader.attempts_of(RunId(1))).at(0);
        CHECK(one.core.charged == micro(1'234'567));
        CHECK(one.core.usage.agent_ms == 60'000);
        CHECK(one.facts.agent_exit == 3);
        CHECK(one.facts.violations == 2);
        CHECK(one.core.usage.priced_micros == (schema < 2 ? 0 : 987'654));
        CHECK(must(reader.last_fact()) == std::optional(at(66'020)));
        CHECK(must(reader.head_until(at(70'000))) == before);
        CHECK(must(reader.head()).has_value() == (4 <= schema));
        CHECK(must(reader.check_seals()).empty());
        CHECK(must(reader.keyed_seal()).has_value() == (5 <= schema));
        CHECK(must(reader.foreign_objects()).empty());
        CHECK(facts_in(reader) == facts);
        std::map<std::string, Json, std::less<>> rows;
        const auto keep = [&](std::string_view table, const Json& row) {
          rows[std::string(table)] = row;
        };
        CHECK(reader.each_row_of_all(keep).ok());
        CHECK(rows["attempts"]["charged"] == 1'234'567);
        CHECK(rows["attempts"].contains("metered"));
        CHECK(rows["attempts"].contains("not_judged"));
      }
      CHECK(must(check_journal(folder.file)).problems.empty());
      REQUIRE(folder.open()->append_and_wait(life_of(2)).ok());
      JournalReader reader = must(JournalReader::open(folder.file));
      CHECK(must(reader.attempts_of(RunId(1))).at(0).core.usage.agent_ms == 60'000);
      CHECK(must(reader.attempts_of(RunId(1))).at(0).facts.violated == "protected: a");
      CHECK(must(reader.attempts_of(RunId(2))).at(0).facts == result_of(attempt(2)).facts);
      CHECK(must(reader.attempts_of(RunId(2))).at(0).core.usage == result_of(attempt(2)).usage);
      CHECK(must(reader.foreign_objects()).empty());
    }
  }

  TEST_CASE("rows that nobody of us wrote are corrupt and named") {
    for (const char* sql :
         {"UPDATE attempts SET state = 'happy'", "UPDATE attempts SET outcome = ''",
          "UPDATE attempts SET seq = -1", "UPDATE runs SET state = 'x'",
          "UPDATE runs SET attempt = 5000000000"}) {
      CAPTURE(sql);
      const Folder folder;
      {
        auto journal = folder.open();
        REQUIRE(journal->append_and_wait(life_of(1)).ok());
      }
      run_sql(folder.file, sql);
      const Error error = error_of(must(JournalReader::open(folder.file)).load());
      CHECK(error.code == Errc::kCorrupt);
      CHECK(error.detail.find('1') != std::string::npos);
    }
  }

  TEST_CASE(
      "a folder that cannot be written is refused at once and an old journal stays readable") {
    const Folder folder;
    const fs::path sealed = folder.dir.path() / "sealed";
    REQUIRE(make_dirs(sealed).ok());
    {
      auto journal = must(Journal::open(sealed / "journal.db"));
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      REQUIRE(journal->close().ok());
    }
    fs::permissions(folder.dir.path(), fs::perms(0755));
    fs::permissions(sealed, fs::perms(0555));
    fs::permissions(sealed / "journal.db", fs::perms(0644));  // shown to others by its owner
    const std::string answer = in_child([&] {
      // Root may write everywhere; nobody may not.
      if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("cannot become nobody");
      auto fresh = Journal::open(sealed / "fresh.db");
      auto old = Journal::open(sealed / "journal.db");
      if (fresh.ok() || old.ok()) return std::string("opened");
      auto reader = JournalReader::open(sealed / "journal.db");
      if (!reader.ok()) return "reader: " + reader.error().detail;
      auto state = reader.value().load();
      if (!state.ok() || state->ended.size() != 1) return std::string("reader sees nothing");
      return std::string(to_string(fresh.error().code)) + " " +
             std::string(to_string(old.error().code));
    });
    CHECK(answer ==
          std::string(to_string(Errc::kInvalid)) + " " + std::string(to_string(Errc::kInvalid)));
    fs::permissions(sealed, fs::perms(0755));
  }

  TEST_CASE("a file size limit stops the journal and loses nothing that was reported") {
    const Folder folder;
    const std::string answer = in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{400'000, 400'000};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return std::string("no limit");
      return fill(folder.file);
    });
    CAPTURE(answer);
    CHECK(answer.find("journal: ") != std::string::npos);
    CHECK(answer.find("write failed") != std::string::npos);
  }

  TEST_CASE("a full disk stops the journal and loses nothing that was reported") {
    const Folder folder;
    const fs::path small = folder.dir.path() / "small";
    REQUIRE(make_dirs(small).ok());
    if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
      MESSAGE("not run: a small tmpfs cannot be mounted (" << std::strerror(errno) << ")");
      return;
    }
    const std::string answer = fill(small / "journal.db");
    CHECK(::umount2(small.c_str(), MNT_DETACH) == 0);
    CAPTURE(answer);
    CHECK(answer.starts_with(std::string(to_string(Errc::kExhausted))));
    CHECK(answer.find("full") != std::string::npos);
  }
}
