#pragma once
// JUnit XML as pytest (xunit1, xunit2), Maven Surefire, GoogleTest, CTest and others write it.
// Pure; any thread.  Hostile input: at most kResultFileBytes of UTF-8, a million tags, depth 64,
// kResultTests tests, no document type and so no entities but the five of XML.
//
// The id of a <testcase>, in order:
//   file="tests/test_a.py" classname="tests.test_a.TestX" name="test_y"
//                                   tests/test_a.py::TestX::test_y  (dots of the rest become ::)
//   classname="com.acme.FooTest" name="bar"                  com.acme.FooTest::bar
//   name="bar"                                               bar
// A test with a file is also found by classname and name: pytest tells no file in its usual form.
// State: <failure> or <error> inside: fail; <skipped>, or status "notrun" or "disabled": skip;
// else pass (a <flakyFailure> of a rerun that passed is a pass).
#include <string_view>

#include "common/base/result.h"
#include "common/score/test_results.h"

namespace proctor {

// kInvalid, with what is wrong: not well-formed (a cut file is not), another root than
// <testsuites> or <testsuite>, a test without a name, a bound that was passed.
Result<TestResults> parse_junit(std::string_view bytes);

}  // namespace proctor
