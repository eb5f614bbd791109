// What a campaign's readers say of it while no coordinator runs: the state that the last act left,
// not what the last coordinator wrote down before it.
#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

Json told(const CampaignScene& scene) {
  const CommandOutcome out = scene.run("status", {"--json"});
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

// `proctor WORD CAMPAIGN MORE` while no coordinator runs, which must be done.
void act(const CampaignScene& scene, const std::string& word, std::vector<std::string> more) {
  more.insert(more.end(), {"--by", "Ada"});
  const CommandOutcome out = scene.run(word, more);
  CAPTURE(word);
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
}

std::string worker_state(const Json& status, const std::string& name) {
  for (const Json& w : status.at("workers"))
    if (w.at("name") == name) return w.at("state").get<std::string>();
  return "not listed";
}

std::int64_t cap_of(const Json& status, const std::string& envelope) {
  for (const Json& e : status.at("envelopes"))
    if (e.at("name") == envelope) return e.at("cap_micro_usd").get<std::int64_t>();
  return -1;
}

// Six runs, of which the envelope of their task holds some.  One worker: it is given a run, or
// nobody knows its name without a coordinator.
CampaignShape short_of_money() {
  CampaignShape shape;
  shape.workers = 1;
  shape.replicates = 3;
  shape.task = "0.5025";
  shape.run = "0.50";
  return shape;
}

}  // namespace

