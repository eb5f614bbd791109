#pragma once
// The tests of a check as its harness reports them: ids and states, whatever format it wrote.
// Pure; any thread.
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// Every test is in one of three states.  A failure to set a test up is a failure of the test; an
// expected failure (TAP: TODO) is a skip, since it proves nothing.
enum class TestStatus { kPass, kFail, kSkip };
constexpr auto words(TestStatus) {
  return std::to_array<Word<TestStatus>>(
      {{"pass", TestStatus::kPass}, {"fail", TestStatus::kFail}, {"skip", TestStatus::kSkip}});
}

// One spelling for the forms in which pytest's tests are named: module and classes with dots, then
// "::" and the test.  tests/test_a.py::TestX::test_y[a.b], tests.test_a::TestX::test_y[a.b] and
// tests.test_a.TestX::test_y[a.b] all give the last.
std::string test_name(std::string_view id);

struct TestResults {
  std::map<std::string, TestStatus> tests;  // by the id as the format gives it

  // Adds a test; `name` is another id of the same test, if it has one.  One id may be reported
  // again (reruns, teardown errors): a failure stays, else the last holds.
  void add(std::string id, TestStatus status, std::string_view name = {});

  // The test with this id, else the only one of the same test_name(); end() if there is none.
  std::map<std::string, TestStatus>::const_iterator find(const std::string& id) const;

  // At most `count` ids of tests that ran, the most like `id` first.
  std::vector<std::string> nearest(std::string_view id, std::size_t count) const;

 private:
  std::map<std::string, std::string> by_name_;  // test_name() to id; empty if several tests have it
};

// Bounds of a result file: the code under test may have had a hand in it.
inline constexpr std::size_t kResultFileBytes = limits::kResultFileBytes;
inline constexpr std::size_t kResultTests = 500'000;
inline constexpr std::size_t kTestIdBytes = 4096;

// JUnit XML as pytest (xunit1, xunit2), Maven Surefire, GoogleTest, CTest and others write it.
// Hostile input: at most kResultFileBytes of UTF-8, a million tags, depth 64, kResultTests tests,
// no document type and so no entities but the five of XML.
//
// The id of a <testcase>, in order:
//   file="tests/test_a.py" classname="tests.test_a.TestX" name="test_y"
//                                   tests/test_a.py::TestX::test_y  (dots of the rest become ::)
//   classname="com.acme.FooTest" name="bar"                  com.acme.FooTest::bar
//   name="bar"                                               bar
// A test with a file is also found by classname and name: pytest tells no file in its usual form.
// State: <failure> or <error> inside: fail; <skipped>, or status "notrun" or "disabled": skip;
// else pass (a <flakyFailure> of a rerun that passed is a pass).

// kInvalid, with what is wrong: not well-formed (a cut file is not), another root than
// <testsuites> or <testsuite>, a test without a name, a bound that was passed.
Result<TestResults> parse_junit(std::string_view bytes);

// TAP, version 13 (testanything.org); version 14 where it does not differ (its subtests, being
// indented, are read as diagnostics of the test that follows them).
//   TAP version 13      optional, first
//   1..4                the plan, once, before or after all tests; "1..0 # SKIP why" is no test
//   ok 1 - parses # SKIP no network
//   not ok 2 - prints
//   Bail out! no memory
// The id of a test is its description; without one it is its number.  SKIP and a failing TODO are
// skips.  Other lines are ignored, as TAP asks.  Hostile input: at most kResultFileBytes of UTF-8,
// lines of 64 KiB, kResultTests tests.

// kInvalid: a stream that is not complete (no plan, another number of tests than planned, a number
// twice or beyond the plan, a bail-out, a last line without its '\n') or passes a bound.
Result<TestResults> parse_tap(std::string_view bytes);
}  // namespace proctor
