// `proctor power` as a user types it: numbers alone, a campaign's own, an earlier campaign's.
#include "common/base/digest.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

CommandOutcome power(std::vector<std::string> args) {
  args.insert(args.begin(), "power");
  return proctor::testing::proctor(std::move(args));
}

void refused(std::vector<std::string> args, const std::string& with) {
  const CommandOutcome out = power(std::move(args));
  CAPTURE(with);
  CHECK(out.exit_code == 2);
  CHECK_MESSAGE(contains(out.err, with), out.err);
}

}  // namespace

TEST_SUITE("power") {
  TEST_CASE("numbers alone are enough, and the exit code is the answer") {
    const std::vector<std::string> asked{"--p", ".4", "--effect", ".1", "--rho", ".15:.85",
                                         "--r", ".3", "--k",      "4",  "--n"};
    auto few = asked, many = asked;
    few.emplace_back("100");
    many.emplace_back("246");
    const CommandOutcome no = power(few), yes = power(many);
    CHECK(no.exit_code == 1);
    CHECK_MESSAGE(contains(no.out, "246 tasks instead of 100"), no.out);
    CHECK(yes.exit_code == 0);
    CHECK_MESSAGE(contains(yes.out, "enough, 0.8 was asked"), yes.out);
    few.emplace_back("--json");
    const Json json = parse_json(power(few).out).value();
    CHECK(json.at("format") == "proctor-power-1");
    CHECK(json.at("points").at(1).at("power_t") == "0.428198443417");
    CHECK(json.at("decision").at("needs").at("effect") == "0.156980408047");
  }

  TEST_CASE("what cannot be is named with what could") {
    refused({"--r", "0.9"},
            "--r: found 0.9, expected at most 0.816496580928 (no two methods with "
            "rates 0.5 and 0.4 can be that alike)");
    refused({"--effect", "0.7"}, "--effect: found 0.7, expected below 0.6 (0.4 + 0.7 is no rate)");
    refused({"--n", "1"}, "--n: found 1, expected 2 to 1000000");
    refused({"--n", "1e3"}, "--n: found 1e3");
    refused({"--k", "0"}, "--k: found 0, expected 1 to 1000");
    refused({"--p", "nan"}, "--p: found nan");
    refused({"--p", "0.12345678901234567890"}, "at most 18 digits");
    refused({"--p=-0.1"}, "--p: found -0.1");
    refused({"--alpha", "0"}, "--alpha: found 0");
    refused({"--rho", "0.8:0.2"}, "the lower end first");
    refused({"--k", "30", "--looks", "21"}, "--looks: found 21, expected 1 to 20");
    refused({"--k", "4", "--after", "2,2,4"}, "ascending numbers");
    refused({"--k", "4", "--after", "2,3"}, "the last look after all 4 runs");
    refused({"--spend", "pocock"}, "--looks or --after");
    refused({"--k", "4", "--looks", "2", "--spend", "other"}, "obrien_fleming or pocock");
    refused({"--budgets", "100"}, "both --costs and --budgets");
    refused({"--costs", "task=1,a=-1,b=1", "--budgets", "9"}, "an amount of 0 or more");
    refused({"--costs", "task=1,a=1", "--budgets", "9"}, "task=AMOUNT,a=AMOUNT,b=AMOUNT");
    refused({"--costs", "task=0,a=0,b=0", "--budgets", "9"}, "one amount above 0");
    refused({"--test", "mcnemar", "--k", "2"}, "McNemar's test is of one run");
    refused({"--simulate", "100"}, "--out FOLDER");
    refused({"--from", "nowhere", "--compare", "a"}, "expected two methods");
    refused({"nowhere-at-all"}, "nowhere-at-all");
  }

  TEST_CASE("a campaign has its own tasks and runs, and an earlier one its variance") {
    CampaignShape shape;
    shape.tasks = {"add", "more"};
    shape.replicates = 2;
    const CampaignScene scene(shape);
    const std::string folder = scene.folder().string();
    const CommandOutcome planned = power({folder, "--p", ".05", "--effect", ".9"});
    // Both tasks are of one repository, which is the unit then.
    CHECK_MESSAGE(contains(planned.out, "1 repository of 2 tasks"), planned.out);
    CHECK_MESSAGE(contains(planned.out, "unit: task"), planned.out);
    CHECK(planned.exit_code == 1);
    CHECK_MESSAGE(contains(planned.out, "Power 0.000"), planned.out);
    CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
    for (const char* command : {"check", "plan"}) {
      const CommandOutcome told = scene.run(command);
      CHECK(told.exit_code == 0);
      CHECK_MESSAGE(contains(told.out, "compared will be: "), told.out);
      CHECK_MESSAGE(contains(told.out, "(analysis.unit)"), told.out);
      CHECK_MESSAGE(contains(told.out, "note: with 1 repository no comparison can come out as"),
                    told.out);
      CHECK_MESSAGE(contains(told.out, "6 repositories are the fewest"), told.out);
      CHECK_MESSAGE(contains(told.out, "\"analysis: {unit: task}\""), told.out);
    }
    scene.edit(scene.folder() / "campaign.yaml", "replicates: 2\n",
               "replicates: 2\nanalysis: {unit: task}\n");
    const CommandOutcome tasks = power({folder, "--p", ".05", "--effect", ".9"});
    CHECK_MESSAGE(contains(tasks.out, "2 tasks, 2 runs of each method"), tasks.out);
    CHECK_MESSAGE(contains(scene.run("check").out, "note: with 2 tasks no comparison can come"),
                  tasks.out);
    CHECK_MESSAGE(contains(power({folder, "--repositories", "2"}).out, "2 repositories of 1 tasks"),
                  tasks.out);
    refused({folder, "--spread", ".1"}, "--repositories (with --n)");
    refused({folder, "--repositories", "3"}, "--repositories: found 3, expected 1 to 2");
    refused({"--repositories", "3"}, "--repositories (with --n)");
    refused({folder, "--repositories", "2", "--simulate", "9", "--out", "x"}, "are of tasks");
    // Its runs are open, and then none of them is looked at.
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    refused({folder, "--from", folder, "--compare", "reference,noop"}, "are open");
    refused({folder, "--from", folder, "--compare", "reference,nop"}, "did you mean noop?");
    REQUIRE(scene.run("run").exit_code == 0);
    // Every task has the same difference: that is no variance.
    refused({folder, "--from", folder, "--compare", "reference,noop"},
            "differ alike on every task");
  }

  TEST_CASE("that two agents are not compared with each other is said before the freeze") {
    CampaignShape shape;
    shape.methods = {"noop", "reference", solving_method("strong"), solving_method("weak")};
    const CampaignScene scene(shape);
    const CommandOutcome told = scene.run("check");
    CHECK(told.exit_code == 0);
    // The comparison of two controls is the last.
    CHECK_MESSAGE(contains(told.out,
                           "compared will be: strong - noop, weak - noop, reference - noop "
                           "(the default"),
                  told.out);
    CHECK_MESSAGE(contains(told.out, "analysis.contrasts: [[strong, weak]]"), told.out);
    CHECK_MESSAGE(contains(told.out, "with 1 task no comparison can come out"), told.out);
    CHECK_MESSAGE(contains(told.out, "7 tasks are the fewest"), told.out);
    const CommandOutcome frozen = scene.run("plan", {"--freeze"});
    CHECK_MESSAGE(contains(frozen.out, "note: strong and weak are compared with others"),
                  frozen.out);
  }

  TEST_CASE("all agents that are not compared with each other are named") {
    CampaignShape shape;
    shape.methods = {"noop", solving_method("a"), solving_method("b"), solving_method("c")};
    const CampaignScene scene(shape);
    const CommandOutcome told = scene.run("check");
    CHECK_MESSAGE(contains(told.out, "note: a, b and c are compared with others"), told.out);
    CHECK_MESSAGE(contains(told.out, "analysis.contrasts: [[a, b], [a, c], [b, c]] into"),
                  told.out);
    CHECK_MESSAGE(contains(told.out, ": 1 task x 4 methods x 2 replicates, at most"), told.out);
  }

  TEST_CASE("files are written beside each other, and say what they are of") {
    const CampaignScene scene;
    const fs::path out = scene.temp() / "power";
    const CommandOutcome done =
        power({"--rho", ".5", "--r", ".8", "--k", "3", "--n", "20", "--simulate", "500", "--costs",
               "task=.40,a=1.20,b=.90", "--budgets", "400,100", "--tasks-max", "120", "--out",
               out.string()});
    CHECK_MESSAGE(done.exit_code == 1, done.err);
    const std::string analysis = scene.read(out / "power_analysis.json");
    for (const char* name : {"power_analysis_compute_report.json", "analysis_monotonicity.json",
                             "sanity_compute_result.json"}) {
      CAPTURE(name);
      const Json json = parse_json(scene.read(out / name)).value();
      CHECK(json.at("of") == sha256(analysis).hex());
      if (json.contains("ok")) CHECK(json.at("ok") == true);
    }
    const std::string curve = "combined_cost_precision_tradeoff_compute_result";
    CHECK(parse_json(scene.read(out / (curve + ".json"))).value().at("points").size() == 2);
    CHECK(contains(scene.read(out / (curve + ".svg")), "</svg>"));
  }
}