TEST_SUITE("operator") {
  TEST_CASE("without a coordinator status and wait tell what each act left") {
    const CampaignScene scene(short_of_money());
    REQUIRE(scene.run("run").exit_code == 3);
    const std::int64_t parked = scene.number("SELECT count(*) FROM runs WHERE state = 'parked'");
    REQUIRE(0 < parked);
    Json status = told(scene);
    CHECK(status.at("state") == "complete");
    CHECK(status.at("parked") == parked);
    CHECK(status.at("queued") == 0);
    CHECK(worker_state(status, "local-1") == "gone");
    CHECK(scene.run("wait").exit_code == 3);
    CHECK(scene.run("wait", {"--until", "parked"}).exit_code == 0);

    const CommandOutcome raised =
        proctor::testing::proctor({"budget", "raise", scene.folder().string(), "task:add", "40.00",
                                   "--reason", "prices rose", "--by", "Ada"});
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    status = told(scene);
    CHECK(status.at("state") == "stopped");
    CHECK(status.at("parked") == 0);
    CHECK(status.at("queued") == parked);
    CHECK(cap_of(status, "task:add") == 40'000'000);
    const CommandOutcome waited = scene.run("wait", {"--grace", "0s"});
    CHECK(waited.exit_code == 1);
    CHECK_MESSAGE(contains(waited.err, "stopped: proctor resume"), waited.err);
    CHECK(scene.run("wait", {"--until", "parked", "--grace", "0s"}).exit_code == 1);
    const std::string text = scene.run("status").out;
    CHECK_MESSAGE(contains(text, "no coordinator"), text);
    CHECK_MESSAGE(contains(text, "it waits for proctor resume"), text);

    act(scene, "cancel", {"all", "--reason", "not needed"});
    status = told(scene);
    CHECK(status.at("cancelled") == parked);
    CHECK(status.at("queued") == 0);
    CHECK(status.at("state") == "complete");
    CHECK(scene.run("wait").exit_code == 0);

    act(scene, "requeue", {"all"});
    status = told(scene);
    CHECK(status.at("cancelled") == 0);
    CHECK(status.at("queued") == parked);
    // What was done to many runs at once, or to an envelope, is in the story of each.
    std::int64_t requeued = 0;
    for (const char* run : {"add/noop/r1", "add/noop/r2", "add/noop/r3", "add/reference/r1",
                            "add/reference/r2", "add/reference/r3"}) {
      const std::string story = scene.run("story", {run}).out;
      CHECK_MESSAGE(contains(story, "envelope task:add raised from"), story);
      requeued += contains(story, "operator Ada: requeue all") ? 1 : 0;
    }
    CHECK(requeued == parked);

    act(scene, "pause", {"--reason", "lunch"});
    CHECK(told(scene).at("state") == "stopped; paused");
    CHECK(contains(scene.run("status").out, "it waits for proctor unpause and proctor resume"));
    act(scene, "unpause", {});
    CHECK(told(scene).at("state") == "stopped");

    act(scene, "drain", {"local-1"});
    CHECK(worker_state(told(scene), "local-1") == "gone; drained");
    act(scene, "quarantine", {"local-1", "--reason", "its disk"});
    CHECK(worker_state(told(scene), "local-1") == "gone; quarantined: its disk (Ada)");
    act(scene, "release", {"local-1"});
    CHECK(worker_state(told(scene), "local-1") == "gone");

    const CommandOutcome resumed = scene.run("resume");
    REQUIRE_MESSAGE(resumed.exit_code == 0, resumed.err);
    status = told(scene);
    CHECK(status.at("state") == "complete");
    CHECK(status.at("queued") == 0);
    CHECK(status.at("success").get<int>() + status.at("failure").get<int>() == 6);
    CHECK(scene.run("wait").exit_code == 0);
    const CommandOutcome again = proctor::testing::proctor(
        {"budget", "raise", scene.folder().string(), "task:add", "41.00", "--reason", "in vain"});
    CHECK_MESSAGE(contains(again.out, "there is nothing to go on with"), (again.out + again.err));
  }

  TEST_CASE("a campaign without its status file stands where its journal says") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    fs::remove(scene.state() / "status.json");
    const Json status = told(scene);
    CHECK(status.at("state") == "complete");
    CHECK(status.at("planned") == 4);
    CHECK(scene.run("wait").exit_code == 0);
  }

  TEST_CASE("a status file without its journal is told to be a dead coordinator's word") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    fs::rename(scene.state() / "journal.sqlite", scene.temp() / "aside");
    const CommandOutcome out = scene.run("status");
    CHECK(out.exit_code == 0);
    CHECK_MESSAGE(contains(out.out, "complete"), out.out);
    CHECK_MESSAGE(contains(out.err, "this is what its last coordinator said"), out.err);
    const CommandOutcome wait = scene.run("wait");
    CHECK(wait.exit_code == 4);
    CHECK_MESSAGE(contains(wait.err, "its last coordinator said: complete; 4 of 4"), wait.err);
  }

  TEST_CASE("a task that is taken out takes its parked runs along, also when money comes later") {
    const CampaignScene scene(short_of_money());
    REQUIRE(scene.run("run").exit_code == 3);
    REQUIRE(0 < told(scene).at("parked").get<int>());
    act(scene, "remove-task", {"add", "--reason", "its suite is flaky"});
    const auto all_are_out = [&] {
      const Json status = told(scene);
      CHECK(status.at("parked") == 0);
      CHECK(status.at("removed") == 6);
      const Json report = must(parse_json(scene.run("report", {"--json"}).out));
      for (const Json& run : report.at("runs")) CHECK(run.at("state") == "removed");
      CHECK(scene.run("wait").exit_code == 0);
      CHECK(scene.run("verify").exit_code == 0);
    };
    all_are_out();
    const CommandOutcome raised =
        proctor::testing::proctor({"budget", "raise", scene.folder().string(), "task:add", "40.00",
                                   "--reason", "prices rose", "--by", "Ada"});
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    CHECK(scene.run("resume").exit_code == 0);
    all_are_out();
  }

  TEST_CASE(
      "a task that is taken out leaves every count with its runs, and verify holds who says so") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string registered = scene.read(scene.folder() / "registration.json");
    const CommandOutcome out =
        scene.run("remove-task", {"add", "--by", "Ada", "--reason", "its suite is flaky"});
    REQUIRE_MESSAGE(out.exit_code == 0, out.err);
    const Json status = told(scene);
    CHECK(status.at("planned") == 0);
    CHECK(status.at("removed") == 4);
    CHECK(status.at("success").get<int>() + status.at("failure").get<int>() == 0);
    const CommandOutcome wait = scene.run("wait");
    CHECK(wait.exit_code == 0);
    CHECK_MESSAGE(contains(wait.err, "complete: 0 of 0 runs ended"), wait.err);
    const std::string why = scene.run("explain", {"add/noop/r1"}).out;
    CHECK_MESSAGE(contains(why, "its task was taken out at"), why);
    const std::string story = scene.run("story", {"add/noop/r1"}).out;
    CHECK_MESSAGE(contains(story, "task removed: add: its suite is flaky"), story);
    const std::string report = scene.run("report").out;
    CHECK_MESSAGE(contains(report, "task add was taken out by Ada: its suite is flaky"), report);
    CHECK(scene.run("verify").exit_code == 0);
    // As if nobody had taken it out, and another reason than the one that was given.
    const std::string removed = scene.read(scene.folder() / "registration.json");
    scene.write(scene.folder() / "registration.json", registered);
    CommandOutcome verify = scene.run("verify");
    CHECK(verify.exit_code == 1);
    CHECK_MESSAGE(contains(verify.out, "it has no removal of the task"), verify.out);
    std::string forged = removed;
    forged.replace(forged.find("its suite is flaky"), 18, "it uses the network");
    scene.write(scene.folder() / "registration.json", forged);
    verify = scene.run("verify");
    CHECK(verify.exit_code == 1);
    CHECK_MESSAGE(contains(verify.out, "which the journal knows nothing of"), verify.out);
  }

  TEST_CASE("runs that a person decides are counted and named, and nobody waits for them in vain") {
    CampaignShape shape;
    shape.methods = {"{name: busy, kind: command, command: exit 75, overload_exit: 75}"};
    shape.workers = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml",
               "strata:", "retries: {escalate: true, overload: 0}\nstrata:");
    Child run = scene.start("run");
    const CommandOutcome wait = scene.run("wait");
    CHECK(wait.exit_code == 5);
    CHECK_MESSAGE(contains(wait.err, "proctor approve"), wait.err);
    CHECK(scene.run("wait", {"--until", "parked"}).exit_code == 0);
    const Json status = told(scene);
    CHECK(status.at("waiting_for_person") == 2);
    CHECK(contains(status.at("eta_waits").get<std::string>(), "a person"));
    const std::string text = scene.run("status").out;
    CHECK_MESSAGE(contains(text, "2 wait for a person"), text);
    CHECK_MESSAGE(contains(text, "add/busy/r1: no attempt is left"), text);
    act(scene, "cancel", {"all", "--reason", "its provider is full"});
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    CHECK(scene.run("wait").exit_code == 0);
    scene.require_nothing_left();
  }

  TEST_CASE("a killed coordinator's runs stay open, and what is cancelled meanwhile is cancelled") {
    CampaignShape shape;
    shape.methods = {gated_method("gated"), gated_method("other")};
    shape.replicates = 2;
    shape.workers = 1;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGKILL);
    REQUIRE(run.wait(180s) == 128 + SIGKILL);
    Json status = told(scene);
    CHECK(contains(status.at("state").get<std::string>(), "interrupted: its coordinator is gone"));
    CHECK(status.at("running").get<int>() + status.at("queued").get<int>() == 4);
    CHECK(status.at("running").get<std::int64_t>() == scene.granted());
    act(scene, "cancel", {"all", "--reason", "not needed"});
    status = told(scene);
    CHECK(status.at("cancelled") == 4);
    CHECK(contains(status.at("state").get<std::string>(), "interrupted: its coordinator is gone"));
    CHECK(scene.run("wait", {"--grace", "0s"}).exit_code == 4);  // what it had out is not paid for
    scene.open_gate();
    CHECK_MESSAGE(scene.run("resume").exit_code == 0, scene.said());
    CHECK(told(scene).at("state") == "complete");
    // Who reads a rate is told what somebody chose not to count.
    const std::string report = scene.run("report").out;
    CHECK_MESSAGE(contains(report, "4 runs were cancelled (all) by Ada: not needed"), report);
    // What its worker finished meanwhile decides nothing, as it should.
    const CommandOutcome verify = scene.run("verify");
    CHECK_MESSAGE(verify.exit_code == 0, verify.out);
    scene.require_nothing_left();
  }
}
