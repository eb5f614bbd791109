// What operators do with a shared envelope while no coordinator runs: `proctor budget leave` with a
// journal that knows less than Redis would give back what the campaign has spent.
#include <doctest/doctest.h>

#include "tests/support/campaign_scene.h"
#include "tests/support/redis_server.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("campaign") {
  TEST_CASE("a copy from before a campaign ran cannot leave the shared envelope for it") {
    RedisServer redis;
    CampaignShape shape;
    shape.replicates = 1;
    shape.workers = 1;
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "budget:\n",
               "budget:\n  shared: {name: lab, cap: \"60.00\"}\n");
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    REQUIRE(proctor::testing::proctor({"budget", "share", scene.folder().string()}).exit_code == 0);
    const fs::path copy = scene.temp() / "copy";
    fs::copy(scene.folder(), copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    const CommandOutcome stale = proctor::testing::proctor({"budget", "leave", copy.string()});
    CHECK(stale.exit_code == 4);
    CHECK_MESSAGE(contains(stale.err, "knows less than what is around it"), stale.err);
    const CommandOutcome own =
        proctor::testing::proctor({"budget", "leave", scene.folder().string()});
    CHECK_MESSAGE(own.exit_code == 0, own.err);
    CHECK_MESSAGE(contains(own.out, " has left lab and holds 0"), own.out);
  }

  TEST_CASE("a shared envelope that was raised while nobody ran is gone on with") {
    RedisServer redis;
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 1;
    shape.workers = 1;
    shape.redis = redis.address();
    // Room for one run of each, and not for a second one beside what the first have cost.
    shape.global = "0.5015";
    shape.task = "0.5015";
    const CampaignScene first(shape);
    shape.replicates = 2;
    const CampaignScene second(shape);
    for (const CampaignScene* scene : {&first, &second}) {
      scene->edit(scene->folder() / "campaign.yaml", "budget:\n",
                  "budget:\n  shared: {name: lab, cap: \"0.5015\"}\n");
      const CommandOutcome planned = scene->run("plan", {"--freeze"});
      REQUIRE_MESSAGE(planned.exit_code == 0, planned.err);
    }
    REQUIRE(proctor::testing::proctor({"budget", "share", first.folder().string()}).exit_code == 0);
    REQUIRE(first.run("run").exit_code == 0);
    const CommandOutcome ran = second.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 3, ran.err);
    const CommandOutcome raised =
        proctor::testing::proctor({"budget", "raise", second.folder().string(), "shared:lab",
                                   "60.00", "--reason", "more is there"});
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    const CommandOutcome resumed = second.run("resume");
    // On a slow host its own envelope may be too small by now, which is another matter.
    CHECK_MESSAGE((resumed.exit_code == 0 || resumed.exit_code == 3), resumed.err);
    CHECK_FALSE(contains(resumed.err, "the others one of"));
    const CommandOutcome verified = second.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }
}
