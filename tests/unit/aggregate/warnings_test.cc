// What a report says before any number.
#include "coordinator/aggregate/warnings.h"

#include <doctest/doctest.h>

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
}
