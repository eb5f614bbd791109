// A campaign's folder that is copied or moved while it runs: it is gone on with once.
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

TEST_SUITE("campaign") {
  TEST_CASE("a copy of a campaign's folder is not run beside the campaign") {
    const CampaignScene scene(gated_shape(2));
    Child run = scene.start("run");
    REQUIRE(eventually([&] { return scene.agents_run(1); }));
    const fs::path copy = scene.temp() / "copy";
    output_of({"cp", "-a", scene.folder().string(), copy.string()});
    const std::vector<std::vector<std::string>> goes_on{
        {"resume", copy.string()}, {"serve", "--resume-or-begin", copy.string()}};
    for (const auto& command : goes_on) {
      CAPTURE(command.front());
      const CommandOutcome refused = proctor::testing::proctor(command);
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "this campaign is running, in another folder: process " +
                                              std::to_string(run.pid())),
                    refused.err);
      CHECK(contains(refused.err, ", in " + scene.folder().string()));
    }
    scene.open_gate();
    CHECK(run.wait(180s) == 0);
    // The one that ran has ended, and its copy is what somebody has.
    const CommandOutcome gone_on = proctor::testing::proctor({"resume", copy.string()});
    CHECK_MESSAGE(gone_on.exit_code == 0, gone_on.err);
  }

  TEST_CASE("a folder that is moved while its campaign runs is told by its new place") {
    const CampaignScene scene(gated_shape(2));
    Child run = scene.start("run");
    REQUIRE(eventually([&] { return scene.agents_run(1); }));
    const fs::path moved = scene.temp() / "moved";
    fs::rename(scene.folder(), moved);
    scene.open_gate();
    CHECK(run.wait(180s) == 4);
    CHECK_MESSAGE(contains(scene.said(), "was moved to " + moved.string() + " while the campaign"),
                  scene.said());
    CHECK(contains(scene.said(), "go on with: proctor resume " + moved.string()));
    CHECK_FALSE(fs::exists(scene.state() / "status.json"));
    const std::string mounts = must(read_file("/proc/self/mountinfo", std::size_t{16} << 20));
    CHECK_FALSE(contains(mounts, scene.temp().string()));
    const CommandOutcome resumed = proctor::testing::proctor({"resume", moved.string()});
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(proctor::testing::proctor({"verify", moved.string()}).exit_code == 0);
  }
}
