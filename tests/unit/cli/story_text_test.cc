#include "coordinator/cli/story.h"

#include <doctest/doctest.h>

using namespace proctor;
using namespace proctor::cli;

TEST_SUITE("story") {
  TEST_CASE("a moment or how long ago is understood") {
    constexpr WallTime kNow(1'000'000'000'000);
    const struct {
      const char* text;
      std::int64_t ms;
    } rows[] = {{"2001-09-09T01:46:40Z", 1'000'000'000'000},
                {"2001-09-09T01:46:40", 1'000'000'000'000},
                {"2001-09-09 01:46:40.25Z", 1'000'000'000'250},
                {"2001-09-09T03:46:40.123456+02:00", 1'000'000'000'123},
                {"2001-09-08T20:16:40-05:30", 1'000'000'000'000},
                {"1970-01-01", 0},
                {"90s", 999'999'910'000},
                {"15m", 999'999'100'000},
                {"2h", 999'992'800'000},
                {"3d", 999'740'800'000},
                {"0s", 1'000'000'000'000}};
    for (const auto& row : rows) {
      CAPTURE(row.text);
      const auto since = parse_since(row.text, kNow);
      REQUIRE(since.ok());
      CHECK(since->raw() == row.ms);
    }
    for (const char* wrong :
         {"", "x", "5", "-5s", "5w", "2001-02-30T00:00:00Z", "2001-09-09T25:00:00Z", "2001-09-09T",
          "2001-09-09T01:46:40+2", "2001-09-09T01:46:40Zx", "99999999999999999999s"}) {
      CAPTURE(wrong);
      CHECK_FALSE(parse_since(wrong, kNow).ok());
    }
  }

  TEST_CASE("a fact is a sentence with its cause") {
    StoryFact fact{WallTime(1), RunId(3), AttemptNo(1), "lost", "worker build7 is gone"};
    CHECK(sentence_of(fact, "USD") == "lost: worker build7 is gone");
    fact.fact = "operator";
    fact.detail = R"({"act":"cancel","by":"Ada","selected":"noop","reason":"the key leaked"})";
    CHECK(sentence_of(fact, "USD") == "operator Ada: cancel noop: the key leaked");
    fact.detail = "not json";
    CHECK(sentence_of(fact, "USD") == "operator: not json");
    fact.fact = "something_new";
    fact.detail = "with\x1b[2J escapes";
    CHECK(sentence_of(fact, "USD") == "something_new: with\\x1b[2J escapes");
    fact.detail = R"({"worker":"build7","failures":3})";
    CHECK(sentence_of(fact, "USD") == "something_new: failures 3, worker build7");
    fact.fact = "drain";
    fact.detail = "signal";
    CHECK(sentence_of(fact, "USD") == "interrupted: what runs is finished, nothing starts");
  }
}
