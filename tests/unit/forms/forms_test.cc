// Forms that are one text: what they say, that their counts agree with what is in them, and that
// what others wrote stays text in each.
#include "coordinator/forms/forms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <pugixml.hpp>
#include <sstream>
#include <string>

#include "common/base/json.h"
#include "coordinator/aggregate/details.h"
#include "tests/support/json_schema.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

CampaignReport built(ReportInput input) {
  CampaignReport report = detailed(std::move(input));
  report.journal_head = "0123456789abcdef";
  return report;
}

pugi::xml_document xml(const std::string& text) {
  pugi::xml_document doc;
  const pugi::xml_parse_result parsed =
      doc.load_buffer(text.data(), text.size(), pugi::parse_full | pugi::parse_ws_pcdata);
  REQUIRE_MESSAGE(parsed, parsed.description());
  return doc;
}

std::size_t with_child(const pugi::xml_node& suite, const char* name) {
  std::size_t n = 0;
  for (const pugi::xml_node& c : suite.children("testcase")) n += c.child(name) ? 1 : 0;
  return n;
}

// What the head of each suite says is what its cases show, and of all suites what the sum is.
void check_counts(const pugi::xml_document& doc) {
  const pugi::xml_node all = doc.child("testsuites");
  std::size_t tests = 0;
  for (const pugi::xml_node& suite : all.children("testsuite")) {
    const auto cases = suite.children("testcase");
    const auto n = static_cast<std::size_t>(std::distance(cases.begin(), cases.end()));
    tests += n;
    CHECK(suite.attribute("tests").as_ullong() == n);
    CHECK(suite.attribute("failures").as_ullong() == with_child(suite, "failure"));
    CHECK(suite.attribute("errors").as_ullong() == with_child(suite, "error"));
    CHECK(suite.attribute("skipped").as_ullong() == with_child(suite, "skipped"));
  }
  CHECK(all.attribute("tests").as_ullong() == tests);
}

// Controls, marks, markup of every form, and characters that no XML may hold.
const std::string kHostile =
    "</testcase>]]>\"'&`a`|b| @everyone #1 https://example.org <script>\x01\x1b[31m\xe2\x80\xae"
    "\xef\xbf\xbf\xef\xbf\xbe\n\xff";

ReportInput hostile_campaign() {
  Runs runs;
  for (const char* task : {"a", "b", "c"}) {
    runs.ended(task, kHostile, kHostile, RunOutcome::kFailure).rationale = kHostile;
    RunRecord& broke = runs.ended(task, kHostile, kHostile, RunOutcome::kSuccess);
    broke.violations = 1;
    broke.violated = kHostile;
    runs.ended(task, kHostile, "plain", RunOutcome::kSuccess);
  }
  ReportInput input{kHostile, "USD", {"language"}, std::move(runs.records), 0.05};
  input.contrasts = {{kHostile, "plain"}};
  input.deviations = {kHostile};
  input.approvals = {kHostile};
  input.alerts = {kHostile};
  return input;
}

}  // namespace

