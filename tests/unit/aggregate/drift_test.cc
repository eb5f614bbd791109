#include "coordinator/aggregate/details.h"

#include <doctest/doctest.h>

#include <memory>

#include "common/base/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Six tasks of four runs, two by each worker; `w2` is the one that breaks in its half.
ReportInput campaign(bool breaks) {
  Runs runs;
  for (int task = 0; task < 6; ++task)
    for (int i = 0; i < 4; ++i) {
      const bool second = i % 2 == 1;
      const bool success = breaks ? !second : (task + i) % 4 < 2;
      RunRecord& run = runs.ended("task-" + std::to_string(task), "c", "m",
                                  success ? RunOutcome::kSuccess : RunOutcome::kFailure);
      run.worker = second ? "w2" : "w1";
      run.started_ms = 1'000'000 + 1000 * (task + (breaks ? (second ? 100 : 0) : i * 10));
    }
  ReportInput input;
  input.campaign = "made";
  input.strata_keys = {"language"};
  input.runs = std::move(runs.records);
  return input;
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("a worker that breaks in the second half of a campaign is found by both tests") {
    const Drift drift = drift_of(build_report(campaign(true)));
    CHECK(drift.runs == 24);
    REQUIRE(drift.trends.size() == 2);
    CHECK(drift.trends[0].method.empty());
    CHECK(drift.trends[1].method == "m");
    CHECK(drift.trends[0].trend.test->p < 0.001);
    CHECK(*drift.trends[0].trend.slope < -0.9);
    REQUIRE(drift.by_worker.test.has_value());
    // Six strata of two against two: 6^2 / (6 / 3) by Mantel and Haenszel.
    CHECK(drift.by_worker.test->statistic == doctest::Approx(18).epsilon(1e-12));
    CHECK(drift.workers == std::vector<std::string>{"w1", "w2"});
    CHECK(drift.by_worker.groups[1].expected == doctest::Approx(6));
    CHECK(drift.by_worker.groups[1].successes == 0);
  }

  TEST_CASE("drift stands in the report once details were asked for") {
    CampaignReport report = build_report(campaign(false));
    CHECK(render_text(report).find("Drift (") == std::string::npos);
    report.details = std::make_shared<const ReportDetails>(report_details(report));
    const std::string text = render_text(report);
    CHECK(text.find("Drift (exploratory; within each task and method, 24 runs)") !=
          std::string::npos);
    CHECK(text.find("2 workers: p ") != std::string::npos);
    const JsonSchema schema("campaign_report");
    const Json json = parse_json(render_json(report)).value();
    CHECK(schema.violations(json) == "");
    CHECK(json["details"]["drift"]["workers"].size() == 2);
    for (const char* at : {"/details/drift", "/details/drift/trends/0", "/details/drift/workers/0",
                           "/details/drift/by_worker"})
      for (const auto& member : at_pointer(json, at).items()) {
        CAPTURE(member.first);
        Json less = json;
        at_pointer(less, at).erase(member.first);
        CHECK(schema.violations(less) != "");
      }
  }

  TEST_CASE("runs of journals that knew no worker and no start tell nothing") {
    CampaignReport report = build_report(small_campaign());
    CHECK(drift_of(report).runs == 0);
    report.details = std::make_shared<const ReportDetails>(report_details(report));
    CHECK(render_text(report).find("Drift (") == std::string::npos);
    CHECK(JsonSchema("campaign_report").violations(parse_json(render_json(report)).value()) == "");
  }
}
