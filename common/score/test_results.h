#pragma once
// What a test harness says of its tests: ids and states, whatever format it wrote.  Pure data.
#include <cstddef>
#include <map>
#include <string>

#include "common/base/limits.h"

namespace proctor {

// Every test is in one of three states.  A failure to set a test up is a failure of the test; an
// expected failure (TAP: TODO) is a skip, since it proves nothing.
enum class TestStatus { kPass, kFail, kSkip };

struct TestResults {
  std::map<std::string, TestStatus> tests;

  // One id may be reported again (reruns, teardown errors): a failure stays, else the last holds.
  void add(std::string id, TestStatus status) {
    const auto [it, is_new] = tests.emplace(std::move(id), status);
    if (!is_new && it->second != TestStatus::kFail) it->second = status;
  }
};

// Bounds of a result file: the code under test may have had a hand in it.
inline constexpr std::size_t kResultFileBytes = limits::kResultFileBytes;
inline constexpr std::size_t kResultTests = 500'000;
inline constexpr std::size_t kTestIdBytes = 4096;

}  // namespace proctor
