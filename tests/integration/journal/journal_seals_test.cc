#include "common/base/text.h"
#include "tests/integration/journal/sql.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

std::vector<std::string> broken(const Folder& folder) {
  return must(must(JournalReader::open(folder.file)).check_seals());
}
std::string head(const Folder& folder) {
  return must(must(JournalReader::open(folder.file)).head())->hex();
}

// Every kind of write: rows that are new, changed once more, and taken away.
void write_much(const Folder& folder) {
  for (std::uint32_t life = 0; life < 2; ++life) {
    const auto journal = folder.open();
    REQUIRE(journal->append_and_wait(two_scopes()).ok());
    REQUIRE(
        journal->append_and_wait({EpochBegun{Epoch(life + 1), "host", 42, "0.1.0", at(0)}}).ok());
    for (std::uint32_t r = 0; r < 40; ++r)
      REQUIRE(journal->append_and_wait(life_of(life * 100 + r)).ok());
    REQUIRE(journal
                ->append_and_wait({RunParked{RunId(60), ScopeId(1), micro(5), at(9)},
                                   Note{at(1), "drain", RunId(3), {}, "signal"}})
                .ok());
    REQUIRE(journal->append_and_wait({RunUnparked{RunId(60)}}).ok());
    REQUIRE(journal->append_and_wait({AttemptIntent{attempt(70), life, micro(7), at(1)}}).ok());
  }
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("the rows of a journal that nobody touched are as they were sealed") {
    const Folder folder;
    write_much(folder);
    CHECK(broken(folder).empty());
    const std::string before = head(folder);
    REQUIRE(folder.open()->append_and_wait(life_of(300)).ok());
    CHECK(broken(folder).empty());
    CHECK(head(folder) != before);
  }

  TEST_CASE("a batch that was refused leaves the seals as they were") {
    const Folder folder;
    write_much(folder);
    {
      const auto journal = folder.open();
      CHECK_FALSE(
          journal->append_and_wait({Note{at(1), "x", {}, {}, ""}, result_of(attempt(999))}).ok());
    }
    CHECK(broken(folder).empty());
  }

  TEST_CASE("a trigger that somebody put into a journal does nothing and is named") {
    const Folder folder;
    write_much(folder);
    const auto foreign = [&] {
      return must(must(JournalReader::open(folder.file)).foreign_objects());
    };
    CHECK(foreign().empty());
    run_sql(folder.file,
            "CREATE TRIGGER cheaper AFTER UPDATE ON attempts BEGIN UPDATE attempts SET charged = 0 "
            "WHERE run = NEW.run; END");
    REQUIRE(folder.open()->append_and_wait(life_of(300)).ok());
    CHECK(first_text(folder.file, "SELECT charged FROM attempts WHERE run = 300") == "1234567");
    CHECK(broken(folder).empty());
    REQUIRE(foreign().size() == 1);
    CHECK(foreign()[0].starts_with("a trigger cheaper that no proctor made"));
    run_sql(folder.file, "DROP TRIGGER cheaper");
    CHECK(foreign().empty());
  }

  TEST_CASE("any row that is changed or added or taken away is found, and its place is named") {
    struct Change {
      const char* sql;
      const char* found;
    };
    for (const Change& change : std::initializer_list<Change>{
             {"UPDATE attempts SET rationale = 'x' WHERE run = 17",
              "attempts, runs 16 to 31: a row is not"},
             {"UPDATE attempts SET boot = NULL WHERE run = 100",
              "attempts, runs 96 to 111: a row is not"},
             {"DELETE FROM runs WHERE run = 5", "runs, runs 0 to 15: 15 rows, but 16 were written"},
             {"INSERT INTO runs(run, state) VALUES(60, 'parked')",
              "runs, runs 48 to 63: 1 rows, but 0"},
             {"UPDATE notes SET detail = 'nobody' WHERE seq = 1",
              "notes, notes 0 to 255: a row is not"},
             {"UPDATE epochs SET host = 'there' WHERE epoch = 2", "table epochs: a row is not"},
             {"UPDATE workers SET name = 'w' WHERE id = 1", "table workers: a row is not"},
             {"INSERT INTO meta(key, value) VALUES('a', 'b')", "table meta: "},
             {"UPDATE scopes SET cap = cap + 1 WHERE id = 0", "table scopes: a row is not"},
             {"DELETE FROM seals WHERE part = 'workers'",
              "table workers: 4 rows, but 0 were written"},
             {"UPDATE seals SET rows = rows - 1 WHERE part = 'epochs'",
              "table epochs: 2 rows, but 1"},
         }) {
      CAPTURE(change.sql);
      const Folder folder;
      write_much(folder);
      run_sql(folder.file, change.sql);
      const std::vector<std::string> found = broken(folder);
      REQUIRE(found.size() == 1);
      CHECK_MESSAGE(found[0].find(change.found) != std::string::npos, found[0]);
    }
  }

  TEST_CASE("a journal of schema 3 is sealed when it is written to") {
    const Folder folder;
    write_much(folder);
    run_sql(folder.file, testing::as_schema(3).c_str());
    CHECK(broken(folder).empty());
    CHECK_FALSE(must(must(JournalReader::open(folder.file)).head()).has_value());
    REQUIRE(folder.open()->append_and_wait(life_of(300)).ok());
    CHECK(first_text(folder.file, "PRAGMA user_version") == "7");
    CHECK(broken(folder).empty());
    run_sql(folder.file, "UPDATE attempts SET cpu_ms = 1 WHERE run = 0");
    CHECK(broken(folder).size() == 1);
  }

  TEST_CASE("a reader that holds the journal sees one state of it, whatever is written") {
    const Folder folder;
    write_much(folder);
    JournalReader held = must(JournalReader::open(folder.file));
    REQUIRE(held.hold().ok());
    const auto journal = folder.open();  // sooner than any read of it
    REQUIRE(journal->append_and_wait(life_of(300)).ok());
    const auto rows = [](JournalReader& reader) {
      std::size_t count = 0;
      must(reader.each_attempt([&](const AttemptRecord&) { ++count; }));
      return count;
    };
    JournalReader now = must(JournalReader::open(folder.file));
    CHECK(rows(now) == rows(held) + 1);
    CHECK(must(now.load()).ended.size() == must(held.load()).ended.size() + 1);
    CHECK(must(now.head())->hex() != must(held.head())->hex());
    CHECK(must(held.check_seals()).empty());
    CHECK(must(now.check_seals()).empty());
    // SQLite waits a minute for readers when the journal is closed.
    { const JournalReader ended = std::move(held); }
  }
}
