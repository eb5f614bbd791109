// schemas/campaign_report.schema.json describes what we write, checked by a validator that is not
// ours.
#include <doctest/doctest.h>

#include "common/base/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("aggregate") {
  TEST_CASE("a campaign's report satisfies its schema and an altered one does not") {
    const JsonSchema schema("campaign_report");
    ReportInput input = small_campaign();
    Comparison& projection = input.projection.emplace();
    projection.inputs = "98fe76dc54ba";
    projection.rows = {{"total", "all", usd_micros(5), usd_micros(4), usd_micros(2), 500},
                       {"category", "model", {}, {}, {}, {}}};
    const Json report = parse_json(render_json(build_report(input))).value();
    CHECK(schema.violations(report) == "");
    CHECK(schema.violations(
              parse_json(render_json(build_report({"empty", "USD", {}, {}, 0.05}))).value()) == "");

    // Whatever is taken away or added is noticed: the schema knows every member.
    const auto without = [&](const std::string& at) {
      for (const auto& member : at_pointer(report, at).items()) {
        CAPTURE(member.first);
        Json less = report;
        at_pointer(less, at).erase(member.first);
        CHECK((schema.violations(less) != "" || member.first == "parked"));
      }
      Json more = report;
      at_pointer(more, at)["more"] = 1;
      CHECK(schema.violations(more) != "");
    };
    for (const char* at :
         {"", "/rows/0", "/rows/0/cost", "/rows/0/success_rate", "/runs/0", "/runs/6",
          "/runs/0/time_ms", "/costs/0", "/total_cost/total", "/projection", "/projection/rows/0"})
      without(at);
    Json unknown = report;
    unknown["runs"][0]["outcome"] = "passed";
    CHECK(schema.violations(unknown) != "");
  }
}
