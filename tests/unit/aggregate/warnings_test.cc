// What a report says before any number.
#include "coordinator/aggregate/warnings.h"

#include <doctest/doctest.h>

#include "common/base/json.h"
#include "common/contract/caps.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("aggregate") {
  TEST_CASE("a report whose models were recordings says so before any number") {
    ReportInput input = small_campaign();
    CHECK(build_report(input).warnings.empty());
    input.runs[0].model_use.replayed = 3;
    input.runs[3].model_use.replayed = 5;
    input.runs[7].model_use.replayed = 1;  // it has not ended
    input.warnings = {"tasks were screened as flaky"};
    const CampaignReport report = detailed(input);
    REQUIRE(report.warnings.size() == 2);
    CHECK(report.warnings[0].find("2 of 6 runs of alpha were answered by a recording (a cassette, "
                                  "8 calls)") == 0);
    CHECK(report.warnings[1] == "tasks were screened as flaky");
    const std::string text = render_text(report);
    CHECK(text.find("Warning: 2 of 6 runs of alpha") < text.find("Outcomes (number of runs)"));
    CHECK(render_json(report).find("\"warnings\":[\"2 of 6 runs") != std::string::npos);
  }

  TEST_CASE("tasks whose runs are of several configuration classes are told, with what differs") {
    Runs runs;
    for (const char* task : {"lib", "cli"})
      for (const char* method : {"a", "b"})
        runs.ended(task, "go", method, RunOutcome::kSuccess).configuration = "aa";
    ReportInput input;
    input.strata_keys = {"language"};
    input.runs = runs.records;
    CHECK(configuration_line(input.runs) == "1 configuration class: aa 4 runs");
    CHECK(build_report(input).warnings.empty());

    // Another class for another task: each has one of its own.
    input.runs[2].configuration = input.runs[3].configuration = "bb";
    CHECK(build_report(input).warnings.empty());

    input.runs[3].configuration = "cc";
    input.configurations = {{"bb", {{"sandbox", "bubblewrap"}, {"locale", "C"}, {"image", ""}}},
                            {"cc",
                             {{"sandbox", "docker"},
                              {"locale", "C"},
                              {"image", "sha256:1"},
                              {"monitors.calls", "seccomp"}}}};
    const CampaignReport mixed = build_report(input);
    REQUIRE(mixed.warnings.size() == 1);
    CHECK(
        mixed.warnings[0].starts_with("1 of 2 tasks have runs of several configuration classes "
                                      "(cli)"));
    CHECK(configuration_difference({"bb", "cc"}, mixed.configurations) ==
          "image (\"\", sha256:1), monitors.calls (none, seccomp), sandbox (bubblewrap, docker)");
    CHECK(configuration_difference({"aa", "bb"}, mixed.configurations) ==
          "parts that are not known here");
    CHECK(configuration_line(mixed.runs) ==
          "3 configuration classes: aa 2 runs, bb 1 run, cc 1 run");

    // A run that has not ended, and one of a worker that did not say it, are of none.
    input.runs[3].state = RunRecord::State::kRunning;
    CHECK(build_report(input).warnings.empty());
    input.runs[3].state = RunRecord::State::kEnded;
    input.runs[3].configuration.clear();
    CHECK(build_report(input).warnings.empty());
    CHECK(configuration_line(small_campaign().runs).empty());
  }

  TEST_CASE("a report says its policy, its scope, its assumptions, and which runs do not replay") {
    Runs runs;
    for (int i = 0; i < 5; ++i) {
      RunRecord& run = runs.ended("lib", "go", "a", RunOutcome::kSuccess);
      run.configuration = "aa";
      run.started_ms = 1'793'491'200'000 + i * 86'400'000LL;  // 2026-11-01 and the days after
    }
    runs.records[1].networked = true;
    runs.records[2].report = Digest();
    runs.records[3].configuration.clear();
    runs.add("lib", "go", "a").networked = true;  // not ended
    ReportInput input;
    input.strata_keys = {"language"};
    input.runs = runs.records;
    const CampaignReport report = build_report(input);
    const std::vector<std::string> limits = report_limits(report);
    REQUIRE(limits.size() == 6);
    CHECK(limits[0] == kCapsArePolicy);
    CHECK(limits[3] ==
          "2 of 5 runs that ended are not replayable: 1 had the network in a phase, 1 left no "
          "evidence. Of 1 more an older worker did not say it. Where the agent alone had it, "
          "proctor replay judges the patch again all the same.");
    CHECK(limits[4] == "1 configuration class: aa 4 runs");
    CHECK(limits[5].find("(2026-11-01 to 2026-11-05)") != std::string::npos);
    const std::string text = render_tables(report);
    CHECK(text.find("Limits of this report\n\n  * Caps, ceilings and thresholds") !=
          std::string::npos);
    const Json notes = parse_json(render_json(report)).value()["notes"];
    for (std::size_t i = 0; i < limits.size(); ++i) CHECK(notes[i] == limits[i]);

    // A campaign that has run nothing yet names no days, no classes and no runs.
    ReportInput planned;
    CHECK(report_limits(build_report(planned)).size() == 4);
  }
}
