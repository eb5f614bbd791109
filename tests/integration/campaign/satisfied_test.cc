// A run that passes its checks and breaks a constraint: a success that is not satisfied, wherever a
// run is shown; and the page and the list of runs that a campaign leaves.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("campaign") {
  TEST_CASE("a success that changed what it may not is told from one that satisfied its contract") {
    CampaignShape shape;
    shape.methods = {"reference",
                     solving_method("meddler",
                                    "mkdir -p tests; for i in 0 1 2 3 4 5 6 7 8 9 a b; do echo x > "
                                    "tests/more$i.sh; done; ")};
    shape.replicates = 2;
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK_MESSAGE(contains(ran.err, "meddler: 2 of 2 successes did not pass a gate"), ran.err);
    const std::string shown = scene.run("report").out;
    CHECK_MESSAGE(contains(shown, "reports/report.html (open it in a browser)"), shown);
    CHECK_MESSAGE(contains(shown, "Constraints that were broken"), shown);
    const std::string told = scene.run("explain", {"add/meddler/r1"}).out;
    CHECK_MESSAGE(contains(told, "    satisfied: no, it fails gate safety\n"), told);
    CHECK_MESSAGE(contains(told, "    gate safety: fail, "), told);
    CHECK_MESSAGE(contains(told, "    violation: protected: tests/more9.sh\n    and 2 more "),
                  told);
    CHECK(contains(scene.run("explain", {"add/reference/r1"}).out, "    satisfied: yes\n"));
    for (const bool satisfied : {false, true}) {
      const std::string run = satisfied ? "add/reference/r1" : "add/meddler/r1";
      const Json attempt =
          must(parse_json(scene.run("explain", {run, "--json"}).out)).at("attempts").at(0);
      CHECK(attempt.at("satisfied") == satisfied);
      CHECK(attempt.at("violations").empty() == satisfied);
      CHECK(attempt.at("checks").at(0).at("outcome") == "pass");
    }

    const CommandOutcome broken = scene.run("list", {"--where", "outcome=success satisfied=no"});
    CHECK_MESSAGE(broken.out == "add/meddler/r1\nadd/meddler/r2\n", broken.err);
    CHECK(contains(broken.err, "2 of 4 runs, digest "));
    for (const char* words : {"gate.g4=fail", "tag=policy.protected_path"})
      CHECK(scene.run("list", {"--where", words}).out == broken.out);
    CHECK_MESSAGE(contains(told, "    failure mode policy.protected_path: "), told);
    const std::string records = scene.read(scene.folder() / "reports/run_records.jsonl");
    CHECK(std::ranges::count(records, '\n') == 4);
    CHECK(contains(records, R"("tags":["policy.protected_path"])"));
    CHECK(contains(scene.read(scene.folder() / "reports/gated_rubric_schema.json"),
                   "\"proctor-rubric-1\""));
    const CommandOutcome unscored =
        proctor::testing::proctor({"rubric", "sensitivity", scene.folder().string()});
    CHECK(unscored.exit_code == 2);
    CHECK_MESSAGE(contains(unscored.err, "has a graded score"), unscored.err);
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& run : report["runs"])
      CHECK(run["satisfied"] == (run["method"] == "reference"));
    for (const Json& set : report["details"]["sets"]) {
      const CommandOutcome listed =
          scene.run("list", {"--where", set["where"].get<std::string>(), "--count", "--expect",
                             set["digest"].get<std::string>()});
      CHECK_MESSAGE(listed.exit_code == 0, listed.err);
      CHECK(listed.out == std::to_string(set["runs"].get<int>()) + "\n");
    }
    CHECK(scene.run("list", {"--expect", std::string(64, '0')}).exit_code == 1);
    const CommandOutcome typo = scene.run("list", {"--where", "metod=meddler"});
    CHECK(typo.exit_code == 2);
    CHECK_MESSAGE(contains(typo.err, "did you mean method?"), typo.err);

    const std::string page = scene.read(scene.folder() / "reports/report.html");
    CHECK(contains(page, "add/meddler/r1"));
    CHECK(contains(page, "15. Appendices"));
    CHECK_FALSE(contains(page, "<script"));
    CHECK(page.size() < 400'000);
    // A gate that reads the test report lets none of them through.
    const std::string junit = scene.run("report", {"--form", "junit"}).out;
    CHECK(contains(junit, " tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"0\""));
    CHECK(contains(junit, "<failure type=\"unsatisfied\""));
    CHECK(junit == scene.read(scene.folder() / "reports/junit.xml"));
    const CommandOutcome to_file =
        scene.run("report", {"--form=markdown", "--out", (scene.temp() / "s.md").string()});
    CHECK_MESSAGE((to_file.exit_code == 0 && to_file.out.empty()), to_file.err);
    CHECK(scene.read(scene.temp() / "s.md") == scene.read(scene.folder() / "reports/summary.md"));
    CHECK(contains(scene.run("report", {"--form", "badge", "--method", "meddler"}).out,
                   "<title>meddler "));
    const CommandOutcome form = scene.run("report", {"--form", "junitt"});
    CHECK(form.exit_code == 2);
    CHECK_MESSAGE(contains(form.err, "did you mean junit?"), form.err);
    CHECK(contains(scene.run("report", {"--form", "badge", "--method", "medler"}).err,
                   "did you mean meddler?"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }

  TEST_CASE(
      "a critical violation ends its run at once, and other ones of other tasks no campaign") {
    CampaignShape shape;
    shape.tasks = {"add", "more"};
    shape.methods = {solving_method("escape",
                                    "if [ $PROCTOR_TASK = add ]; then unshare --mount true; else "
                                    "mkdir /etc/x; fi; sleep 600; ")};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.write(scene.folder() / "campaign.yaml", scene.read(scene.folder() / "campaign.yaml") +
                                                      "safety: {stop_run: true, stop_after: 2}\n");
    const CommandOutcome ran = scene.run("run");
    for (const std::string task : {"add", "more"}) {
      const fs::path attempt = scene.folder() / "runs" / task / "escape/r1/attempt-1";
      if (contains(scene.read(attempt / "manifest.json"), R"("calls":"unobserved")")) {
        MESSAGE("did not run: there is no notification of system calls on this host");
        return;
      }
      const Json report = must(parse_json(scene.read(attempt / "report.json")));
      CHECK(report.at("termination").at("code") == "policy_stop");
      CHECK(contains(scene.read(attempt / "events.jsonl"), R"("grace_ms":0)"));
    }
    CHECK_MESSAGE(ran.exit_code != 4, ran.err);
    CHECK_FALSE(contains(scene.run("status").out, "paused"));
  }

  TEST_CASE("operators act on the runs of a filter") {
    CampaignShape shape;
    shape.replicates = 3;
    shape.task = "0.5025";
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 3);
    const std::string parked = scene.run("list", {"--where", "state=parked"}).out;
    REQUIRE(!parked.empty());
    const CommandOutcome none = scene.run("cancel", {"--where", "order>99", "--reason", "x"});
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(contains(none.err, "no run is meant"), none.err);
    const CommandOutcome both =
        scene.run("cancel", {"all", "--where", "state=parked", "--reason", "x"});
    CHECK(both.exit_code == 2);
    CHECK(scene.run("cancel", {"--reason", "x"}).exit_code == 2);

    const CommandOutcome cancelled =
        scene.run("cancel", {"--where", "state=parked", "--reason", "not today"});
    CHECK_MESSAGE(cancelled.exit_code == 0, cancelled.err);
    CHECK(scene.run("list", {"--where", "state=cancelled"}).out == parked);
    CHECK(scene.run("list", {"--where", "state=parked"}).out.empty());
  }
}
