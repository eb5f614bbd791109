#include "common/trace/run_report.h"

#include <doctest/doctest.h>

#include <limits>

#include "sample_run.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using proctor::testing::sample_report;
using testing::at_pointer;

TEST_SUITE("trace") {
  TEST_CASE("a report binds what acted on its run, and has no word of it where nothing did") {
    RunReport r = sample_report();
    CHECK_FALSE(parse_json(report_bytes(r))->contains("interventions"));
    r.interventions = {{7, "throttle", "spend_rate"}, {12, "cancel", "the disk was full"}};
    const std::string bytes = report_bytes(r);
    const Result<RunReport> back = parse_report(bytes);
    REQUIRE(back.ok());
    CHECK(back->interventions == r.interventions);
    CHECK(report_bytes(*back) == bytes);
  }

  TEST_CASE("a report reads back as it was written") {
    RunReport r = sample_report();
    r.checks[0].outcome.reset();
    r.checks[0].stdout_digest = sha256("x");
    r.checks[1].failing = {"a::b", "c::d"};
    r.checks[1].exit_code = -1;
    r.violations = {"tests/x.py: changed"};
    r.deviations = {"seed 1337: comparison with an earlier study"};
    r.files = {{"events.jsonl", 12, sha256("y")}};
    r.replayable = false;
    const std::string bytes = report_bytes(r);
    CHECK(bytes.back() == '\n');
    const Result<RunReport> back = parse_report(bytes);
    REQUIRE(back.ok());
    CHECK(*back == r);
    CHECK(report_bytes(*back) == bytes);
  }

  TEST_CASE("a report with bad text and huge numbers is still written and still readable") {
    RunReport r = sample_report();
    r.rationale = "bad \xFF byte";
    r.checks[0].why = std::string(100'000, 'x');
    r.usage.cpu_ms = std::numeric_limits<std::uint64_t>::max();
    r.started_ms = std::numeric_limits<std::int64_t>::min();
    const Result<RunReport> back = parse_report(report_bytes(r));
    REQUIRE(back.ok());
    CHECK(back->rationale == "bad \\xff byte");
    CHECK(back->checks[0].why.size() < 5000);
    CHECK(back->usage.cpu_ms == (std::uint64_t{1} << 53) - 1);
  }

  TEST_CASE("text of any length that is none is written as a report that reads back") {
    RunReport r = sample_report();
    for (std::size_t bytes = 1'000; bytes < 1'060; ++bytes)
      r.violations.push_back("refused: " + std::string(bytes, '\xFF'));
    for (std::size_t bytes = 4'070; bytes < 4'130; ++bytes) {
      r.violations.push_back(std::string(bytes, 'x') + "\xFF");
      r.violations.push_back(std::string(bytes, 'x') + "\xE2\x80\xAE\xFF");
      r.violations.emplace_back(bytes, 'x');
    }
    const std::string bytes = report_bytes(r);
    const Result<RunReport> back = parse_report(bytes);
    REQUIRE_MESSAGE(back.ok(), (back.ok() ? "" : back.error().detail));
    CHECK(report_bytes(*back) == bytes);
  }

  TEST_CASE("counters that older reports do not have are read as none, and written where any is") {
    RunReport r = sample_report();
    r.usage.overruns = 3;
    const std::string old = report_bytes(r);
    CHECK(old.find("cached_input") == std::string::npos);
    CHECK(parse_report(old).value().usage == r.usage);
    r.usage.refused_calls = 2;
    const std::string now = report_bytes(r);
    CHECK(now.find("\"cached_input\":0") != std::string::npos);
    CHECK(parse_report(now).value().usage == r.usage);
  }

  TEST_CASE("no byte of a report can change without its digest changing or its parser refusing") {
    const std::string bytes = report_bytes(sample_report());
    const RunReport original = *parse_report(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string broken = bytes;
      broken[i] = static_cast<char>(broken[i] ^ 1);
      const Result<RunReport> r = parse_report(broken);
      if (r.ok()) CHECK_FALSE(*r == original);
    }
    for (std::size_t n = 0; n < bytes.size(); n += 17)
      CHECK_FALSE(parse_report(std::string_view(bytes).substr(0, n)).ok());
  }

  TEST_CASE("the error names the field that is wrong") {
    struct Row {
      const char* pointer;
      Json value;
      const char* expected;
    };
    const std::vector<Row> rows{
        {"/format", "x", "format: expected proctor-report-1"},
        {"/identity/run", -1, "identity.run: expected a whole number, found number"},
        {"/identity/attempt", 5'000'000'000,
         "identity.attempt: 5000000000 is more than 4294967295"},
        {"/identity/contract", "abc", "identity.contract: expected 64 lower-case hex digits"},
        {"/outcome", "won", "outcome: expected success, failure, acceptance_error or invalid"},
        {"/status", "invalid", "status: expected scorable"},
        {"/termination/code", "bored",
         "termination.code: expected completed, agent_timeout, budget_exceeded, resource_limit, "
         "policy_stop, operator_cancel, infrastructure, agent_unavailable, breaker or "
         "model_overloaded"},
        {"/checks/1/outcome", "maybe", "checks[1].outcome: expected pass, fail or error"},
        {"/checks/0/tests", 1, "checks[0].tests: expected an object, found number"},
        {"/cost/total_micros", 59, "cost.total_micros: expected 58"},
        {"/usage/extra", 1, "usage.extra: unknown field"},
        {"/violations", {1}, "violations[0]: expected text, found number"},
        {"/replayable", "yes", "replayable: expected true or false, found string"},
        {"/started_ms", 0.5, "started_ms: expected an integer, found number"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.pointer);
      Json json = *parse_json(report_bytes(sample_report()));
      at_pointer(json, row.pointer) = row.value;
      const Result<RunReport> r = parse_report(json.dump());
      REQUIRE_FALSE(r.ok());
      CHECK(r.error().detail == row.expected);
    }
  }
}
