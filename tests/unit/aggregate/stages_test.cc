// Stages in reports: rows of each, filters, and a report of one alone.
#include <doctest/doctest.h>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/run_filter.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Stage "pilot": one run of each method at the task lib; "main": two at each of lib and cli.
ReportInput staged() {
  Runs runs;
  const auto add = [&](const char* stage, const char* task, const char* method,
                       RunOutcome outcome) {
    runs.ended(task, task[0] == 'l' ? "go" : "rust", method, outcome).stage = stage;
  };
  for (const char* method : {"alpha", "beta"}) add("pilot", "lib", method, RunOutcome::kFailure);
  for (int i = 0; i < 2; ++i)
    for (const char* task : {"lib", "cli"}) {
      add("main", task, "alpha", RunOutcome::kSuccess);
      add("main", task, "beta", RunOutcome::kFailure);
    }
  ReportInput input{"pilot-12ab34cd56ef", "USD", {"language"}, std::move(runs.records), 0.05};
  input.contrasts = {{"alpha", "beta"}};
  input.plan_registered = true;
  return input;
}

const ReportRow* row_of(const CampaignReport& report, const std::string& key,
                        const std::string& value, const std::string& method) {
  for (const ReportRow& r : report.rows)
    if (r.key == key && r.value == value && r.method == method) return &r;
  return nullptr;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE(
      "stages have rows of their own in the plan's order, and the report says they are pooled") {
    const CampaignReport report = detailed(staged());
    CHECK(report.stages == std::vector<std::string>{"pilot", "main"});
    REQUIRE(row_of(report, "stage", "pilot", "alpha") != nullptr);
    CHECK(row_of(report, "stage", "pilot", "alpha")->planned == 1);
    CHECK(row_of(report, "stage", "main", "alpha")->success == 4);
    CHECK(row_of(report, "", "", "alpha")->planned == 5);
    CHECK(report.rows.back().value == "main");  // not sorted by name
    const std::string text = render_text(report);
    CHECK(has(text, "Stages: pilot and main. Rates over all tasks"));
    CHECK(has(text, "stage=pilot"));
    CHECK(has(render_csv(report), "alpha,stage,main,4,"));
    CHECK(has(render_runs_csv(report), ",started_ms,stage,"));
    CHECK(has(render_costs_csv(report), "\nstage,pilot,2,"));
    const std::string json = render_json(report);
    CHECK(has(json, R"("stages":["pilot","main"])"));
    CHECK(has(json, R"("stage":"pilot")"));
    CHECK(has(json, "method=alpha stage=main outcome=success"));
  }

  TEST_CASE("one stage alone has no rows by stage, as before there were any") {
    ReportInput input = staged();
    for (RunRecord& run : input.runs) run.stage = "main";
    const CampaignReport report = build_report(std::move(input));
    CHECK(row_of(report, "stage", "main", "alpha") == nullptr);
    CHECK(!has(render_text(report), "Stages:"));
  }

  TEST_CASE("the runs of a stage are found by its name, and a name that is none is told") {
    const ReportInput input = staged();
    const FilterNames names{input.strata_keys, input.runs};
    const auto filter = RunFilter::parse("stage=pilot", names);
    REQUIRE(filter.ok());
    std::size_t found = 0;
    for (const RunRecord& run : input.runs) found += filter->matches(run) ? 1 : 0;
    CHECK(found == 2);
    CHECK(has(RunFilter::parse("stage=pilt", names).error().detail, "did you mean pilot"));
  }

  TEST_CASE(
      "a report of one stage has its runs alone, is exploratory, and shows no look before the "
      "end") {
    ReportInput input = staged();
    ReportInput same = staged();
    REQUIRE(keep_stage(input, "main").ok());
    const CampaignReport part = build_report(std::move(input));
    CHECK(part.total.planned == 8);
    CHECK(part.analysis->contrasts.size() == 1);
    const std::string text = render_text(part);
    CHECK(has(text, "This is stage main alone, 8 of 10 runs."));
    CHECK(has(text, "Comparisons (of a part of the campaign, so exploratory"));
    CHECK(has(render_json(part), R"("part":"This is stage main alone)"));

    // A run of the other stage is open: nothing is compared yet.
    same.runs[0].state = RunRecord::State::kPlanned;
    ReportInput early = same;
    REQUIRE(keep_stage(early, "main").ok());
    const CampaignReport look = build_report(std::move(early));
    CHECK(look.analysis->contrasts.empty());
    CHECK(look.analysis->open == 1);
    const Status none = keep_stage(same, "mian");
    REQUIRE(!none.ok());
    CHECK(has(none.error().detail, "there is no stage mian (did you mean main?)"));
  }
}
