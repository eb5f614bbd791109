// report.json: sets by reference, runs only of what is not large, and the form of before.
#include <doctest/doctest.h>

#include <map>

#include "common/base/json.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/run_sets.h"
#include "tests/support/json_schema.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

Json parsed(const std::string& text) {
  auto json = parse_json(text, {.bytes_max = std::size_t{64} << 20});
  REQUIRE_MESSAGE(json.ok(), json.error().detail);
  return std::move(json).value();
}

ReportInput of_runs(std::size_t count) {
  Runs runs;
  for (std::size_t i = 0; i < count; ++i)
    runs.ended("t", "go", "m", i % 2 == 0 ? RunOutcome::kSuccess : RunOutcome::kFailure);
  ReportInput input;
  input.campaign = "made";
  input.strata_keys = {"language"};
  input.runs = std::move(runs.records);
  return input;
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("each count of a row names the set of its runs, and no row has a list of runs") {
    const JsonSchema schema("campaign_report");
    const Json json = parsed(render_json(detailed(small_campaign())));
    CHECK(schema.violations(json) == "");
    CHECK(json.at("schema_version") == 2);
    CHECK(json.at("runs_file").is_null());
    std::map<std::string, Json> sets;
    for (const Json& set : json.at("details").at("sets"))
      CHECK(sets.emplace(set.at("id").get<std::string>(), set).second);
    std::size_t named = 0;
    for (const Json& row : json.at("rows")) {
      CHECK_FALSE(row.contains("runs"));
      for (const auto& member : row.at("sets").items()) {
        const std::string word = member.first, id = member.second.get<std::string>();
        CAPTURE(word);
        REQUIRE(sets.count(id) == 1);
        ++named;
        const Json& set = sets.at(id);
        // Two of them count what no member of the row has.
        if (word != "unsatisfied" && word != "violating") CHECK(row.at(word) == set.at("runs"));
        CHECK(set.at("where").get<std::string>().find("method=" +
                                                      row.at("method").get<std::string>()) == 0);
      }
      for (const char* word : {"planned", "success", "failure", "invalid"}) {
        const bool counts =
            row.at(word) != 0 && (row.at("stratum").is_null() || std::string(word) == "success");
        if (counts) CHECK(row.at("sets").contains(word));
      }
    }
    CHECK(named == sets.size());
    // The set's digest is found again from the runs of the same file.
    const Json& set = sets.at(json.at("rows").at(0).at("sets").at("success").get<std::string>());
    std::string lines;
    for (const Json& run : json.at("runs"))
      if (run.at("method") == "alpha" && run.at("outcome") == "success")
        lines +=
            run.at("run").get<std::string>() + " " + run.at("report").get<std::string>() + "\n";
    CHECK(set.at("digest") == sha256(lines).hex());
  }

  TEST_CASE("of a large campaign the runs stand in runs.csv, which is named by its digest") {
    const JsonSchema schema("campaign_report");
    const Json most = parsed(render_json(detailed(of_runs(kJsonRuns))));
    CHECK(schema.violations(most) == "");
    CHECK(most.at("runs").size() == kJsonRuns);
    const CampaignReport report = detailed(of_runs(kJsonRuns + 1));
    const std::string text = render_json(report);
    const Json json = parsed(text);
    CHECK(schema.violations(json) == "");
    CHECK(json.at("runs").is_null());
    const std::string csv = render_runs_csv(report);
    CHECK(json.at("runs_file").at("digest") == sha256(csv).hex());
    CHECK(json.at("runs_file").at("runs") == kJsonRuns + 1);
    CHECK(json.at("runs_file").at("name") == "runs.csv");
    CHECK(render_json(report, JsonForm::kSecond, csv) == text);
    CHECK(text.size() < 60'000);
  }

  TEST_CASE("schema 1 is schema 2 with the runs behind each row, whatever their number") {
    const Json first = parsed(render_json(detailed(small_campaign()), JsonForm::kFirst));
    Json second = parsed(render_json(detailed(small_campaign())));
    CHECK(first.at("schema_version") == 1);
    CHECK_FALSE(first.contains("runs_file"));
    CHECK(JsonSchema("campaign_report").violations(first) != "");
    std::size_t behind = 0;
    for (const Json& row : first.at("rows")) behind += row.at("runs").size();
    CHECK(behind == 2 * first.at("runs").size());  // by method, and by its one key of strata
    second["schema_version"] = 1;
    second.erase("runs_file");
    for (Json& set : second.at("details").at("sets")) set.erase("id");
    for (std::size_t i = 0; i < second.at("rows").size(); ++i) {
      second.at("rows").at(i).erase("sets");
      second.at("rows").at(i)["runs"] = first.at("rows").at(i).at("runs");
    }
    CHECK(first == second);
    CHECK(parsed(render_json(build_report(of_runs(kJsonRuns + 1)), JsonForm::kFirst))
              .at("runs")
              .size() == kJsonRuns + 1);
  }
}
