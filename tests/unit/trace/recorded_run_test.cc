#include "common/trace/recorded_run.h"

#include <doctest/doctest.h>

#include "common/base/json_fields.h"

using namespace proctor;

namespace {
CheckReport check(const std::string& id, std::optional<CheckOutcome> outcome,
                  std::vector<std::string> failing = {}) {
  CheckReport out;
  out.id = id;
  out.outcome = outcome;
  out.why = "exit code 1";
  out.failing = std::move(failing);
  return out;
}
RunReport judged(RunOutcome outcome, CheckOutcome tests, std::vector<std::string> failing = {}) {
  RunReport out;
  out.outcome = outcome;
  out.checks = {check("syntax", CheckOutcome::kPass), check("tests", tests, std::move(failing))};
  out.gates = {{"patch", "pass", ""},
               {"functional", std::string(to_string(tests)), "tests"},
               {"safety", "pass", ""}};
  return out;
}
const RunReport kGood = judged(RunOutcome::kSuccess, CheckOutcome::kPass);
}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("equal verdicts are reproduced, however the agents ended") {
    RunReport again = kGood;
    again.termination = Termination::kAgentTimeout;
    again.rationale = "another";
    again.checks[1].wall_ms = 7;
    CHECK(differences(kGood, again).empty());
    CHECK(verdict_line({}) == "reproduced");
  }

  TEST_CASE("each check, gate and outcome that differs is named with both sides") {
    const RunReport bad = judged(RunOutcome::kFailure, CheckOutcome::kFail, {"t7", "t9"});
    const auto found = differences(kGood, bad);
    REQUIRE(found.size() == 3);
    CHECK(found[0] == VerdictDifference{"outcome", "success", "failure", ""});
    CHECK(found[1] == VerdictDifference{"check tests", "pass", "fail", "t7"});
    CHECK(found[2] == VerdictDifference{"gate functional", "pass", "fail", "tests"});
    CHECK(verdict_line(found) == "diverged: tests was pass, is fail (t7)");
    CHECK(differences(bad, kGood).size() == 3);
  }

  TEST_CASE("a check that one side lacks is a difference, and one that never ran has no outcome") {
    RunReport more = kGood;
    more.checks.push_back(check("lint", CheckOutcome::kPass));
    CHECK(differences(kGood, more) ==
          std::vector{VerdictDifference{"check lint", "absent", "pass", "exit code 1"}});
    CHECK(differences(more, kGood) ==
          std::vector{VerdictDifference{"check lint", "pass", "absent", ""}});
    RunReport never = kGood;
    never.checks[1].outcome.reset();
    CHECK(differences(kGood, never).front().is == "not_run");
  }

  TEST_CASE("without a check that differs the rest is named") {
    RunReport other = kGood;
    other.gates[0] = {"patch", "fail", "conflict markers"};
    CHECK(verdict_line(differences(kGood, other)) ==
          "diverged: gate patch was pass, is fail (conflict markers)");
  }

  TEST_CASE("violations of the agent's phase make no divergence, those of acceptance do") {
    RunReport was = kGood;
    was.violations = {"network: evil.org:443", "protected: tests/a.py"};
    was.gates[2] = {"safety", "fail", "2 violations"};
    RunReport is = kGood;
    CHECK(differences(was, is).empty());
    CHECK(left_to_agent(was, is) == std::vector<std::string>{"network: evil.org:443"});
    was.violations = {"protected: tests/a.py"};
    CHECK(differences(was, is) ==
          std::vector{VerdictDifference{"gate safety", "fail", "pass", ""}});
    CHECK(left_to_agent(was, is).empty());
  }

  TEST_CASE("tags of gates that acceptance decides are compared, those of the agent are not") {
    RunReport was = kGood;
    was.tags = {{"test.assertion", "functional", {4}, ""},
                {"safety.network", "safety", {5}, ""},
                {"run.timeout", "", {6}, ""}};
    CHECK(differences(was, kGood) ==
          std::vector{VerdictDifference{"tag test.assertion", "there", "absent", ""}});
    RunReport is = kGood;
    is.tags = {{"test.assertion", "functional", {9}, ""}};
    CHECK(differences(was, is).empty());
  }

  TEST_CASE("the facts of a run are those of its report and trace, and read back as they are") {
    RunReport report = kGood;
    report.patch = sha256("diff");
    report.application = {"three_way", "", {"a:3"}};
    events::Mutation mutation;
    mutation.files = 3;
    mutation.wall = std::chrono::milliseconds(9);
    mutation.memory_peak = 5;
    const RecordedRun made = recorded_run(report, sha256("report"), mutation);
    const auto read = parse_recorded_run(to_json(made).dump());
    REQUIRE(read.ok());
    CHECK(read->report == sha256("report"));
    CHECK(read->patch == sha256("diff"));
    CHECK(read->outcome == RunOutcome::kSuccess);
    CHECK(read->rung == "three_way");
    CHECK(read->misfit.empty());
    CHECK(read->mutation.files == 3);
    CHECK(read->mutation.wall.count() == 0);
    CHECK_FALSE(read->mutation.memory_peak);
    CHECK(parse_recorded_run("{}").error().code == Errc::kInvalid);
    CHECK_FALSE(parse_recorded_run("[").ok());
  }

  TEST_CASE("a patch that its method handed in for nothing fits by no rung again") {
    RunReport report = kGood;
    report.application = {"", "a.py: does not exist", {}};
    report.patch = sha256("");
    CHECK(recorded_run(report, {}, {}).misfit == "a.py: does not exist");
    // One that acceptance refused is there, and acceptance refuses it again.
    report.patch = sha256("diff");
    CHECK(recorded_run(report, {}, {}).misfit.empty());
  }
}
