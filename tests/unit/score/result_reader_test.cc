#include "common/score/result_reader.h"

#include <doctest/doctest.h>

#include <vector>

#include "common/base/json.h"

using namespace proctor;

namespace {

constexpr auto kPass = CheckOutcome::kPass;
constexpr auto kFail = CheckOutcome::kFail;
constexpr auto kError = CheckOutcome::kError;

ExecFacts exited(int code) {
  return {.end = ExecEnd::kExited, .exit_code = code};
}
Check tap_check(std::vector<std::string> f2p, std::vector<std::string> p2p, bool others_may_fail) {
  Check c;
  c.id = "unit";
  c.reader = ResultReader::kTap;
  c.result_file = "out.tap";
  c.fail_to_pass = std::move(f2p);
  c.pass_to_pass = std::move(p2p);
  c.others_may_fail = others_may_fail;
  return c;
}

}  // namespace

TEST_SUITE("score") {
  TEST_CASE("an exit code alone is pass or fail unless the process did not complete") {
    Check check;
    struct Row {
      const char* what;
      ExecFacts facts;
      CheckOutcome expected;
    };
    const std::vector<Row> rows{
        {"zero", exited(0), kPass},
        {"one", exited(1), kFail},
        {"255", exited(255), kFail},
        {"125", exited(125), kFail},
        {"128", exited(128), kFail},
        {"160", exited(160), kFail},
        {"not executable", exited(126), kError},
        {"not found", exited(127), kError},
        {"aborted in a shell", exited(134), kError},
        {"killed in a shell", exited(137), kError},
        {"segfault in a shell", exited(139), kError},
        {"signal", {.end = ExecEnd::kSignalled, .signal = 11}, kError},
        {"time", {.end = ExecEnd::kTimedOut}, kError},
        {"memory", {.end = ExecEnd::kMemory}, kError},
        {"disk", {.end = ExecEnd::kDisk}, kError},
        {"cpu", {.end = ExecEnd::kCpu}, kError},
        {"cancelled", {.end = ExecEnd::kCancelled}, kError},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const CheckVerdict v = judge(check, row.facts, std::nullopt);
      CHECK(v.outcome == row.expected);
      CHECK_FALSE(v.why.empty());
    }
    CHECK(judge(check, {.end = ExecEnd::kTimedOut}, std::nullopt).why ==
          "took longer than 600000 ms");
  }

  TEST_CASE("required tests decide as the header says") {
    struct Row {
      const char* what;
      std::vector<std::string> f2p, p2p;
      bool others_may_fail;
      int exit_code;
      std::optional<std::string> file;
      CheckOutcome expected;
      const char* why;
    };
    const std::string good = "1..3\nok 1 - a\nok 2 - b\nok 3 - c\n";
    const std::string c_fails = "1..3\nok 1 - a\nok 2 - b\nnot ok 3 - c\n";
    const std::vector<Row> rows{
        {"all there", {"a"}, {"b"}, false, 0, good, kPass, "3 passed"},
        {"one failing",
         {"c"},
         {"a"},
         false,
         1,
         c_fails,
         kFail,
         "1 required test did not pass, first: c"},
        {"one failing and exit 0",
         {"c"},
         {"a"},
         true,
         0,
         c_fails,
         kFail,
         "1 required test did not pass, first: c"},
        {"an import error stopped collection",
         {"a", "x"},
         {},
         true,
         2,
         "1..1\nok 1 - a\n",
         kFail,
         "1 required test did not run, first: x; x did not run, nearest that did: a"},
        {"the suite vanished",
         {"a"},
         {"b"},
         true,
         0,
         "1..0\n",
         kFail,
         "2 required tests did not run, first: a"},
        {"skipped is not passed",
         {"a"},
         {},
         true,
         0,
         "1..1\nok 1 - a # SKIP\n",
         kFail,
         "1 required test did not pass, first: a"},
        {"another fails and may",
         {"a"},
         {"b"},
         true,
         1,
         c_fails,
         kPass,
         "every required test passed; 1 others may fail"},
        {"another fails and may not",
         {"a"},
         {"b"},
         false,
         1,
         c_fails,
         kFail,
         "1 failing, first: c"},
        {"another fails and may not, exit 0",
         {"a"},
         {"b"},
         false,
         0,
         c_fails,
         kFail,
         "1 failing, first: c"},
        {"exit 1 and others may fail",
         {"a"},
         {},
         true,
         1,
         good,
         kPass,
         "every required test passed"},
        {"exit 1 with nothing failing",
         {"a"},
         {},
         false,
         1,
         good,
         kFail,
         "exit code 1 although no test failed"},
        {"no required, all pass", {}, {}, false, 0, good, kPass, "3 passed"},
        {"no required, one fails", {}, {}, false, 0, c_fails, kFail, "1 failing, first: c"},
        {"no required, others may fail", {}, {}, true, 1, c_fails, kFail, "1 failing, first: c"},
        {"no required, no test", {}, {}, false, 0, "1..0\n", kFail, "no test ran"},
        {"no required, exit 1",
         {},
         {},
         false,
         1,
         good,
         kFail,
         "exit code 1 although no test failed"},
        {"no file",
         {"a"},
         {},
         true,
         0,
         std::nullopt,
         kError,
         "exit code 0 and no result file out.tap of at most 64 MiB"},
        {"half a file",
         {"a"},
         {},
         true,
         1,
         "1..3\nok 1 - a\n",
         kError,
         "TAP: planned 3 tests and ran 1"},
        {"empty file", {"a"}, {}, true, 1, "", kError, "TAP: no plan: the stream is not complete"},
        {"good file, missing tool",
         {"a"},
         {},
         true,
         127,
         good,
         kError,
         "exit code 127: a command was not found"},
        {"good file, crash",
         {"a"},
         {},
         true,
         139,
         good,
         kError,
         "exit code 139: killed by signal 11"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const CheckVerdict v =
          judge(tap_check(row.f2p, row.p2p, row.others_may_fail), exited(row.exit_code), row.file);
      CHECK(v.outcome == row.expected);
      CHECK(v.why == row.why);
      CHECK((v.outcome == kFail && v.why != "no test ran" && !v.why.starts_with("exit code")) ==
            (v.outcome == kFail && !v.failing.empty()));
    }
  }

  TEST_CASE("a timed-out check is an error whatever its file says") {
    const CheckVerdict v = judge(tap_check({"a"}, {}, true), {.end = ExecEnd::kTimedOut},
                                 "1..2\nok 1 - a\nnot ok 2 - b\n");
    CHECK(v.outcome == kError);
    CHECK(v.why == "took longer than 600000 ms");
    CHECK(v.passed == 1);
    CHECK(v.failed == 1);
  }

  TEST_CASE("names of tests that the judged code chose fill no report and no event log") {
    std::string file = "1..100\n";
    for (int i = 0; i < 100; ++i)
      file += "not ok - " + std::to_string(100 + i) + std::string(4'000, '"') + "\n";
    const CheckVerdict v = judge(tap_check({}, {}, false), exited(1), file);
    CHECK(v.outcome == kFail);
    CHECK(v.failed == 100);
    CHECK(!v.failing.empty());
    CHECK(Json(v.failing).dump().size() <= kFailingBytes + 100);
  }

  TEST_CASE("what fails is listed required first and bounded") {
    std::string file = "1..300\n";
    std::vector<std::string> required;
    for (int i = 0; i < 300; ++i) file += "not ok - t" + std::to_string(i) + "\n";
    for (int i = 0; i < 5; ++i) required.push_back("t" + std::to_string(200 + i));
    const CheckVerdict v = judge(tap_check(required, required, false), exited(1), file);
    CHECK(v.outcome == kFail);
    CHECK(v.failed == 300);
    REQUIRE(v.failing.size() == kFailingIdsMax);
    for (std::size_t i = 0; i < required.size(); ++i) CHECK(v.failing[i] == required[i]);
    CHECK(v.why == "5 required tests did not pass, first: t200");
  }

  TEST_CASE("a JUnit file is read as JUnit") {
    Check check = tap_check({"tests/a.py::test_x"}, {}, false);
    check.reader = ResultReader::kJunit;
    const std::string file =
        "<testsuite><testcase file='tests/a.py' classname='tests.a' name='test_x'/></testsuite>";
    CHECK(judge(check, exited(0), file).outcome == kPass);
    CHECK(judge(check, exited(0), file.substr(0, 60)).outcome == kError);
    CHECK(judge(check, exited(0), "1..1\nok - tests/a.py::test_x\n").outcome == kError);
  }

  TEST_CASE("a test of pytest is found under each of its names, in each form of its file") {
    const std::string cls = "classname='tests.test_a.TestX' name='test_y[a.b]'";
    const std::vector<std::string> files{
        "<testsuite><testcase " + cls + "/></testsuite>",  // xunit2, as pytest has it by itself
        "<testsuite><testcase file='tests/test_a.py' " + cls + "/></testsuite>",
        "<testsuite><testcase file='tests/base.py' " + cls + "/></testsuite>",  // inherited
    };
    for (const std::string& file : files)
      for (const char* id :
           {"tests/test_a.py::TestX::test_y[a.b]", "tests.test_a::TestX::test_y[a.b]",
            "tests.test_a.TestX::test_y[a.b]", "./tests/test_a.py::TestX::test_y[a.b]"}) {
        CAPTURE(file);
        CAPTURE(id);
        Check check = tap_check({id}, {}, false);
        check.reader = ResultReader::kJunit;
        CHECK(judge(check, exited(0), file).outcome == kPass);
      }
    for (const char* id : {"tests/test_a.py::TestX::test_y[a::b]", "tests/test_a.py::test_y[a.b]",
                           "tests/test_a.py::TestX::test_y", "test_a.py::TestX::test_y[a.b]"}) {
      CAPTURE(id);
      Check check = tap_check({id}, {}, true);
      check.reader = ResultReader::kJunit;
      for (const std::string& file : files) CHECK(judge(check, exited(0), file).outcome == kFail);
    }
    // A required test that fails under its other name is no other test that may fail.
    const CheckVerdict v = judge(tap_check({"tests/test_a.py::x"}, {}, false), exited(1),
                                 "1..1\nnot ok - tests.test_a::x\n");
    CHECK(v.why == "1 required test did not pass, first: tests/test_a.py::x");
    CHECK(v.failing == std::vector<std::string>{"tests/test_a.py::x"});
  }

  TEST_CASE("a name that two tests share finds neither, and their ids do") {
    const std::string file = "1..2\nok - a.b::c\nnot ok - a::b::c\n";
    CHECK(judge(tap_check({"a/b.py::c"}, {}, true), exited(0), file).outcome == kFail);
    CHECK(judge(tap_check({"a.b::c"}, {}, true), exited(0), file).outcome == kPass);
    CHECK(judge(tap_check({"a::b::c"}, {}, true), exited(0), file).outcome == kFail);
  }

  TEST_CASE("an id that did not run is beside the nearest that did") {
    const std::string file =
        "1..6\nok - pkg/tests/test_a.py::test_sum\nok - pkg/tests/test_b.py::test_sum\n"
        "ok - pkg/tests/test_a.py::test_zero\nok - other\nok - more\n"
        "ok - tests/test_a.py::test_su # SKIP\n";
    const CheckVerdict v =
        judge(tap_check({"tests/test_a.py::test_sum"}, {}, true), exited(0), file);
    CHECK(
        v.why ==
        "1 required test did not run, first: tests/test_a.py::test_sum; tests/test_a.py::test_sum "
        "did not run, nearest that did: pkg/tests/test_a.py::test_sum, "
        "pkg/tests/test_b.py::test_sum, pkg/tests/test_a.py::test_zero");
  }
}
