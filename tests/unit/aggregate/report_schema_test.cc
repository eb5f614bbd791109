// schemas/campaign_report.schema.json describes what we write, checked by a validator that is not
// ours.
#include <doctest/doctest.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("aggregate") {
  TEST_CASE("a campaign's report satisfies its schema and an altered one does not") {
    const auto text =
        read_file(PROCTOR_SCHEMAS "/campaign_report.schema.json", std::size_t{1} << 20);
    REQUIRE(text.ok());
    const auto json = parse_json(*text);
    REQUIRE(json.ok());
    valijson::Schema schema;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(*json), schema);
    const auto violations = [&](const Json& report) {
      valijson::Validator validator;
      valijson::ValidationResults results;
      std::string said;
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(report), &results);
      valijson::ValidationResults::Error error;
      while (results.popError(error)) {
        for (const std::string& part : error.context) said += part;
        said += ": " + error.description + "\n";
      }
      return said;
    };
    ReportInput input = small_campaign();
    Comparison& projection = input.projection.emplace();
    projection.inputs = "98fe76dc54ba";
    projection.rows = {{"total", "all", usd_micros(5), usd_micros(4), usd_micros(2), 500},
                       {"category", "model", {}, {}, {}, {}}};
    const Json report = parse_json(render_json(build_report(input))).value();
    CHECK(violations(report) == "");
    CHECK(violations(parse_json(render_json(build_report({"empty", {}, {}, 0.05}))).value()) == "");

    // Whatever is taken away or added is noticed: the schema knows every member.
    const auto without = [&](const Json::json_pointer& at) {
      for (const auto& member : report.at(at).items()) {
        CAPTURE(member.key());
        Json less = report;
        less.at(at).erase(member.key());
        CHECK((violations(less) != "" || member.key() == "parked"));
      }
      Json more = report;
      more.at(at)["more"] = 1;
      CHECK(violations(more) != "");
    };
    for (const char* at : {"", "/rows/0", "/rows/0/cost", "/rows/0/success_rate", "/rows/0/runs/0",
                           "/runs/0", "/runs/6", "/runs/0/time_ms", "/costs/0", "/total_cost/total",
                           "/projection", "/projection/rows/0"})
      without(Json::json_pointer(at));
    Json unknown = report;
    unknown["runs"][0]["outcome"] = "passed";
    CHECK(violations(unknown) != "");
  }
}
