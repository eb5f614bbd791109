// How a candidate patch fitted, as an operator sees it: check, runs.csv, report.json and explain.
#include <doctest/doctest.h>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("campaign") {
  TEST_CASE("the rung of a patch and its conflict markers are shown wherever a run is") {
    CampaignShape shape;
    shape.methods = {"reference", solving_method("merger", "printf \"<<<<<<< a\\n\" > notes.md; ")};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "contracts/fix.patch", "-echo $(($1 - $2))",
               "-echo  $(($1 -  $2))");
    const CommandOutcome checked = scene.run("check");
    CHECK_MESSAGE(checked.exit_code == 0, checked.err);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(contains(scene.run("explain", {"add/reference/r1"}).out,
                   "    patch: applied, whitespace\n"));
    const std::string merger = scene.run("explain", {"add/merger/r1"}).out;
    CHECK_MESSAGE(contains(merger, "    patch: applied, exact\n"), merger);
    CHECK_MESSAGE(contains(merger, "    patch: conflict markers in notes.md:1\n"), merger);
    CHECK_MESSAGE(contains(merger, "    satisfied: no, it fails gate patch\n"), merger);
    CHECK(scene.run("list", {"--where", "outcome=success satisfied=no"}).out == "add/merger/r1\n");
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& run : report["runs"]) {
      CHECK(run["outcome"] == "success");
      CHECK(run["satisfied"] == (run["method"] == "reference"));
      CHECK(run["patch"] == (run["method"] == "reference" ? "whitespace" : "conflict_markers"));
    }
    const std::string csv = scene.read(scene.folder() / "reports/runs.csv");
    CHECK(contains(csv, ",agent_exit,patch,why,report,"));
    CHECK(contains(csv, ",whitespace,"));
    CHECK(contains(csv, ",0,conflict_markers,"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }

  TEST_CASE("a patch broken by setup leaves checks that were not run and explain says so") {
    CampaignShape shape;
    shape.methods = {"{name: breaker, kind: command, command: 'echo exit 3 > calc.sh'}"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.write(scene.contract(), scene.read(scene.contract()) +
                                      "setup:\n  - {command: sh calc.sh 1 1, cache: false}\n");
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    const std::string told = scene.run("explain", {"add/breaker/r1"}).out;
    CHECK_MESSAGE(contains(told, "check setup (build): fail"), told);
    CHECK_MESSAGE(contains(told, ": not_run, did not run: setup failed"), told);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'failure'") == 1);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }
}
