// Stages with tasks and replicates of their own, as users see them before anything runs.
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("stages") {
  TEST_CASE("check, plan, list and report know how many runs each stage has") {
    CampaignShape shape;
    shape.tasks = {"add", "mul", "sub"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    const fs::path yaml = scene.folder() / "campaign.yaml";
    scene.edit(yaml, "replicates: 1\n",
               "replicates: 1\nstages:\n"
               "  - {name: pilot, tasks: [mul]}\n"
               "  - {name: full, replicates: 2, entry: [{invalid_share: \"0.05\"}],\n"
               "     approval: {people: 2}}\n");
    const CommandOutcome check = scene.run("check");
    REQUIRE_MESSAGE(check.exit_code == 0, check.err);
    CHECK_MESSAGE(contains(check.out, "3 tasks x 2 methods, 2 stages, 14 runs"), check.out);
    CHECK_MESSAGE(contains(check.out, "1 task x 2 methods x 1 replicate = 2 runs"), check.out);
    CHECK_MESSAGE(contains(check.out, "3 tasks x 2 methods x 2 replicates = 12 runs"), check.out);
    const CommandOutcome plan = scene.run("plan", {"--freeze"});
    REQUIRE_MESSAGE(plan.exit_code == 0, plan.err);
    CHECK_MESSAGE(contains(plan.out, "14 runs, seed"), plan.out);
    CHECK_MESSAGE(contains(plan.out, "stage pilot"), plan.out);
    for (const CommandOutcome& told : {check, plan})
      CHECK_MESSAGE(contains(told.out, "    entry invalid_share 0.05; exit none; approval of 2\n"),
                    told.out);

    const CommandOutcome list = scene.run("list", {"--where", "stage = \"pilot\""});
    CHECK_MESSAGE(list.exit_code == 0, list.err);
    CHECK_MESSAGE(contains(list.err, "2 of 14 runs"), list.err);
    CHECK_MESSAGE(contains(list.out, "mul/noop/r1\n"), list.out);
    const CommandOutcome typo = scene.run("list", {"--where", "stage=pilt"});
    CHECK(typo.exit_code == 2);
    CHECK_MESSAGE(contains(typo.err, "did you mean pilot"), typo.err);

    const CommandOutcome whole = scene.run("report");
    REQUIRE_MESSAGE(whole.exit_code == 0, whole.err);
    CHECK_MESSAGE(contains(whole.out, "Stages: pilot and full."), whole.out);
    CHECK_MESSAGE(contains(whole.out, "stage=full"), whole.out);
    const std::string csv = scene.read(scene.folder() / "reports/runs.csv");
    CHECK_MESSAGE(contains(csv, ",started_ms,stage,"), csv.substr(0, 600));
    const CommandOutcome part = scene.run("report", {"--stage", "pilot"});
    REQUIRE_MESSAGE(part.exit_code == 0, part.err);
    CHECK_MESSAGE(contains(part.out, "This is stage pilot alone, 2 of 14 runs."), part.out);
    // What lies there is of the whole campaign still.
    CHECK(scene.read(scene.folder() / "reports/runs.csv") == csv);
    const CommandOutcome none = scene.run("report", {"--stage", "pilots"});
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(contains(none.err, "there is no stage pilots (did you mean pilot?)"), none.err);
    CHECK(scene.run("report", {"--stage", "pilot", "--form", "inspect"}).exit_code == 2);

    // They are registered: another order is another campaign.
    scene.edit(yaml, "full, replicates: 2", "full, order: tasks, replicates: 2");
    const CommandOutcome changed = scene.run("plan", {"--freeze"});
    CHECK(changed.exit_code == 2);
    CHECK_MESSAGE(contains(changed.err, "tasks of stage full"), changed.err);
    scene.require_nothing_left();
  }
}
