// A projection on real campaigns: before anything ran, registered, and beside what was observed.
#include <doctest/doctest.h>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kPrices =
    "action_type,unit,unit_price,notes\nsandbox,minute,0.01,\nrun,run,0.25,\nhuman,minute,0.80,\n";
// Of each run: half a minute at 0.01 and 0.25 flat; of reference also a quarter of a minute of a
// reviewer, 0.20.  Two runs each: 2 x 0.255 + 2 x 0.455 = 1.42.
constexpr const char* kInputs = R"({
  "usage": [
    {"actions": [{"action_type": "sandbox", "unit": "minute", "per_run": 0.5}]},
    {"method": "reference", "actions": [
      {"action_type": "sandbox", "unit": "minute", "per_run": 0.5},
      {"action_type": "human", "unit": "minute", "per_run": "0.25"}]}
  ]
}
)";

fs::path inputs_of(const CampaignScene& scene) {
  return scene.folder() / "pilot_cost_model_inputs.json";
}
void prepare(const CampaignScene& scene, bool with_inputs = true) {
  scene.write(scene.folder() / "pilot_cost_model.csv", kPrices);
  if (with_inputs) scene.write(inputs_of(scene), kInputs);
}

Json json_of(const CommandOutcome& out) {
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

}  // namespace

