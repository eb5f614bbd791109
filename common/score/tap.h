#pragma once
// TAP, version 13 (testanything.org); version 14 where it does not differ (its subtests, being
// indented, are read as diagnostics of the test that follows them).  Pure; any thread.
//   TAP version 13      optional, first
//   1..4                the plan, once, before or after all tests; "1..0 # SKIP why" is no test
//   ok 1 - parses # SKIP no network
//   not ok 2 - prints
//   Bail out! no memory
// The id of a test is its description; without one it is its number.  SKIP and a failing TODO are
// skips.  Other lines are ignored, as TAP asks.  Hostile input: at most kResultFileBytes of UTF-8,
// lines of 64 KiB, kResultTests tests.
#include <string_view>

#include "common/base/result.h"
#include "common/score/test_results.h"

namespace proctor {

// kInvalid: a stream that is not complete (no plan, another number of tests than planned, a number
// twice or beyond the plan, a bail-out, a last line without its '\n') or passes a bound.
Result<TestResults> parse_tap(std::string_view bytes);

}  // namespace proctor
