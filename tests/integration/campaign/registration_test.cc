// What is registered cannot change without being named; a task leaves only with a reason.
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

void refuses(const CampaignScene& scene, std::string_view naming) {
  for (const char* command : {"run", "resume"}) {
    CAPTURE(command);
    const CommandOutcome ran = scene.run(command);
    CHECK(ran.exit_code == 2);
    CHECK_MESSAGE(contains(ran.err, "differs from its registration"), ran.err);
    CHECK_MESSAGE(contains(ran.err, naming), ran.err);
  }
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("a campaign that changed after its freeze is refused and what differs is named") {
    const CampaignScene scene;
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const std::string contract = scene.read(scene.contract());
    scene.edit(scene.contract(), "must print the sum", "must print the difference");
    refuses(scene, "add");
    scene.write(scene.contract(), contract);

    const fs::path plan = scene.folder() / "pilot_randomization_plan.csv";
    const std::string rows = scene.read(plan);
    std::string swapped = rows;  // the plan's last row is said to have another seed
    const std::size_t digit = swapped.find_last_of("0123456789");
    swapped[digit] = swapped[digit] == '1' ? '2' : '1';
    scene.write(plan, swapped);
    refuses(scene, "plan");
    scene.write(plan, rows);

    const fs::path yaml = scene.folder() / "campaign.yaml";
    const std::string campaign = scene.read(yaml);
    scene.edit(yaml, "50.00", "51.00");
    refuses(scene, "envelope");
    scene.write(yaml, campaign);
    scene.edit(yaml, "strata:", "task_caps: {add: {tokens: 5}}\nstrata:");
    refuses(scene, "limit task:add:tokens");
    scene.write(yaml, campaign);
    scene.edit(yaml, "strata:", "infrastructure_retries: 9\nstrata:");
    refuses(scene, "limit infrastructure_retries");
    scene.write(yaml, campaign);
    const fs::path fix = scene.folder() / "contracts/fix.patch";
    const std::string patch = scene.read(fix);
    scene.edit(fix, "+echo $(($1 + $2))", "+echo $(($2 + $1))");
    refuses(scene, "add");
    CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));
    scene.write(fix, patch);
    // Drawn again, a plan that was taken away is the registered one.
    fs::remove(plan);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(contains(ran.err, "was gone: it was drawn again"));
    CHECK(scene.read(plan) == rows);
  }

  TEST_CASE("who only looks registers nothing") {
    const CampaignScene scene;
    for (const char* command : {"report", "verify", "budget", "status"}) {
      CAPTURE(command);
      const CommandOutcome looked = scene.run(command);
      CHECK(looked.exit_code == 2);
      CHECK_MESSAGE((contains(looked.err, "is not registered yet: proctor plan --freeze") ||
                     contains(looked.err, "has not been run yet")),
                    looked.err);
    }
    CHECK(scene.run("explain", {"add/noop/r1"}).exit_code == 2);
    CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
    CHECK_FALSE(fs::exists(scene.folder() / "pilot_randomization_plan.csv"));
    CHECK_FALSE(fs::exists(scene.state()));
  }

  TEST_CASE("whoever goes on with what never began registers nothing") {
    const CampaignScene scene;
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
      const CommandOutcome said = scene.run(more.empty() ? "resume" : "serve", more);
      CHECK(said.exit_code == 2);
      CHECK_MESSAGE(contains(said.err, "nothing of this campaign has run yet: proctor run "),
                    said.err);
      CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
    }
  }

  TEST_CASE("a campaign put back as it was registered runs") {
    CampaignShape shape;
    shape.replicates = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const std::string contract = scene.read(scene.contract());
    scene.edit(scene.contract(), "60s", "61s");
    REQUIRE(scene.run("run").exit_code == 2);
    scene.write(scene.contract(), contract);
    CHECK(scene.run("run").exit_code == 0);
    check_books(scene, {.runs = 2});
  }

  TEST_CASE("a task leaves a registered campaign with a reason that is journaled") {
    CampaignShape shape;
    shape.tasks = {"add", "sum"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    CHECK(scene.run("remove-task", {"sum"}).exit_code == 2);  // no reason
    CHECK(scene.run("remove-task", {"prod", "--reason", "not there"}).exit_code == 2);
    const CommandOutcome removed =
        scene.run("remove-task", {"sum", "--by", "Ada", "--reason", "suite is flaky"});
    REQUIRE_MESSAGE(removed.exit_code == 0, removed.err);
    const Json notes = scene.sql("SELECT detail FROM notes WHERE kind = 'task_removed'");
    REQUIRE(notes.size() == 1);
    CHECK(notes[0]["detail"] == "sum: suite is flaky (by Ada)");
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(scene.ended() == 2);
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& run : report["runs"])
      CHECK(run["state"] == (run["task"] == "sum" ? "removed" : "ended"));
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a task that is removed after its runs have ended takes them out of every rate") {
    CampaignShape shape;
    shape.tasks = {"add", "sum"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome removed = scene.run("remove-task", {"sum", "--reason", "suite is flaky"});
    REQUIRE_MESSAGE(removed.exit_code == 0, removed.err);
    const CommandOutcome shown = scene.run("report");
    CHECK_MESSAGE(contains(shown.out, "Ended runs of removed tasks"), shown.out);
    CHECK_FALSE(contains(shown.out, "What the words mean\n"));
    CHECK(contains(scene.run("report", {"--words"}).out, "What the words mean\n"));
    CHECK(contains(scene.read(scene.folder() / "reports/report.txt"), "What the words mean\n"));
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& row : report["rows"])
      if (row["method"] == "reference") CHECK(row["success"] == 1);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a registration whose journal was taken away is not run again in silence") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    const auto begin_anew = [&] {
      for (const char* made : {".proctor", "runs", "reports"})
        REQUIRE(remove_tree(scene.folder() / made).ok());
    };
    begin_anew();
    const CommandOutcome refused = scene.run("run");
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, "was run on this host before"), refused.err);
    CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));
    const CommandOutcome again = scene.run("run", {"--again"});
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    const std::string said = "this registration was run before on the coordinator's host";
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK(contains(verified.out, said));
    CHECK(contains(scene.run("report", {"--json"}).out, said));
  }

  TEST_CASE("a frozen plan is not drawn again") {
    const CampaignScene scene;
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const std::string registration = scene.read(scene.folder() / "registration.json");
    CHECK(scene.run("plan", {"--freeze"}).exit_code == 0);
    CHECK(scene.read(scene.folder() / "registration.json") == registration);
  }
}
