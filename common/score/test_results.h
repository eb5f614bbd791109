#pragma once
// What a test harness says of its tests: ids and states, whatever format it wrote.  Pure data.
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/limits.h"

namespace proctor {

// Every test is in one of three states.  A failure to set a test up is a failure of the test; an
// expected failure (TAP: TODO) is a skip, since it proves nothing.
enum class TestStatus { kPass, kFail, kSkip };

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

}  // namespace proctor
