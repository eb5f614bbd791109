// Reviews in the journal: sealed one with the other, so that none can be changed or taken away.
#include "coordinator/journal/seals.h"
#include "tests/integration/journal/sql.h"
#include "tests/integration/journal/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

RunReviewed review(std::uint32_t seq, std::int64_t charged = 9'600'000) {
  return {seq, RunId(1), 12'000, micro(charged), "Ada", "reads \"the\" diff\n", at(100 + seq)};
}

Error load_error(const Folder& folder) {
  return error_of(must(JournalReader::open(folder.file)).load());
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("reviews are read back in order and count in the balance") {
    const Folder folder;
    {
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      REQUIRE(journal->append_and_wait({review(1), review(2, 5)}).ok());
      // The same fact twice leaves the same rows.
      REQUIRE(journal->append_and_wait({review(1), review(2, 5)}).ok());
    }
    const RestoredState state = must(must(JournalReader::open(folder.file)).load());
    CHECK(state.reviews == std::vector<RunReviewed>{review(1), review(2, 5)});
    CHECK(first_text(folder.file, "SELECT spent FROM balance") == "10834572");
    CHECK(first_text(folder.file,
                     "SELECT detail FROM attempt_story WHERE fact = 'reviewed' LIMIT 1") ==
          "12000 thousandths of a minute by Ada, charged 9600000 micro-dollars");
    const Digest first = must(seal_of(Digest(), review(1)));
    const Digest second = must(seal_of(first, review(2, 5)));
    CHECK(first_text(folder.file, "SELECT value FROM meta WHERE key = 'reviews'") ==
          "2 " + second.hex());
  }

  TEST_CASE("a review is told once, and an act of another time all the same") {
    const Folder folder;
    const RunReviewed booked = review(1);
    {
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      const std::string act = R"({"act":"review","by":"Ada","reason":""})";
      REQUIRE(journal
                  ->append_and_wait(
                      {Note{booked.at, "operator", booked.run, {}, act}, booked,
                       Note{WallTime(booked.at.raw() + 1), "operator", booked.run, {}, act},
                       Note{booked.at,
                            "operator",
                            booked.run,
                            {},
                            R"({"act":"pause","reason":"\"act\":\"review\""})"}})
                  .ok());
    }
    for (const std::optional<RunId>& only :
         {std::optional<RunId>(), std::optional<RunId>(booked.run)}) {
      std::string told;
      REQUIRE(must(JournalReader::open(folder.file))
                  .each_fact(only, WallTime(0),
                             [&](const StoryFact& fact) {
                               if (fact.fact == "reviewed" || fact.fact == "operator")
                                 told += fact.fact + " ";
                             })
                  .ok());
      CHECK(told == "reviewed operator operator ");
    }
  }

  TEST_CASE("a review that contradicts the ones before it is refused") {
    for (const RunReviewed& wrong : {review(1, 7), review(3), RunReviewed{}}) {
      CAPTURE(wrong.seq);
      const Folder folder;
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait(life_of(1)).ok());
      REQUIRE(journal->append_and_wait({review(1)}).ok());
      const Status refused = journal->append_and_wait({wrong});
      REQUIRE(!refused.ok());
      CHECK(refused.error().code == Errc::kCorrupt);
    }
  }

  TEST_CASE("a review that was changed or taken away is corrupt") {
    for (const char* sql :
         {"UPDATE reviews SET charged = charged - 1 WHERE seq = 1",
          "UPDATE reviews SET milli_minutes = 1 WHERE seq = 2", "UPDATE reviews SET run = 2",
          "UPDATE reviews SET reviewer = 'Eve'", "UPDATE reviews SET note = '' WHERE seq = 2",
          "UPDATE reviews SET at_ms = at_ms + 1 WHERE seq = 2",
          "UPDATE reviews SET seal = zeroblob(32) WHERE seq = 1",
          "DELETE FROM reviews WHERE seq = 1", "DELETE FROM reviews WHERE seq = 2",
          "DELETE FROM reviews", "DELETE FROM meta WHERE key = 'reviews'",
          "UPDATE reviews SET seq = 3 WHERE seq = 2", "UPDATE reviews SET charged = -1",
          "UPDATE reviews SET seal = zeroblob(3)"}) {
      CAPTURE(sql);
      const Folder folder;
      {
        const auto journal = folder.open();
        REQUIRE(journal->append_and_wait(life_of(1)).ok());
        REQUIRE(journal->append_and_wait({review(1), review(2)}).ok());
      }
      run_sql(folder.file, sql);
      CHECK(load_error(folder).code == Errc::kCorrupt);
    }
  }

  TEST_CASE("a journal of schema 2 has no reviews and gets them when it is written to") {
    const Folder folder;
    REQUIRE(folder.open()->append_and_wait(life_of(1)).ok());
    run_sql(folder.file, testing::as_schema(2).c_str());
    CHECK(must(must(JournalReader::open(folder.file)).load()).reviews.empty());
    {
      const auto journal = folder.open();
      REQUIRE(journal->append_and_wait({review(1)}).ok());
    }
    CHECK(must(must(JournalReader::open(folder.file)).load()).reviews.size() == 1);
    CHECK(first_text(folder.file, "SELECT spent FROM balance") == "10834567");
    CHECK(first_text(folder.file, "PRAGMA user_version") == "7");
  }
}
