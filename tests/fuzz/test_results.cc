// JUnit XML and TAP, in whose writing the code under test may have had a hand: bounded ids, and a
// file that cannot be read never makes a check pass.
#include "common/score/test_results.h"
#include "common/base/text.h"
#include "common/score/result_reader.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::test_results {

void check_reader(ResultReader reader, const Result<TestResults>& read, std::string_view bytes) {
  Check check;
  check.id = "unit";
  check.reader = reader;
  check.fail_to_pass = {"a"};
  const CheckVerdict verdict = judge(check, ExecFacts{}, std::string(bytes));
  PROCTOR_ASSERT(verdict.failing.size() <= kFailingIdsMax);
  PROCTOR_ASSERT(verdict.why.find('\n') == std::string::npos);
  if (!read.ok()) {
    PROCTOR_ASSERT(verdict.outcome == CheckOutcome::kError);
    PROCTOR_ASSERT(!read.error().detail.empty());
    return;
  }
  const auto required = read->find("a");
  if (verdict.outcome == CheckOutcome::kPass)
    PROCTOR_ASSERT(required != read->tests.end() && required->second == TestStatus::kPass);
  for (const auto& [id, status] : read->tests) {
    PROCTOR_ASSERT(!id.empty() && id.size() <= kTestIdBytes);
    PROCTOR_ASSERT(is_utf8(id));
  }
}

void target(std::string_view bytes) {
  check_reader(ResultReader::kJunit, parse_junit(bytes), bytes);
  check_reader(ResultReader::kTap, parse_tap(bytes), bytes);
}

}  // namespace proctor::fuzz::test_results
