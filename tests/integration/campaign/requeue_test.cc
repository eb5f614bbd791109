// Runs that ended invalid are run again, the result they had is kept and shown, and nobody gets
// more attempts than were registered.
#include <fstream>

#include "tests/support/books.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Its setup fails while the host lacks a file, and no network excuses that.
void need_ready(const CampaignScene& scene, const std::string& task) {
  scene.edit(scene.contract(task),
             "checks:", "setup:\n  - {command: test -e /opt/gate/ready, cache: false}\nchecks:");
}

void check_audit(const CampaignScene& scene) {
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                            scene.folder().string()}),
                 ": 0 problems"));
}

}  // namespace

TEST_SUITE("money") {
  TEST_CASE("invalid runs are run again and their first result is kept and shown") {
    CampaignShape shape;
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "infrastructure_retries: 1\nstrata: [language, type]");
    need_ready(scene, "add");
    const CommandOutcome ran = scene.run("run");
    REQUIRE(ran.exit_code == 1);  // nothing was measured
    CHECK_MESSAGE(contains(ran.err, " all --invalid, then "), ran.err);
    REQUIRE(scene.number("SELECT count(*) FROM runs WHERE outcome = 'invalid'") == 2);
    const CommandOutcome plain = scene.run("requeue", {"all"});
    CHECK(plain.exit_code == 2);
    CHECK_MESSAGE(contains(plain.err, "--invalid"), plain.err);

    const CommandOutcome again =
        scene.run("requeue", {"--invalid", "--reason", "the disk was full", "--by", "Ada"});
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    CHECK_MESSAGE(contains(again.out, "2 runs in line again, the first result kept"), again.out);
    CHECK(scene.number("SELECT count(*) FROM runs") == 0);
    const Json status = must(parse_json(scene.run("status", {"--json"}).out));
    CHECK(status.at("invalid") == 0);
    CHECK(status.at("queued") == 2);
    CHECK(status.at("state") == "stopped");
    CHECK(scene.run("verify").exit_code == 0);  // also while they wait
    CHECK(contains(scene.run("report").out, "add/noop/r1: attempt 1 invalid"));
    scene.write(scene.temp() / "gate/ready", "");
    REQUIRE(scene.run("resume").exit_code == 0);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success' AND attempt = 2") == 1);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'failure' AND attempt = 2") == 1);

    const std::string report = scene.run("report").out;
    CHECK_MESSAGE(contains(report, "Invalid results that were set aside"), report);
    CHECK_MESSAGE(contains(report, "add/reference/r1: attempt 1 invalid, infrastructure: setup "),
                  report);
    CHECK_MESSAGE(contains(report, "again by Ada (the disk was full): now success"), report);
    const CommandOutcome why = scene.run("explain", {"add/reference/r1"});
    CHECK_MESSAGE(contains(why.out, "; set aside by Ada (the disk was full)"), why.out);
    CHECK_MESSAGE(contains(why.out, "attempt 2 on"), why.out);
    const std::string runs = scene.read(scene.folder() / "reports/runs.csv");
    CHECK_MESSAGE(contains(runs, "attempt 1: invalid, infrastructure: setup"), runs);
    const Json json = must(parse_json(scene.run("report", {"--json"}).out));
    CHECK(json["runs"][0]["set_aside"][0]["attempt"] == 1);
    CHECK(json["runs"][0]["set_aside"][0]["by"] == "Ada");
    CHECK(fs::exists(scene.folder() / "runs/add/noop/r1/attempt-1/report.json"));
    check_audit(scene);

    // Nothing is left to run again.
    const CommandOutcome vain = scene.run("requeue", {"--invalid"});
    CHECK(vain.exit_code == 2);
    CHECK_MESSAGE(contains(vain.err, "none of them ended invalid"), vain.err);
  }

  TEST_CASE("a running coordinator runs invalid runs again, and no more often than registered") {
    CampaignShape shape = gated_shape(1);
    shape.tasks = {"add", "bad"};
    shape.run = "1.00";  // of an agent that may wait for half an hour
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "infrastructure_retries: 1\nstrata: [language, type]");
    need_ready(scene, "bad");
    Child ran = scene.start("run", {"--slots", "2"});
    const auto bad_ended = [&](int attempts) {
      return eventually([&] {
        return scene.number("SELECT count(*) FROM runs WHERE outcome = 'invalid' AND attempt = " +
                            std::to_string(attempts)) == 1;
      });
    };
    REQUIRE_MESSAGE(bad_ended(1), scene.said());
    CHECK(scene.run("requeue", {"add", "--invalid"}).exit_code == 2);
    const CommandOutcome again = scene.run("requeue", {"bad", "--invalid"});
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    REQUIRE_MESSAGE(bad_ended(2), scene.said());
    const CommandOutcome vain = scene.run("requeue", {"bad", "--invalid"});
    CHECK(vain.exit_code == 2);
    CHECK_MESSAGE(contains(vain.err, "1 run has no attempt left of those that were registered"),
                  vain.err);
    scene.open_gate();
    CHECK(ran.wait(std::chrono::seconds(180)) == 0);
    CHECK_FALSE(contains(scene.said(), "proctor requeue"));
    check_audit(scene);
    scene.require_nothing_left();
  }

  TEST_CASE("a run whose patch could not be judged is said to be so, and no requeue is advised") {
    const CampaignScene scene(gated_shape(1));
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "infrastructure_retries: 2\nstrata: [language, type]");
    Child run = scene.start("run");
    REQUIRE(eventually([&] { return scene.agents_run(1); }, std::chrono::seconds(180)));
    // The agent's sandbox has its toolchain still; those of its checks cannot.
    fs::rename(scene.temp() / "gate", scene.temp() / "gone");
    std::ofstream(scene.temp() / "gone/open", std::ios::app) << "open\n" << std::flush;
    CHECK(run.wait(std::chrono::seconds(180)) == 1);
    CHECK_FALSE(contains(scene.said(), "proctor requeue"));
    CHECK_MESSAGE(contains(scene.said(), "1 of the runs left a patch that this host kept from"),
                  scene.said());
    CHECK(scene.run("requeue", {"all", "--invalid"}).exit_code == 2);
    CHECK(scene.number("SELECT count(*) FROM attempts") == 1);
    const std::string why = scene.run("explain", {"add/gated/r1"}).out;
    CHECK_MESSAGE(contains(why, "    judged again from the same patch, 2 times, "), why);
    CHECK_MESSAGE(contains(why, "/gate is not there"), why);
    const std::string story = scene.run("story", {"add/gated/r1"}).out;
    CHECK_MESSAGE(contains(story, "; judged again from the same patch, 2 times, "), story);
    CHECK_MESSAGE(contains(why, "    patch: applied, exact\n"), why);
    CHECK_MESSAGE(contains(why, "    gate patch: pass"), why);
    check_audit(scene);
  }
}
