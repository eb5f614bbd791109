#include "common/score/test_results.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace proctor;

namespace {

using Map = std::map<std::string, TestStatus>;
constexpr auto kPass = TestStatus::kPass;
constexpr auto kFail = TestStatus::kFail;
constexpr auto kSkip = TestStatus::kSkip;

// What pytest -o junit_family=xunit1 writes, all variants of its identifiers.
constexpr std::string_view kXunit1 = R"(<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="7" time="0.03">
<testcase classname="tests.test_a" name="test_plain" file="tests/test_a.py" line="3" time="0.001" />
<testcase classname="tests.test_a.TestX" name="test_in_class" file="tests/test_a.py" line="7" time="0.001"><failure message="assert 1 == 2">def &lt;x&gt;</failure></testcase>
<testcase classname="tests.test_a.TestX.TestInner" name="test_deep[a-b]" file="tests/test_a.py" line="9" time="0.001"><skipped type="pytest.skip" message="no">x</skipped></testcase>
<testcase classname="tests.test_b.TestY" name="test_inherited" file="tests/base.py" line="9" time="0.001" />
<testcase classname="" name="tests.test_broken" file="tests/test_broken.py" time="0.0"><error message="collection failure">ImportError</error></testcase>
<testcase classname="tests.test_a" name="test_teardown" file="tests/test_a.py" line="1" time="0.0" />
<testcase classname="tests.test_a" name="test_teardown" file="tests/test_a.py" line="1" time="0.0"><error message="failed on teardown" /></testcase>
</testsuite></testsuites>)";

Map read(std::string_view bytes) {
  const Result<TestResults> r = parse_junit(bytes);
  CAPTURE(r.ok() ? std::string() : r.error().detail);
  REQUIRE(r.ok());
  return r->tests;
}
std::string refusal(std::string_view bytes) {
  const Result<TestResults> r = parse_junit(bytes);
  return r.ok() ? "accepted" : r.error().detail;
}
std::string suite(const std::string& inside) {
  return "<testsuite>" + inside + "</testsuite>";
}

}  // namespace

