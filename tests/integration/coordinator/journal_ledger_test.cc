// `budget.ledger: journal`: the same campaign without any Redis, killed, short of money, resumed.
#include <csignal>

#include "tests/support/books.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape without_redis(int replicates) {
  CampaignShape shape;
  shape.methods = {gated_method("gated"), "noop"};
  shape.replicates = replicates;
  shape.ledger = "journal";
  return shape;
}

bool redis_runs(const CampaignScene& scene) {
  for (const pid_t pid : processes_of(scene.temp())) {
    const Result<std::string> name = read_file("/proc/" + std::to_string(pid) + "/comm", 100);
    if (name.ok() && contains(*name, "redis")) return true;
  }
  return false;
}

void kill_now(Child& child) {
  child.signal(SIGKILL);
  REQUIRE(child.wait(180s) == 128 + SIGKILL);
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("without a Redis a campaign is killed and resumed and its books balance") {
    const CampaignScene scene(without_redis(3));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    CHECK_FALSE(redis_runs(scene));
    kill_now(run);
    scene.open_gate();
    Child second = scene.start("resume");
    REQUIRE_MESSAGE(eventually([&] { return 2 <= scene.ended(); }), scene.said());
    kill_now(second);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(scene.number("SELECT count(*) FROM epochs") == 3);
    check_books(scene, {.runs = 6});
    CHECK_FALSE(fs::exists(scene.state() / "redis.log"));
    scene.require_nothing_left();
  }

  TEST_CASE("without a Redis what was spent before a kill is not spent again") {
    CampaignShape shape = without_redis(6);
    shape.methods = {gated_method("gated")};
    shape.global = shape.task = "0.5025";  // one at a time, and never all of them
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    kill_now(run);
    scene.open_gate();
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 3, resumed.err);
    const std::int64_t parked = scene.number("SELECT count(*) FROM runs WHERE state = 'parked'");
    CHECK(0 < parked);
    check_books(scene, {.runs = 6, .parked = parked});
  }
}
