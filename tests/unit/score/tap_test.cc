#include "common/score/test_results.h"

#include <doctest/doctest.h>

#include <string>

using namespace proctor;

namespace {

using Map = std::map<std::string, TestStatus>;
constexpr auto kPass = TestStatus::kPass;
constexpr auto kFail = TestStatus::kFail;
constexpr auto kSkip = TestStatus::kSkip;

Map read(std::string_view bytes) {
  const Result<TestResults> r = parse_tap(bytes);
  CAPTURE(r.ok() ? std::string() : r.error().detail);
  REQUIRE(r.ok());
  return r->tests;
}
std::string refusal(std::string_view bytes) {
  const Result<TestResults> r = parse_tap(bytes);
  return r.ok() ? "accepted" : r.error().detail;
}

constexpr std::string_view kStream =
    "TAP version 13\n"
    "1..8\n"
    "# a comment\n"
    "ok 1 - parses\n"
    "not ok 2 - prints\n"
    "  ---\n"
    "  message: \"ok 7 - not a test\"\n"
    "  ...\n"
    "ok 3 - network # SKIP none here\n"
    "not ok 4 - later # TODO not written\r\n"
    "ok 5 - early # todo works already\n"
    "ok 6\n"
    "ok - issue \\#12 and a#b\n"
    "some output of the program\n"
    "okay, this is no test\n"
    "    not ok 1 - subtest\n"
    "ok 8 2nd try\n";

}  // namespace

TEST_SUITE("score") {
  TEST_CASE("a TAP stream becomes tests and states") {
    CHECK(read(kStream) == Map{{"parses", kPass},
                               {"prints", kFail},
                               {"network", kSkip},
                               {"later", kSkip},
                               {"early", kPass},
                               {"6", kPass},
                               {"issue #12 and a#b", kPass},
                               {"2nd try", kPass}});
  }

  TEST_CASE("the plan may come last and may be of no test") {
    CHECK(read("ok 1 - a\nnot ok 2 - a\n1..2\n") == Map{{"a", kFail}});
    CHECK(read("1..0 # SKIP no compiler\n").empty());
    CHECK(read("ok 2 - b\nok 1 - a\n1..2\n").size() == 2);
  }

  TEST_CASE("every truncation of a stream is refused") {
    for (std::size_t n = 0; n < kStream.size(); ++n) {
      CAPTURE(n);
      CHECK_FALSE(parse_tap(kStream.substr(0, n)).ok());
    }
  }

  TEST_CASE("streams that are not complete or not TAP are refused by name") {
    CHECK(refusal("") == "TAP: no plan: the stream is not complete");
    CHECK(refusal("ok 1 - a\n") == "TAP: no plan: the stream is not complete");
    CHECK(refusal("1..1\nok 1 - a") == "TAP: the last line has no end");
    CHECK(refusal("1..2\nok 1 - a\n") == "TAP: planned 2 tests and ran 1");
    CHECK(refusal("1..1\nok 1\nok 2\n") == "TAP: planned 1 tests and ran 2");
    CHECK(refusal("1..1\nok 2\n") == "TAP: test number 2 beyond the plan");
    CHECK(refusal("1..2\nok 1\nok 1\n") == "TAP: test number 1 twice or zero (line 3)");
    CHECK(refusal("1..1\nok 0\n") == "TAP: test number 0 twice or zero (line 2)");
    CHECK(refusal("1..1\n1..1\nok\n") == "TAP: a second plan (line 2)");
    CHECK(refusal("1..x\n") == "TAP: a plan that is not 1..N (line 1)");
    CHECK(refusal("1..-1\n") == "TAP: a plan that is not 1..N (line 1)");
    CHECK(refusal("1..99999999999999999999\n") == "TAP: a plan that is not 1..N (line 1)");
    CHECK(refusal("1..600000\n") == "TAP: a plan of 600000 tests (line 1)");
    CHECK(refusal("1..2\nok 1\nBail out! disk\n") == "TAP: bailed out: disk (line 3)");
    CHECK(refusal("1..1\nok 1 - \xFF\n") == "TAP: not UTF-8");
    CHECK(refusal(std::string(70'000, 'x') + "\n") == "TAP: line 1 is longer than 64 KiB");
    CHECK(refusal("ok 1 - " + std::string(5000, 'x') + "\n") ==
          "TAP: a description beyond 4096 bytes (line 1)");
  }
}
