// Redis that is not there, goes, freezes, or comes back empty: the campaign says so and waits.
#include "tests/support/books.h"
#include "tests/support/redis_server.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

bool waits(const CampaignScene& scene) {
  const Json status = scene.status();
  return !status.is_null() && status["state"].get<std::string>().starts_with("waiting for Redis");
}

CampaignShape with(const RedisServer& redis) {
  CampaignShape shape;
  shape.methods = {gated_method("gated"), "noop"};
  shape.replicates = 4;
  shape.redis = redis.address();
  return shape;
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("a Redis that does not answer at start is one clear line and exit code 4") {
    CampaignShape shape;
    shape.redis = "unix:/nowhere/redis.sock";
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 4);
    CHECK_MESSAGE(contains(ran.err, "/nowhere/redis.sock"), ran.err);
    // The line about the registration is the other one.
    std::size_t lines = 0;
    for (const char c : ran.err) lines += c == '\n';
    CHECK_MESSAGE(lines <= 2, ran.err);
    scene.require_nothing_left();
  }

  TEST_CASE("after a Redis that was not there at start the same command goes on") {
    RedisServer redis;
    CampaignShape shape = with(redis);
    shape.methods = {"noop"};
    const CampaignScene scene(shape);
    redis.kill();
    REQUIRE(scene.run("run").exit_code == 4);
    redis.start();
    CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    check_books(scene, {.runs = 4});
  }

  TEST_CASE("a start against a Redis that is full or read-only waits until it takes writes") {
    struct Row {
      std::vector<const char*> shut, open;
      const char* says;
    };
    for (const Row& row :
         {Row{{"config", "set", "maxmemory", "1"},
              {"config", "set", "maxmemory", "0"},
              "maxmemory"},
          Row{{"replicaof", "127.0.0.1", "1"}, {"replicaof", "no", "one"}, "read only replica"}}) {
      RedisServer redis;
      CampaignShape shape = with(redis);
      shape.methods = {"noop"};
      const CampaignScene scene(shape);
      redis.tell({row.shut.begin(), row.shut.end()});
      Child run = scene.start("run");
      REQUIRE_MESSAGE(eventually([&] { return waits(scene); }), scene.said());
      CHECK_MESSAGE(contains(scene.said(), "Redis is away"), scene.said());
      CHECK_MESSAGE(contains(scene.said(), row.says), scene.said());
      CHECK(scene.granted() == 0);
      redis.tell({row.open.begin(), row.open.end()});
      CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
      check_books(scene, {.runs = 4});
      scene.require_nothing_left();
    }
  }

  TEST_CASE("a start that cannot have the journal starts no Redis") {
    const CampaignScene scene;
    // A recovery that was interrupted: whoever wants to write has to finish it first.
    REQUIRE(make_dirs(scene.state()).ok());
    scene.write(scene.state() / "journal.sqlite.recovered", "");
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 2, ran.err);
    CHECK_MESSAGE(contains(ran.err, "proctor journal recover"), ran.err);
    CHECK_FALSE(fs::exists(scene.state() / "redis.log"));
    CHECK_FALSE(fs::exists(scene.state() / "redis.address"));
  }

  TEST_CASE("a Redis killed in the middle is waited for and may come back empty") {
    RedisServer redis;
    const CampaignScene scene(with(redis));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    redis.kill();
    scene.open_gate();  // results come, and nothing can be settled
    REQUIRE_MESSAGE(eventually([&] { return waits(scene); }), scene.said());
    CHECK(contains(scene.said(), "Redis is away"));
    CHECK(contains(scene.run("status").out, "waiting for Redis"));
    redis.start();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    CHECK(contains(scene.said(), "Redis is back"));
    CHECK(1 <= scene.number("SELECT count(*) FROM notes WHERE kind = 'redis_away'"));
    CHECK(1 <= scene.number("SELECT count(*) FROM notes WHERE kind = 'redis_back'"));
    check_books(scene, {.runs = 8});
    scene.require_nothing_left();
  }

  TEST_CASE("a Redis that freezes and thaws is waited for") {
    RedisServer redis;
    const CampaignScene scene(with(redis));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    redis.freeze();
    scene.open_gate();
    REQUIRE_MESSAGE(eventually([&] { return waits(scene); }), scene.said());
    redis.thaw();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    check_books(scene, {.runs = 8});
  }

  TEST_CASE("a Redis that comes back empty does not forget what was spent") {
    RedisServer redis;
    CampaignShape shape = with(redis);
    shape.methods = {gated_method("gated")};
    shape.replicates = 6;
    shape.global = shape.task = "0.5025";  // one at a time, and never all of them
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    redis.kill();
    redis.start();
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 3, scene.said());
    const std::int64_t parked = scene.number("SELECT count(*) FROM runs WHERE state = 'parked'");
    CHECK(0 < parked);
    check_books(scene, {.runs = 6, .parked = parked});
  }
}
