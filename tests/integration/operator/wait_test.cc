// `proctor wait`: every exit code that it promises to scripts.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>

#include "common/base/owned.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// The status as its coordinator left it, with some members otherwise.
void pretend(const CampaignScene& scene, const Json& otherwise) {
  Json status = parse_json(scene.read(scene.state() / "status.json")).value();
  status.update(otherwise);
  scene.write(scene.state() / "status.json", status.dump());
}

}  // namespace

TEST_SUITE("wait") {
  TEST_CASE("what nobody can wait for is wrong input") {
    const CampaignScene scene;
    const CommandOutcome nowhere =
        proctor::testing::proctor({"wait", (scene.temp() / "nowhere").string()});
    CHECK(nowhere.exit_code == 2);
    const CommandOutcome what = scene.run("wait", {"--until", "noon"});
    CHECK(what.exit_code == 2);
    CHECK_MESSAGE(contains(what.err, "--until: found noon, expected end, parked, or runs:COUNT"),
                  what.err);
    CHECK(scene.run("wait", {"--until", "runs:0"}).exit_code == 2);
    CHECK(scene.run("wait", {"--timeout", "soon"}).exit_code == 2);
  }

  TEST_CASE("it waits for a beginning, for runs on the way, and for the end") {
    const CampaignScene scene(gated_shape(2));
    const CommandOutcome early = scene.run("wait", {"--timeout", "1ms"});
    CHECK(early.exit_code == 124);
    CHECK_MESSAGE(contains(early.err, "has not been run yet"), early.err);
    Child end = scene.start("wait", {}, "end");
    Child runs = scene.start("wait", {"--until", "runs:1", "--quiet"}, "runs");
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    // The gate is closed: no run has ended, and none can.
    CHECK(scene.run("wait", {"--until", "runs:1", "--timeout", "1ms"}).exit_code == 124);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(300s) == 0, scene.said());
    CHECK_MESSAGE(end.wait(300s) == 0, scene.said("end"));
    CHECK_MESSAGE(contains(scene.said("end"), "complete: 2 of 2 runs ended"), scene.said("end"));
    CHECK_MESSAGE(runs.wait(300s) == 0, scene.said("runs"));
    CHECK(scene.said("runs").empty());
    // What never came.
    CHECK(scene.run("wait", {"--until", "runs:3"}).exit_code == 1);
    CHECK(scene.run("wait", {"--until", "parked"}).exit_code == 1);
    CHECK(scene.run("wait", {"--until", "runs:2"}).exit_code == 0);
    scene.require_nothing_left();
  }

  TEST_CASE("a stopped campaign that somebody is about to go on with is waited for") {
    const CampaignScene scene(gated_shape(2));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGINT);
    run.signal(SIGTERM);
    REQUIRE_MESSAGE(run.wait(180s) == 1, scene.said());
    const CommandOutcome stopped = scene.run("wait", {"--grace", "0s"});
    CHECK_MESSAGE(stopped.exit_code == 1, stopped.err);
    scene.open_gate();
    // As in: proctor resume camp & proctor wait camp
    Child end = scene.start("wait", {"--grace", "1m"}, "end");
    Child resumed = scene.start("resume", {}, "resumed");
    CHECK_MESSAGE(end.wait(300s) == 0, scene.said("end"));
    CHECK_MESSAGE(contains(scene.said("end"), "complete: 2 of 2 runs ended"), scene.said("end"));
    CHECK_MESSAGE(resumed.wait(300s) == 0, scene.said("resumed"));
    // Whoever has not come as far as the journal is seen by its mark.
    pretend(scene, {{"state", "stopped"}});
    fs::rename(scene.state() / "journal.sqlite", scene.temp() / "aside");
    {
      const UniqueFd mark(::open((scene.folder() / "registration.json").c_str(), O_RDONLY));
      REQUIRE(::flock(mark.get(), LOCK_SH) == 0);
      CHECK(scene.run("wait", {"--grace", "0s", "--timeout", "1ms"}).exit_code == 124);
    }
    CHECK(scene.run("wait", {"--grace", "0s"}).exit_code == 1);
    CHECK(scene.run("wait", {"--grace", "soon"}).exit_code == 2);
    scene.require_nothing_left();
  }

  TEST_CASE("an end has an exit code of its own for stops, money, people and a dead coordinator") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(scene.run("wait").exit_code == 0);
    // Without a journal the status file is all there is.
    fs::rename(scene.state() / "journal.sqlite", scene.temp() / "aside");
    pretend(scene, {{"state", "stopped"}});
    const CommandOutcome stopped = scene.run("wait", {"--grace", "0s"});
    CHECK(stopped.exit_code == 1);
    CHECK_MESSAGE(contains(stopped.err, "proctor resume"), stopped.err);
    pretend(scene, {{"state", "complete"}, {"parked", 2}, {"faulty", 1}});
    CHECK(scene.run("wait").exit_code == 3);
    CHECK(scene.run("wait", {"--until", "parked"}).exit_code == 0);
    pretend(scene, {{"state", "complete"}, {"parked", 2}, {"faulty", 2}});
    const CommandOutcome person = scene.run("wait");
    CHECK(person.exit_code == 5);
    CHECK_MESSAGE(contains(person.err, "wait for a person"), person.err);
    // Whoever has its number by now, its journal is nobody's.
    pretend(scene, {{"state", "running"}, {"parked", 0}, {"faulty", 0}, {"pid", ::getpid()}});
    const CommandOutcome gone = scene.run("wait", {"--grace", "0s"});
    CHECK(gone.exit_code == 4);
    CHECK_MESSAGE(contains(gone.err, "its coordinator is gone"), gone.err);
  }
}