TEST_SUITE("forms") {
  TEST_CASE("JUnit has a suite per method and a case per run, and its counts agree") {
    const std::string text = render_junit(built(small_campaign()));
    const pugi::xml_document doc = xml(text);
    check_counts(doc);
    const pugi::xml_node alpha =
        doc.child("testsuites").find_child_by_attribute("testsuite", "name", "alpha");
    CHECK(alpha.attribute("tests").as_int() == 8);
    CHECK(alpha.attribute("failures").as_int() == 1);
    CHECK(alpha.attribute("errors").as_int() == 2);  // an acceptance error, an invalid run
    CHECK(alpha.attribute("skipped").as_int() == 2);
    CHECK(std::string(alpha.attribute("time").value()) == "16.000");
    const pugi::xml_node timeout =
        alpha.find_child([](const pugi::xml_node& n) { return bool(n.child("failure")); });
    CHECK(std::string(timeout.child("failure").attribute("type").value()) == "agent_timeout");
    CHECK(std::string(timeout.attribute("classname").value()) == "alpha.cli");
    CHECK(std::string(timeout.attribute("time").value()) == "9.500");
    const pugi::xml_node parked =
        alpha.find_child([](const pugi::xml_node& n) { return bool(n.child("skipped")); });
    CHECK(std::string(parked.child("skipped").attribute("message").value()) ==
          "parked: stage:main is short by 0.250001");
    // Removed and cancelled runs count against nobody.
    const pugi::xml_node beta =
        doc.child("testsuites").find_child_by_attribute("testsuite", "name", "beta");
    CHECK(beta.attribute("skipped").as_int() == 3);
  }

  TEST_CASE("a run that passed and broke its contract does not pass a gate") {
    ReportInput input = small_campaign();
    input.runs[0].violations = 1;
    input.runs[0].violated = "protected: tests/a.py";
    const pugi::xml_document doc = xml(render_junit(built(std::move(input))));
    check_counts(doc);
    const pugi::xml_node first = doc.child("testsuites").child("testsuite").child("testcase");
    CHECK(std::string(first.child("failure").attribute("type").value()) == "unsatisfied");
    CHECK(std::strstr(first.child("failure").attribute("message").value(), "tests/a.py") !=
          nullptr);
    for (const auto& [end, patch] : {std::pair{Termination::kCompleted, "conflict_markers"},
                                     std::pair{Termination::kPolicyStop, "whitespace"}}) {
      input = small_campaign();
      input.runs[0].termination = end;
      input.runs[0].patch = patch;
      const CampaignReport report = built(input);
      CHECK(report.total.satisfied + 1 == report.total.success);
      check_counts(xml(render_junit(report)));
    }
  }

  TEST_CASE("a case has its gates, score and failure modes, and a failure names the gate") {
    using enum GateOutcome;
    ReportInput input = small_campaign();
    input.runs[0].gates = {kPass, kPass, kPass, kPass};
    input.runs[0].score = 0.763265329856;
    input.runs[3].gates = {kPass, kPass, kFail, kPass};
    input.runs[3].tags = "functional.tests_failed";
    input.runs[3].old_outcome = RunOutcome::kSuccess;
    const pugi::xml_document doc = xml(render_junit(built(std::move(input))));
    check_counts(doc);
    const auto property = [](const pugi::xml_node& node, const char* name) {
      return std::string(node.child("properties")
                             .find_child_by_attribute("property", "name", name)
                             .attribute("value")
                             .value());
    };
    const pugi::xml_node suite = doc.child("testsuites").child("testsuite");
    const pugi::xml_node first = suite.child("testcase");
    CHECK(property(first, "gate.safety") == "pass");
    CHECK(property(first, "score") == "0.763265329856");
    const pugi::xml_node failed =
        suite.find_child([](const pugi::xml_node& n) { return bool(n.child("failure")); });
    CHECK(property(failed, "gate.functional") == "fail");
    CHECK(property(failed, "tags") == "functional.tests_failed");
    CHECK(property(failed, "old_outcome") == "success");
    CHECK(property(first, "old_outcome").empty());
    CHECK(std::strstr(failed.child("failure").attribute("message").value(),
                      "gate functional: fail") != nullptr);
  }

  TEST_CASE("each run has a record by its schema, in the plan's order") {
    using enum GateOutcome;
    ReportInput input = small_campaign();
    input.runs[0].gates = {kPass, kPass, kPass, kPass};
    input.runs[0].score = 0.763265329856;
    input.runs[0].configuration = "0123456789abcdef";
    input.runs[3].gates = {kPass, kPass, kFail, kError};
    input.runs[3].tags = "functional.tests_failed,evaluation.error";
    input.runs[3].networked = true;
    input.runs[3].old_outcome = RunOutcome::kAcceptanceError;
    input.runs[3].method = kHostile;
    input.runs[3].strata = {kHostile};
    const JsonSchema schema("run_record");
    const std::string text = render_run_records(built(input), {{"lib", sha256("lib")}});
    std::vector<Json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      const Result<Json> json = parse_json(line);
      REQUIRE_MESSAGE(json.ok(), line);
      CHECK(schema.violations(*json) == "");
      lines.push_back(*json);
    }
    REQUIRE(lines.size() == input.runs.size());
    CHECK(lines[0]["run"] == Json(0));
    CHECK(lines[0]["endpoint"] == Json(1));
    CHECK(lines[0]["score"] == Json("0.763265329856"));
    CHECK(lines[0]["satisfied"] == Json(true));
    CHECK(lines[0]["replayable"] == Json(true));
    CHECK(lines[0]["contract"] == Json(sha256("lib").hex()));
    CHECK(lines[0]["cost"]["total_micros"] == Json(100'008));
    CHECK(lines[3]["gates"]["safety"] == Json("error"));
    CHECK(lines[3]["tags"] == Json::array({"functional.tests_failed", "evaluation.error"}));
    CHECK(lines[3]["satisfied"] == Json(false));
    CHECK(lines[3]["old_outcome"] == Json("acceptance_error"));
    CHECK_FALSE(lines[0].contains("old_outcome"));
    CHECK(lines[0]["tags"] == Json::array());
    CHECK(text.starts_with(R"({"attempt":1,"attempts":1,"campaign":")"));
    CHECK(lines[3]["replayable"] == Json(false));
    CHECK(lines[3]["endpoint"] == Json(0));
    CHECK(lines[5]["status"] == Json("invalid"));  // an older worker's, and no verdict
    CHECK(lines[5]["gates"].is_null());
    CHECK(lines[5]["endpoint"].is_null());
    CHECK(lines[6]["state"] == Json("parked"));
    CHECK(lines[6]["outcome"].is_null());
  }

  TEST_CASE("a case per task is as bad as the worst of its runs") {
    const pugi::xml_document doc = xml(render_junit(built(small_campaign()), JunitCases::kTasks));
    check_counts(doc);
    const pugi::xml_node alpha =
        doc.child("testsuites").find_child_by_attribute("testsuite", "name", "alpha");
    REQUIRE(alpha.attribute("tests").as_int() == 2);
    const pugi::xml_node cli = alpha.child("testcase");
    CHECK(std::string(cli.attribute("name").value()) == "cli");
    CHECK(std::string(cli.child("failure").attribute("message").value()) ==
          "1 of 3 ended runs passed, 1 failed, 1 ended in an error or invalid");
    const pugi::xml_node lib = cli.next_sibling("testcase");
    CHECK(lib.child("error"));
    CHECK_FALSE(lib.child("failure"));
  }

  TEST_CASE("more runs than a test report can have cases become a case per task") {
    Runs runs;
    for (int t = 0; t < 3; ++t)
      for (std::size_t r = 0; r < kJunitCasesMax / 3 + 1; ++r) {
        RunRecord& run = runs.add("task-" + std::to_string(t), "go", "alpha");
        run.state = RunRecord::State::kEnded;
        run.outcome = RunOutcome::kSuccess;
      }
    ReportInput input{"big", "USD", {"language"}, std::move(runs.records), 0.05};
    const pugi::xml_document doc = xml(render_junit(build_report(std::move(input))));
    check_counts(doc);
    CHECK(doc.child("testsuites").attribute("tests").as_int() == 3);
  }

  TEST_CASE("what others wrote is text in every form") {
    const CampaignReport report = built(hostile_campaign());
    const std::string junit = render_junit(report);
    check_counts(xml(junit));
    const std::string badge = render_badge(report, kHostile);
    xml(badge);
    for (const std::string& form : {junit, badge, render_markdown(report)})
      for (const char* never : {"\x01", "\x1b", "\xe2\x80\xae", "\xef\xbf\xbf", "\xef\xbf\xbe"}) {
        CAPTURE(form);
        CHECK(form.find(never) == std::string::npos);
      }
  }

  TEST_CASE("in Markdown controls are small rows at the end, and no comparison of two is listed") {
    ReportInput input = with_controls(small_campaign(), "beta", "gamma");
    Runs more;
    RunRecord& gamma = more.ended("lib", "go", "gamma", RunOutcome::kSuccess);
    gamma.run = RunId(100);
    gamma.baseline = RunRecord::Baseline::kReference;
    input.runs.push_back(gamma);
    std::erase_if(input.runs, [](const RunRecord& run) { return run.is_awaited(); });
    input.contrasts = {{"gamma", "beta"}, {"alpha", "beta"}};
    const std::string text = render_markdown(built(input));
    const auto at = [&](const char* words) { return text.find(words); };
    CHECK_MESSAGE(at("- `alpha` less `beta`") != std::string::npos, text);
    CHECK(at("`gamma` less") == std::string::npos);
    CHECK(at("| `alpha` |") < at("| <sub>`beta` (control)</sub> |"));
    CHECK(at("| <sub>`beta` (control)</sub> |") < at("| <sub>`gamma` (control)</sub> |"));
    CHECK(at("| <sub>`gamma` (control)</sub> |") != std::string::npos);
  }

  TEST_CASE("in Markdown what others wrote stands in code spans alone") {
    const std::string text = render_markdown(built(hostile_campaign()));
    // Taken away are spans as a reader finds them: from a run of backticks to the next run as long.
    std::string rest;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '`') {
        rest += text[at++];
        continue;
      }
      const std::size_t run = text.find_first_not_of('`', at) - at;
      std::size_t end = at + run;
      for (;;) {
        end = text.find('`', end);
        REQUIRE(end != std::string::npos);
        const std::size_t closing = text.find_first_not_of('`', end) - end;
        if (closing == run) break;
        end += closing;
      }
      // A '|' in a table's span would end its cell.
      const std::size_t line = text.rfind('\n', at) + 1;
      if (text[line] == '|')
        for (std::size_t i = at; i < end; ++i)
          if (text[i] == '|') CHECK(text[i - 1] == '\\');
      at = end + run;
    }
    for (const char* never : {"<", "@", "#1", "https://", "everyone"}) {
      CAPTURE(rest);
      CHECK(rest.find(never) == std::string::npos);
    }
    CHECK(text.size() <= kMarkdownBytes);
  }

  TEST_CASE("Markdown says what was compared, or why nothing is") {
    ReportInput input = small_campaign();
    const std::string interim = render_markdown(built(input));
    CHECK(interim.find("**Interim: 3 of 12 runs are open or parked for money.**") !=
          std::string::npos);
    CHECK(interim.find("Comparisons") == std::string::npos);
    CHECK(interim.find("| `alpha` | ") != std::string::npos);
    std::erase_if(input.runs, [](const RunRecord& r) {
      return r.state == RunRecord::State::kPlanned || r.state == RunRecord::State::kRunning ||
             r.state == RunRecord::State::kParked;
    });
    input.contrasts = {{"alpha", "beta"}};
    const std::string done = render_markdown(built(input));
    CHECK(done.find("- `alpha` less `beta`: **") != std::string::npos);
    CampaignReport wide = built(input);
    Analysis analysis = *wide.analysis;
    analysis.contrasts.at(0).difference.estimate.interval = {-0.742, 1.742};
    wide.analysis = std::make_shared<const Analysis>(analysis);
    CHECK(render_markdown(wide).find(" [-74.2, +100.0]") != std::string::npos);
    CHECK(render_markdown(built({"empty", "USD", {}, {}, 0.05})) ==
          "### Campaign `empty`\n\nIt has no runs.\n");
  }

  TEST_CASE("Markdown of many long methods stays within its size") {
    Runs runs;
    ReportInput input;
    for (int m = 0; m < 64; ++m) {
      const std::string name = std::to_string(m) + std::string(300, 'x');
      for (const char* task : {"a", "b"}) runs.ended(task, "go", name, RunOutcome::kSuccess);
      if (0 < m) input.contrasts.emplace_back(name, "0" + std::string(300, 'x'));
    }
    input.campaign = "many";
    input.strata_keys = {"language"};
    input.runs = std::move(runs.records);
    input.deviations.assign(500, std::string(5'000, 'd'));
    input.alerts.assign(500, std::string(5'000, 'a'));
    CHECK(render_markdown(built(std::move(input))).size() <= kMarkdownBytes);
  }

  TEST_CASE("a summary warns of successes with a critical violation") {
    Runs runs;
    RunRecord& run = runs.ended("lib", "go", "alpha", RunOutcome::kSuccess);
    run.gates = {GateOutcome::kPass, GateOutcome::kPass, GateOutcome::kPass, GateOutcome::kFail};
    run.tags = "safety.os_risk";
    ReportInput input{"critical", "USD", {"language"}, std::move(runs.records), 0.05};
    const CampaignReport report = built(input);
    const std::string warning = critical_warning(report.details->rubric);
    CHECK(warning.find("alpha 1") != std::string::npos);
    const std::string mark(kCriticalMark), summary = render_markdown(report);
    CHECK(summary.find(mark.substr(1) + " `" + warning) != std::string::npos);
    CHECK(summary.find("| `alpha`" + mark + " |") != std::string::npos);
    input.runs[0].tags = "policy.network_denied";
    const std::string other = render_markdown(built(input));
    CHECK(other.find("critical violation") == std::string::npos);
    CHECK(other.find(mark) == std::string::npos);
  }

  TEST_CASE("a summary names tasks whose controls show that they are broken or flaky") {
    Runs runs;
    for (const char* task : {"torn", "idle", "sound"}) {
      const bool passes = std::string_view(task) == "idle";
      RunRecord& run =
          runs.ended(task, "go", passes ? "noop" : "reference",
                     passes || std::string_view(task) == "sound" ? RunOutcome::kSuccess
                                                                 : RunOutcome::kFailure);
      if (std::string_view(task) == "torn") run.passes = 2;
    }
    ReportInput input{"controls", "USD", {"language"}, std::move(runs.records), 0.05};
    const std::string summary = render_markdown(built(with_controls(input, "noop", "reference")));
    CHECK(summary.find("- `task torn is flaky: ") != std::string::npos);
    CHECK(summary.find("- `task idle is broken: ") != std::string::npos);
    CHECK(summary.find("task sound is") == std::string::npos);
    CHECK(render_markdown(built(std::move(input))).find(" tasks:\n\n- ") == std::string::npos);
  }

  TEST_CASE("a badge says the rate with its interval, and is grey while it may move") {
    ReportInput input = small_campaign();
    const CampaignReport interim = built(input);
    const std::string open = render_badge(interim, "alpha");
    CHECK(open.find("<title>alpha interim ") != std::string::npos);
    CHECK(open.find("#57606a") != std::string::npos);
    std::erase_if(input.runs, [](const RunRecord& r) {
      return r.state == RunRecord::State::kPlanned || r.state == RunRecord::State::kRunning ||
             r.state == RunRecord::State::kParked;
    });
    input.contrasts = {{"beta", "alpha"}};
    const CampaignReport done = built(input);
    CHECK(badge_method(done) == "beta");
    const std::string alpha = render_badge(done, "alpha");
    CHECK_MESSAGE(alpha.find("<title>alpha 67 % [") != std::string::npos, alpha);
    CHECK(alpha.find("] of 2 tasks</title>") != std::string::npos);
    CHECK(alpha.find("#0059a3") != std::string::npos);
    // One of recorded patches says whose they are, and so does a summary.
    ReportInput again = input;
    again.again = "regrade of small-0123<";
    const CampaignReport regrade = built(std::move(again));
    CHECK(render_badge(regrade, "alpha").find("<title>alpha regrade of small-0123&lt;: 67 % [") !=
          std::string::npos);
    xml(render_badge(regrade, "alpha"));
    CHECK(render_markdown(regrade).starts_with("### Campaign `" + regrade.campaign +
                                               "`, a `regrade of small-0123<`\n\n"));
    CHECK(render_markdown(done).starts_with("### Campaign `" + done.campaign + "`\n\n"));
    CHECK(render_badge(built({"empty", "USD", {}, {}, 0.05}), "").find("no rate yet") !=
          std::string::npos);
    // A control has none: neither by a comparison, nor by its name, nor as the only method.
    for (RunRecord& run : input.runs)
      if (run.method == "beta") run.baseline = RunRecord::Baseline::kReference;
    CHECK(badge_method(built(input)) == "alpha");
    input.contrasts.clear();
    input.plan.baseline = "alpha";
    CHECK(badge_method(built(input)) == "alpha");
    for (RunRecord& run : input.runs) run.baseline = RunRecord::Baseline::kNoop;
    CHECK(badge_method(built(input)).empty());
  }
}