TEST_SUITE("money") {
  TEST_CASE("a campaign without inputs has its worst case projected and nothing registered") {
    const CampaignScene scene;
    prepare(scene, false);
    const CommandOutcome out = scene.run("project");
    REQUIRE_MESSAGE(out.exit_code == 0, out.err);
    CHECK_MESSAGE(contains(out.out, "there is no pilot_cost_model_inputs.json"), out.out);
    const Json json = json_of(scene.run("project", {"--json"}));
    const Json& task = json["envelopes"][2];
    CHECK(task["name"] == "task:add");
    CHECK(task["expected"].is_null());
    CHECK(task["at_caps"]["micro_usd"] == 2'000'000);  // four runs at 0.50
    CHECK(task["at_most"]["micro_usd"] ==
          18'000'000);  // 3 times lost, 5 times overloaded, once done
    CHECK(task["at_once"] == 4);
    CHECK(json["binds_first"]["at_caps"].is_null());
    std::error_code ec;
    CHECK(fs::exists(scene.folder() / "pilot_cost_projection_table.csv", ec));
    for (const char* file : {"registration.json", "pilot_randomization_plan.csv", ".proctor"})
      CHECK(!fs::exists(scene.folder() / file, ec));
  }

  TEST_CASE("a projection is registered with the campaign and stands beside what was observed") {
    CampaignShape shape;
    shape.task = "1.50";
    const CampaignScene scene(shape);
    prepare(scene);
    const CommandOutcome out = scene.run("project");
    REQUIRE_MESSAGE(out.exit_code == 0, out.err);
    CHECK_MESSAGE(contains(out.out, "which proctor plan --freeze will register"), out.out);
    CHECK(contains(out.out, "model 0.00, execution 0.02, human 0.40, overhead 1.00."));
    const Json before = json_of(scene.run("project", {"--json"}));
    CHECK(before["envelopes"][0]["expected"]["micro_usd"] == 1'420'000);
    // Three runs of 0.50 fill 1.50.
    CHECK(before["binds_first"]["at_caps"]["ran_before"] == 3);
    const std::string table = scene.read(scene.folder() / "pilot_cost_projection_table.csv");
    CHECK(contains(table,
                   "action,add/reference,main,add,reference,human,minute,,,human,2,0.25,0.8,"
                   "row,0.400000,,,,,,\n"));
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(contains(scene.read(scene.folder() / "registration.json"), "\"cost_model_inputs\": \""));
    REQUIRE(
        scene.run("review", {"add/reference/r1", "--minutes", "0.5", "--by", "Ada"}).exit_code ==
        0);

    const Json report = json_of(scene.run("report", {"--json"}));
    const Json& projection = report["projection"];
    CHECK(projection["registered"] == true);
    CHECK(projection["paid_runs"] == 4);
    std::int64_t categories = 0;
    for (const Json& row : projection["rows"]) {
      CHECK(row["projected"] == row["projected_of_paid_runs"]);
      if (row["by"] == "category") categories += row["actual"]["micro_usd"].get<std::int64_t>();
      if (row["name"] == "human") {
        CHECK(row["actual"]["micro_usd"] == 400'000);
        CHECK(row["ratio_thousandths"] == 1000);
      }
      if (row["name"] == "overhead") CHECK(row["ratio_thousandths"] == 1000);
      if (row["name"] == "model") CHECK(row["ratio_thousandths"].is_null());
      if (row["by"] == "envelope")
        CHECK(row["actual"]["micro_usd"] == scene.number("SELECT spent FROM balance"));
    }
    CHECK(categories == scene.number("SELECT spent + overrun FROM balance"));
    const std::string text = scene.read(scene.folder() / "reports/report.txt");
    CHECK_MESSAGE(contains(text, "Projected and actual cost (USD; inputs "), text);
    CHECK(contains(text, "registered before the first run"));
    CHECK(contains(scene.read(scene.folder() / "reports/projection.csv"),
                   "category,human,0.400000,0.400000,0.400000,1.000\n"));

    // What was promised may not change; Ada's minute does not touch it.
    CHECK(scene.run("verify").exit_code == 0);
    scene.edit(inputs_of(scene), "\"0.25\"", "\"0.5\"");
    const CommandOutcome changed = scene.run("project");
    CHECK_MESSAGE(changed.exit_code == 0, changed.err);
    CHECK_MESSAGE(contains(changed.err, "pilot_cost_model_inputs.json (changed)"), changed.err);
    REQUIRE(scene.run("report").exit_code == 0);
    CHECK(scene.read(scene.folder() / "reports/report.txt") == text);
    const CommandOutcome resumed = scene.run("resume");
    CHECK(resumed.exit_code == 2);
    CHECK_MESSAGE(contains(resumed.err, "pilot_cost_model_inputs.json"), resumed.err);
  }

  TEST_CASE("inputs written after the registration are no forecast and say so") {
    const CampaignScene scene;
    prepare(scene, false);
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(!contains(scene.read(scene.folder() / "reports/report.txt"), "Projected and actual"));
    CHECK(json_of(scene.run("report", {"--json"}))["projection"].is_null());
    scene.write(inputs_of(scene), kInputs);
    CHECK(contains(scene.run("project").out, "NOT registered"));
    const CommandOutcome report = scene.run("report");
    REQUIRE_MESSAGE(report.exit_code == 0, report.err);
    CHECK_MESSAGE(contains(report.out, "NOT registered: written afterwards, so no forecast"),
                  report.out);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("inputs that are wrong are told by check with their place and nothing is written") {
    const CampaignScene scene;
    prepare(scene);
    const std::string good = kInputs;
    const auto with = [&](const std::string& from, const std::string& to) {
      std::string text = good;
      text.replace(text.find(from), from.size(), to);
      scene.write(inputs_of(scene), text);
      const CommandOutcome out = scene.run("project");
      CHECK(out.exit_code == 2);
      return out.err;
    };
    const std::string at = "pilot_cost_model_inputs.json:3:74: usage[0].actions[0].per_run: found ";
    CHECK(contains(with("0.5}", "-0.5}"), at + "\"-0.5\", expected a non-negative decimal"));
    CHECK(contains(with("0.5}", "1e300}"), at + "\"1e300\", expected a non-negative decimal"));
    CHECK(contains(with("0.5}", "NaN}"), ":3:74: document: found \"N\", expected a JSON value"));
    CHECK(contains(with("\"sandbox\"", "\"sandpit\""),
                   ":3:34: usage[0].actions[0].action_type: found \"sandpit\" in minutes, expected "
                   "an action with a price"));
    CHECK(contains(with("\"reference\"", "\"refrence\""), "did you mean \"reference\"?"));
    CHECK(contains(with("{\"method\"", "{\"method\": \"noop\", \"method\""),
                   "the key \"method\" a second time"));
    scene.write(inputs_of(scene), std::string((std::size_t{4} << 20) + 1, ' '));
    CHECK(scene.run("check").exit_code == 2);
    std::error_code ec;
    CHECK(!fs::exists(scene.folder() / "pilot_cost_projection_table.csv", ec));
    CHECK(!fs::exists(scene.folder() / "registration.json", ec));
  }
}
