// The keyed seal and heads: rows and seals that are rewritten together are found.
#include <sys/stat.h>

#include <cstdlib>

#include "common/base/text.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/seals.h"
#include "tests/integration/journal/sql.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;
using journal::SealVerdict;

namespace {

// A host of its own: nothing was ever sealed on it.
struct Host {
  Host() : before(std::getenv("XDG_STATE_HOME") == nullptr ? "" : std::getenv("XDG_STATE_HOME")) {
    be();
  }
  ~Host() { ::setenv("XDG_STATE_HOME", before.c_str(), 1); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  void be() const { ::setenv("XDG_STATE_HOME", dir.path().c_str(), 1); }
  HostKey key() const { return must(HostKey::read(dir.path() / "proctor/seal.key")); }
  TempDir dir = must(TempDir::create("proctor-host"));
  std::string before;
};

SealVerdict verdict(const Folder& folder, const Host& host) {
  JournalReader reader = must(JournalReader::open(folder.file));
  return must(reader.check_keyed_seal(host.key())).verdict;
}

void write_some(const Folder& folder, std::uint32_t from = 0,
                const std::string& campaign = "camp-1") {
  const auto journal = folder.open();
  REQUIRE(journal->append_and_wait({MetaSet{kMetaCampaign, campaign}}).ok());
  if (from == 0) REQUIRE(journal->append_and_wait(two_scopes()).ok());
  for (std::uint32_t r = from; r < from + 30; ++r)
    REQUIRE(journal->append_and_wait(life_of(r)).ok());
}

// As somebody does it who has read the code: the block's seal is made again over the changed rows.
void rewrite(const Folder& folder, const std::string& sql) {
  run_sql(folder.file, sql.c_str());
  auto db = must(sqlite::Database::open(folder.file, sqlite::Database::Mode::kCreate));
  const journal::Blocks blocks = must(journal::seal_all(db));
  REQUIRE(db.exec("DELETE FROM seals").ok());
  REQUIRE(journal::store_seals(db, blocks).ok());
}

JournalHead head_of(const Folder& folder) {
  JournalReader reader = must(JournalReader::open(folder.file));
  return must(reader.head_until(*must(reader.last_fact())));
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("rows and seals that were rewritten together do not fit the host's key") {
    for (const char* sql :
         {"UPDATE attempts SET outcome = 'failure' WHERE run = 17",
          "UPDATE attempts SET charged = charged - 1 WHERE run = 3",
          "DELETE FROM attempts WHERE run = 5", "UPDATE runs SET outcome = 'failure' WHERE run = 2",
          "INSERT INTO notes(at_ms, kind, detail) VALUES(5, 'x', '{}')",
          "UPDATE scopes SET cap = cap + 1 WHERE id = 0",
          "UPDATE workers SET name = 'w' WHERE id = 1", "UPDATE keyed_seal SET rows = rows + 1",
          "UPDATE keyed_seal SET commits = commits - 1", "UPDATE keyed_seal SET since_ms = 0",
          "UPDATE keyed_seal SET mac = zeroblob(32)", "UPDATE keyed_seal SET sum = zeroblob(32)",
          "UPDATE keyed_seal SET sum = x'00'"}) {
      CAPTURE(sql);
      const Host host;
      const Folder folder;
      write_some(folder);
      CHECK(verdict(folder, host) == SealVerdict::kFits);
      rewrite(folder, sql);
      CHECK(must(must(JournalReader::open(folder.file)).check_seals()).empty());
      CHECK(verdict(folder, host) == SealVerdict::kBroken);
      // No later coordinator vouches for it.
      write_some(folder, 100);
      CHECK(verdict(folder, host) == SealVerdict::kBroken);
    }
  }

  TEST_CASE("a keyed seal that was taken away or given another key is missed") {
    for (const std::string& sql :
         {std::string("DELETE FROM keyed_seal"), std::string("UPDATE keyed_seal SET key = 'abc'"),
          testing::as_schema(4)}) {
      CAPTURE(sql);
      const Host host;
      const Folder folder;
      write_some(folder);
      run_sql(folder.file, sql.c_str());
      CHECK(verdict(folder, host) == SealVerdict::kTaken);
      write_some(folder, 100);
      CHECK(verdict(folder, host) == SealVerdict::kTaken);
    }
  }

  TEST_CASE("a journal from before the keyed seal gets one, over what is there then") {
    const Host host;
    const Folder folder;
    write_some(folder);
    run_sql(folder.file, testing::as_schema(4).c_str());
    fs::remove(host.dir.path() / "proctor/sealed.campaigns");
    CHECK(verdict(folder, host) == SealVerdict::kNone);
    write_some(folder, 100);
    CHECK(verdict(folder, host) == SealVerdict::kFits);
    CHECK(must(must(JournalReader::open(folder.file)).load()).ended.size() == 60);
    rewrite(folder, "UPDATE attempts SET cpu_ms = 1 WHERE run = 0");
    CHECK(verdict(folder, host) == SealVerdict::kBroken);
  }

  TEST_CASE("another host says that it cannot tell, and seals anew once it writes") {
    const Folder folder;
    const Host one;
    write_some(folder);
    const Host two;
    write_some(Folder(), 0, "camp-2");  // makes its key
    CHECK(verdict(folder, two) == SealVerdict::kOtherKey);
    write_some(folder, 100);
    CHECK(verdict(folder, two) == SealVerdict::kFits);
    CHECK(verdict(folder, one) == SealVerdict::kTaken);
  }

  TEST_CASE("the key is made once, private, and refused when it is not") {
    const Host host;
    write_some(Folder());
    const fs::path file = host.dir.path() / "proctor/seal.key";
    struct stat st {};
    REQUIRE(::stat(file.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777U) == 0600U);
    REQUIRE(::stat(file.parent_path().c_str(), &st) == 0);
    CHECK((st.st_mode & 0777U) == 0700U);
    const std::string id = host.key().key().id();
    write_some(Folder());
    CHECK(host.key().key().id() == id);
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    CHECK(error_of(HostKey::read(file)).code == Errc::kInvalid);
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
    REQUIRE(write_file(file, "short\n", Durability::kLazy, 0600).ok());
    CHECK(error_of(HostKey::read(file)).code == Errc::kInvalid);
  }

  TEST_CASE("a pipe in the place of what the host remembers is refused, and nobody waits for it") {
    const Host host;
    write_some(Folder());
    for (const char* name : {"sealed.campaigns", "begun.campaigns"}) {
      const fs::path list = host.dir.path() / "proctor" / name;
      fs::remove(list);
      REQUIRE(::mkfifo(list.c_str(), 0600) == 0);
    }
    const Status sealed = host.key().remember("some-campaign"), begun = remember_begun("another");
    REQUIRE_FALSE(sealed.ok());
    CHECK(sealed.error().code == Errc::kInvalid);
    REQUIRE_FALSE(begun.ok());
    CHECK(begun.error().code == Errc::kInvalid);
  }

  TEST_CASE("a journal that goes on extends every head that was taken of it") {
    const Host host;
    const Folder folder;
    std::vector<JournalHead> heads;
    for (std::uint32_t life = 0; life < 3; ++life) {
      write_some(folder, life * 100);
      const auto journal = folder.open();
      // Later facts have later times: that is how they are told apart.
      std::vector<JournalWrite> facts = life_of(1000 + life);
      REQUIRE(journal->append_and_wait(facts).ok());
      REQUIRE(journal->append_and_wait({Note{at(100'000 + life), "drain", {}, {}, "{}"}}).ok());
      REQUIRE(journal->close().ok());
      if (life == 2) heads.push_back(head_of(folder));
    }
    JournalHead head = heads.back();
    CHECK(must(parse_head(to_string(head))) == head);
    sign(head, host.key().key());
    CHECK(must(parse_head(to_string(head) + "\n")) == head);
    CHECK(is_signed_by(head, host.key().key()));
    {
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait({Note{at(200'000), "later", {}, {}, "{}"}}).ok());
      REQUIRE(journal->append_and_wait({AttemptIntent{attempt(5000), 0, micro(7), at(1)}}).ok());
    }
    JournalReader reader = must(JournalReader::open(folder.file));
    const JournalHead now = must(reader.head_until(head.until));
    CHECK(now.digest == head.digest);
    CHECK(now.facts == head.facts);
    CHECK(head_of(folder).facts == head.facts + 1);
    ++head.facts;
    CHECK_FALSE(is_signed_by(head, host.key().key()));
    for (const char* bad : {"", "x", "proctor-head-1", "proctor-head-1 c 1 2 zz",
                            "proctor-head-2 c 1 2 3", "proctor-head-1  1 2 3"})
      CHECK(error_of(parse_head(bad)).code == Errc::kInvalid);
  }

  TEST_CASE("rows that were rewritten before a head do not extend it, whoever holds the key") {
    for (const char* sql : {"UPDATE attempts SET outcome = 'failure' WHERE run = 17",
                            "UPDATE attempts SET charged = charged - 1 WHERE run = 3",
                            "UPDATE attempts SET result_ms = result_ms + 900000 WHERE run = 4",
                            "DELETE FROM attempts WHERE run = 5", "DELETE FROM notes WHERE seq = 1",
                            "UPDATE notes SET detail = '{ }'",
                            "UPDATE meta SET value = 'other' WHERE key = "
                            "'campaign'",
                            "INSERT INTO epochs VALUES(9, 'h', 1, 'v', 5)",
                            "UPDATE workers SET name = 'w' WHERE id = 1"}) {
      CAPTURE(sql);
      const Host host;
      const Folder folder;
      write_some(folder);
      REQUIRE(folder.open()->append_and_wait({Note{at(100'000), "drain", {}, {}, "{}"}}).ok());
      const JournalHead head = head_of(folder);
      rewrite(folder, sql);
      JournalReader reader = must(JournalReader::open(folder.file));
      const JournalHead now = must(reader.head_until(head.until));
      CHECK(now != head);
    }
  }
}