TEST_SUITE("score") {
  TEST_CASE("pytest ids with a file are file and class and name") {
    CHECK(read(kXunit1) == Map{{"tests/test_a.py::test_plain", kPass},
                               {"tests/test_a.py::TestX::test_in_class", kFail},
                               {"tests/test_a.py::TestX::TestInner::test_deep[a-b]", kSkip},
                               {"tests/base.py::tests::test_b::TestY::test_inherited", kPass},
                               {"tests/test_broken.py::tests.test_broken", kFail},
                               {"tests/test_a.py::test_teardown", kFail}});
  }

  TEST_CASE("ids without a file are class and name as they are written") {
    CHECK(read(suite(R"(<testcase classname="com.acme.FooTest" name="bar"/>
                        <testcase classname="github.com/a/b/v2" name="TestX/y"/>
                        <testcase name="alone" file=""/>
                        <testcase classname="parser" name="parser"/>)")) ==
          Map{{"com.acme.FooTest::bar", kPass},
              {"github.com/a/b/v2::TestX/y", kPass},
              {"alone", kPass},
              {"parser::parser", kPass}});
  }

  TEST_CASE("the states of other harnesses are understood") {
    CHECK(read(suite(R"(<testcase name="disabled" status="notrun"/>
                        <testcase name="ctest" status="disabled"/>
                        <testcase name="flaky"><flakyFailure message="x"/></testcase>
                        <testcase name="error"><system-out>x</system-out><error/></testcase>
                        <testcase name="run" status="run"/>
                        <properties><property name="failure"/></properties>)")) ==
          Map{{"disabled", kSkip},
              {"ctest", kSkip},
              {"flaky", kPass},
              {"error", kFail},
              {"run", kPass}});
    CHECK(read("<testsuites><testsuite><testsuite><testcase name='x'/></testsuite></testsuite>"
               "</testsuites>") == Map{{"x", kPass}});
    CHECK(read("\xEF\xBB\xBF<?xml version='1.0'?><!-- c --><testsuites/>").empty());
    CHECK(
        read(
            suite("<testcase name='x'><system-out><![CDATA[<a><b <!-- ]]></system-out></testcase>"))
            .size() == 1);
  }

  TEST_CASE("what failed of a suite alone is a failure, and a test inside another's output none") {
    CHECK(read("<testsuites><testsuite name='db'><error message='no server'/><testcase name='x'/>"
               "</testsuite></testsuites>") == Map{{"db (suite)", kFail}, {"x", kPass}});
    CHECK(read("<testsuites><failure/></testsuites>") == Map{{" (suite)", kFail}});
    CHECK(refusal(suite("<testcase name='x'><system-out><testcase name='y'/></system-out>"
                        "</testcase>"))
              .find("a <testcase> inside <system-out>") != std::string::npos);
  }

  TEST_CASE("a test reported twice is failed if it ever failed") {
    CHECK(read(suite("<testcase name='x'><failure/></testcase><testcase name='x'/>")).at("x") ==
          kFail);
    CHECK(read(suite("<testcase name='x'><skipped/></testcase><testcase name='x'/>")).at("x") ==
          kPass);
  }

  TEST_CASE("every truncation of a result file is refused") {
    for (std::size_t n = 0; n < kXunit1.size(); ++n) {
      CAPTURE(n);
      CHECK_FALSE(parse_junit(kXunit1.substr(0, n)).ok());
    }
  }

  TEST_CASE("no single changed byte brings the parser down") {
    for (std::size_t i = 0; i < kXunit1.size(); ++i) {
      for (const char c : {'<', '>', '"', '&', '\0', '\xFF', '/', '!'}) {
        std::string broken(kXunit1);
        broken[i] = c;
        const Result<TestResults> r = parse_junit(broken);
        if (r.ok()) CHECK(r->tests.size() < 10);
      }
    }
  }

  TEST_CASE("hostile documents are refused by name") {
    CHECK(refusal("") != "accepted");
    CHECK(refusal("not xml") != "accepted");
    CHECK(refusal("<html/>") == "JUnit XML: the root is <html>, not <testsuites> or <testsuite>");
    CHECK(refusal("<testsuite/><testsuite/>") == "JUnit XML: a second root <testsuite>");
    CHECK(refusal("<testsuite/>tail") != "accepted");
    CHECK(refusal(suite("<testcase/>")) == "JUnit XML: a <testcase> without a name");
    CHECK(refusal("<!DOCTYPE t [<!ENTITY a \"b\">]><testsuite/>") ==
          "JUnit XML: a document type declaration; none is read");
    CHECK(refusal(std::string("<testsuite/>\0", 13)) == "JUnit XML: a NUL byte");
    CHECK(refusal(suite("<testcase name='\xFF'/>")) == "JUnit XML: not UTF-8");
    CHECK(refusal(suite("<testcase name='" + std::string(5000, 'x') + "'/>")) ==
          "JUnit XML: a test id of 5000 bytes");
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += "<testsuite>";
    CHECK(refusal(deep) == "JUnit XML: nested deeper than 64");
    std::string wide = "<testsuite>";
    for (int i = 0; i < 1'000'001; ++i) wide += "<a/>";
    CHECK(refusal(wide + "</testsuite>") == "JUnit XML: more than a million tags");
    std::string attributes = "<testsuite";
    for (int i = 0; i < 4'000'001; ++i) attributes += " a=''";
    CHECK(refusal(attributes + "/>") == "JUnit XML: too many attributes");
    CHECK(refusal(std::string(kResultFileBytes + 1, ' ')).starts_with("JUnit XML: 67108865 bytes"));
    CHECK(refusal("<testsuite><![CDATA[") == "JUnit XML: ends inside <![CDATA[");
  }
}
