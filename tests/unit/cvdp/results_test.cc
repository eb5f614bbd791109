#include "coordinator/cvdp/report/results.h"

#include <doctest/doctest.h>

#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
Record answered(const char* category, const char* reference) {
  std::vector<Finding> f;
  return check_record(
      json_of(std::string(R"({"id":"cvdp_copilot_a_0001","categories":[")") + category +
              R"(","easy"],"input":{"prompt":"p","context":{}},)" +
              R"("output":{"context":{},"response":")" + reference + R"("},"harness":{}})"),
      1, f);
}
std::string dockerfile(std::string_view text) {
  const auto read = read_dockerfile(text);
  if (!read) return "none";
  std::string out = read->only_from ? "only" : "built";
  for (const std::string& base : read->bases) out += " " + base;
  return out;
}
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("an end of a service becomes upstream's result, and what it cannot say a message") {
    struct Row {
      ServiceEnd end;
      std::int64_t result;
      const char* error;
    };
    const Row rows[] = {
        {{"exited", 0, 20, 1000, ""}, 0, ""},
        {{"exited", 7, 20, 1000, "exit 7"}, 7, ""},
        {{"exited", 137, 20, 1000, ""}, 137, ""},
        {{"timed_out", 0, 20, 600'000, "x"}, 1, "killed after 600 s, its time limit"},
        {{"memory", 137, 20, 1000, "memory"}, 137, "memory"},
        {{"disk", 137, 20, 1000, "used more of the disk"}, -9, "used more of the disk"},
        {{"signalled", 139, 20, 1000, "signal 11"}, 139, "signal 11"},
        {{"signalled", 0, 20, 1000, "signal 9"}, 137, "signal 9"},
        {{"cancelled", 0, 20, 1000, ""}, 1, "no verdict: cancelled"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.end.ended);
      const TestResult t = test_result(row.end);
      CHECK(t.result == row.result);
      CHECK(t.error.value_or("") == row.error);
      CHECK(t.seconds == doctest::Approx(0.02));
    }
  }

  TEST_CASE("an item has upstream's members and the sum of its results") {
    TestResult ok;
    ok.result = 0;
    ok.log = "/l/1.txt";
    ok.seconds = 0.5;
    TestResult bad;
    bad.result = 137;
    bad.error = "e";
    CHECK(
        write_json(item_json("cid003", "easy", {ok, bad})) ==
        R"({"category": "cid003", "difficulty": "easy", "tests": [{"result": 0, "log": "/l/1.txt", )"
        R"("error_msg": null, "execution": 0.5}, {"result": 137, "log": null, "error_msg": "e", )"
        R"("execution": 0.0}], "errors": 137})");
    CHECK(passes({ok}));
    CHECK_FALSE(passes({ok, bad}));
  }

  TEST_CASE("a golden answer in words is scored against itself and none fails") {
    const Record words = answered("cid006", "one two three four");
    const ScoredAnswer golden = score_answer(words, "one two three four");
    REQUIRE(golden.tests.size() == 2);
    CHECK(passes(golden.tests));
    CHECK(golden.tests[1].bleu == 1.0);
    CHECK_FALSE(golden.tests[0].bleu);
    CHECK(golden.logs[0].find("ROUGE: 1.0") != std::string::npos);
    const ScoredAnswer other = score_answer(words, "nothing of this kind");
    REQUIRE(other.tests.size() == 2);
    CHECK(other.tests[0].result == 2);
    CHECK(other.tests[1].result == 2);
    const ScoredAnswer none = score_answer(words, std::nullopt);
    REQUIRE(none.tests.size() == 1);
    CHECK(none.tests[0].error == "No content for subjective scoring");
    CHECK(score_answer(answered("cid006", "one"), "one").tests.size() == 1);
    const Record judged = answered("cid010", "one two three");
    CHECK(needs_judge(judged));
    CHECK_FALSE(score_answer(judged, "one two three").tests[1].bleu);
  }

  TEST_CASE("a problem is sound when its reference always passes and nothing else ever does") {
    CHECK(unsound({3, 3, ""}, {0, 3, ""}, 3).empty());
    CHECK(unsound({2, 3, ""}, {0, 3, ""}, 3) == "flaky: the reference passed 2 of 3");
    CHECK(unsound({0, 3, ""}, {0, 3, ""}, 3) == "the reference passed 0 of 3");
    CHECK(unsound({3, 3, ""}, {3, 3, ""}, 3) == "without any change 3 of 3 passed");
    CHECK(unsound({1, 3, ""}, {2, 3, ""}, 3) ==
          "flaky: the reference passed 1 of 3; flaky: without any change 2 of 3 passed");
    CHECK(unsound({2, 2, "lost"}, {0, 3, ""}, 3) == "no verdict: lost");
    CHECK(unsound({3, 3, ""}, {0, 0, "gone"}, 3) == "no verdict: gone");
  }

  TEST_CASE("a Dockerfile that only names its base needs no building") {
    CHECK(dockerfile("FROM sim:1\n") == "only sim:1");
    CHECK(dockerfile("# c\n\n  from --platform=linux/amd64 sim\r\n") == "only sim");
    CHECK(dockerfile("FROM sim AS a\nRUN make \\\n  FROM me\nFROM a\nFROM base\n") ==
          "built sim base");
    CHECK(dockerfile("FROM sim AS a\n") == "built sim");
    CHECK(dockerfile("FROM sim\nENV A=1\n") == "built sim");
    CHECK(dockerfile("ARG B\nFROM $B\n") == "none");
    CHECK(dockerfile("RUN x\n") == "none");
    // A blank of Unicode is none of Docker's: neither does a line go on, nor does FROM end.
    CHECK(dockerfile("FROM sim\nRUN x \\\u00A0\nFROM other\n") == "built sim other");
    CHECK(dockerfile("FROM\u00A0sim\n") == "none");
    CHECK(dockerfile("") == "none");
  }
}
