// `proctor verify` beside a Redis that holds the campaign: it fits, or the first thing that does
// not is named.
#include <doctest/doctest.h>

#include <csignal>
#include <random>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/redis_server.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

std::string cli(const std::string& address, std::vector<std::string> words) {
  words.insert(words.begin(), {"redis-cli", "-s", address.substr(5)});
  std::string out = output_of(std::move(words));
  while (out.ends_with('\n')) out.pop_back();
  return out;
}
std::string key_of(const std::string& address, const std::string& part) {
  return cli(address, {"KEYS", "proctor:*:" + part});
}

// Exactly this many problems, of which the first names this.
void finds(const CampaignScene& scene, const std::string& first) {
  const CommandOutcome verified = scene.run("verify");
  CHECK(verified.exit_code == 1);
  const std::string at = "\n" + verified.out;
  CHECK_MESSAGE(contains(at, "\n" + first), verified.out);
}

void finds_no_problem(const CampaignScene& scene) {
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 0, verified.out);
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("verify compares the envelopes of a campaign that ended with the Redis it used") {
    RedisServer redis;
    CampaignShape shape;
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome good = scene.run("verify");
    CHECK_MESSAGE(good.exit_code == 0, good.out);
    CHECK_MESSAGE(contains(good.out, "redis: 3 envelopes and "), good.out);

    const std::string scopes = key_of(redis.address(), "scopes");
    const std::string rows = key_of(redis.address(), "rows");
    const std::string keys = scopes.substr(0, scopes.size() - std::string("scopes").size());
    std::mt19937 random(20260307);
    for (int i = 0; i < 12; ++i) {
      const std::string index = std::to_string(random() % 3);
      const std::string before = cli(redis.address(), {"HGET", scopes, index});
      std::istringstream numbers(before);
      std::int64_t n[3]{};
      numbers >> n[0] >> n[1] >> n[2];
      n[random() % 3] += random() % 2 == 0 ? 1 : 1'000'000;
      const std::string now =
          std::to_string(n[0]) + " " + std::to_string(n[1]) + " " + std::to_string(n[2]);
      CAPTURE(now);
      cli(redis.address(), {"HSET", scopes, index, now});
      finds(scene, "redis: envelope ");
      CHECK(contains(scene.run("verify").out, "holds " + now + ", the journal says " + before));
      cli(redis.address(), {"HSET", scopes, index, before});
    }
    cli(redis.address(), {"HDEL", scopes, "1"});
    finds(scene, "redis: envelope stage:main: holds nothing");
    cli(redis.address(), {"DEL", scopes});
    finds(scene, "redis: envelope global: holds nothing");
    cli(redis.address(), {"HSET", keys + "head", "epoch", "0"});
    CHECK(contains(scene.run("verify").out, "redis: holds epoch 0 of an earlier life"));
    cli(redis.address(), {"HSET", keys + "head", "epoch", "9"});
    finds(scene, "redis: head: holds the epoch \"9\", the journal's last is 1");
    cli(redis.address(), {"FLUSHALL"});
    CHECK(contains(scene.run("verify").out, "redis: holds nothing of this campaign"));
    redis.kill();
    const CommandOutcome alone = scene.run("verify");
    CHECK(alone.exit_code == 0);
    CHECK_MESSAGE(contains(alone.out, "redis: does not answer: not compared"), alone.out);
  }

  TEST_CASE("verify compares a campaign that runs with its private Redis and finds a false row") {
    CampaignShape shape = gated_shape(3);
    shape.slots = 2;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(2); }), scene.said());
    const CommandOutcome good = scene.run("verify");
    CHECK_MESSAGE(good.exit_code == 0, good.out);
    CHECK_MESSAGE(contains(good.out, " envelopes and "), good.out);

    std::string address = scene.read(scene.state() / "redis.address");
    address.pop_back();
    const std::string rows = key_of(address, "rows");
    const std::string row = cli(address, {"HGET", rows, "0.1.0"});
    CHECK(row.starts_with("p "));
    cli(address, {"HSET", rows, "0.1.0", "p 1 0,1,2"});
    finds(scene, "redis: envelope global: holds ");
    CHECK(contains(scene.run("verify").out, "redis: reservation 0.1.0: holds \"p 1 0,1,2\""));
    cli(address, {"HDEL", rows, "0.1.0"});
    CHECK(contains(scene.run("verify").out, "redis: reservation 0.1.0: is not there"));
    cli(address, {"HSET", rows, "0.1.0", row});
    cli(address, {"HSET", rows, "77.1.0", "p 5 0,1,2"});
    CHECK(contains(scene.run("verify").out, "redis: reservation 77.1.0: holds \"p 5 0,1,2\""));
    cli(address, {"HSET", rows, "x", "y"});
    CHECK(contains(scene.run("verify").out, "redis: reservation x: holds \"y\", which no ledger"));
    cli(address, {"HDEL", rows, "x", "77.1.0"});
    CHECK(scene.run("verify").exit_code == 0);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    CHECK_FALSE(fs::exists(scene.state() / "redis.address"));
    CHECK(contains(scene.run("verify").out, "redis: none runs: not compared"));
    check_books(scene, {.runs = 3});
  }

  TEST_CASE("verify never accuses a campaign that moves while it looks") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 30;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    int compared = 0;
    while (scene.ended() < 25) {
      const CommandOutcome verified = scene.run("verify");
      if (contains(verified.out, "redis: ") && contains(verified.out, " compared\n")) ++compared;
      CHECK_MESSAGE(!contains(verified.out, "redis: envelope"), verified.out);
      CHECK_MESSAGE(!contains(verified.out, "redis: reservation"), verified.out);
      REQUIRE_MESSAGE(run.running(), scene.said());
    }
    CHECK(run.wait(180s) == 0);
    CHECK(0 < compared);
  }

  TEST_CASE("verify knows a raise that no coordinator has told Redis yet") {
    RedisServer redis;
    CampaignShape shape;
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome raised =
        proctor::testing::proctor({"budget", "raise", scene.folder().string(), "global", "60.00",
                                   "--reason", "x", "--by", "Ada"});
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK(contains(verified.out, "redis: 3 envelopes"));
  }

  TEST_CASE("verify of a campaign that was raised while it ran fits, running and ended") {
    for (const bool configured : {true, false}) {
      CAPTURE(configured);
      RedisServer redis;
      CampaignShape shape = gated_shape(2);
      if (configured) shape.redis = redis.address();
      const CampaignScene scene(shape);
      Child run = scene.start("run");
      REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
      const auto raise = [&](const std::string& envelope, const std::string& usd) {
        return proctor::testing::proctor({"budget", "raise", scene.folder().string(), envelope, usd,
                                          "--reason", "x", "--by", "Ada"});
      };
      for (const char* usd : {"60.00", "70.00"}) {
        REQUIRE(raise("global", usd).exit_code == 0);
        const CommandOutcome verified = scene.run("verify");
        CHECK_MESSAGE(verified.exit_code == 0, verified.out);
        CHECK_MESSAGE(contains(verified.out, " envelopes and "), verified.out);
      }
      const CommandOutcome beyond = raise("task:add", "70.000001");
      CHECK(beyond.exit_code == 2);
      CHECK_MESSAGE(contains(beyond.err + beyond.out, "global, holds only 70.00"),
                    beyond.err << beyond.out);
      REQUIRE(raise("task:add", "70.00").exit_code == 0);
      CHECK_FALSE(contains(scene.said(), "Redis held"));
      scene.open_gate();
      CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
      CHECK_FALSE(contains(scene.said(), "Redis held"));
      finds_no_problem(scene);
      // Later raises, of a campaign that stands, come on top.
      REQUIRE(raise("global", "80.00").exit_code == 0);
      finds_no_problem(scene);
      if (configured) {
        const std::string scopes = key_of(redis.address(), "scopes");
        const std::string text = cli(redis.address(), {"HGET", scopes, "0"});
        REQUIRE(text.starts_with("70000000 "));
        cli(redis.address(), {"HSET", scopes, "0", "60000000" + text.substr(8)});
        finds(scene, "redis: envelope global: holds 60000000 ");
      }
    }
  }

  TEST_CASE("verify compares a member's own part of a shared envelope, running and after it left") {
    RedisServer redis;
    CampaignShape shape = gated_shape(1);
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "budget:\n",
               "budget:\n  shared: {name: lab, cap: \"60.00\"}\n");
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    REQUIRE(proctor::testing::proctor({"budget", "share", scene.folder().string()}).exit_code == 0);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    const std::string envelope = "proctor:{shared:lab}";
    const std::string head = key_of(redis.address(), "head");
    const std::string id = head.substr(9, head.find('}') - 9);
    const auto compared = [&](const std::string& line) {
      const CommandOutcome verified = scene.run("verify");
      CHECK_MESSAGE(verified.exit_code == 0, verified.out);
      CHECK_MESSAGE(contains(verified.out, line), verified.out);
    };
    compared(" reservations compared; its part of shared:lab compared\n");
    // It stands still, so that it puts nothing right.  What it holds of its own envelopes is
    // untouched: this is its part as the others count on it.
    run.signal(SIGSTOP);
    const std::string part = cli(redis.address(), {"HGET", envelope, "u:" + id});
    const std::string member = cli(redis.address(), {"HGET", envelope, "m:" + id});
    REQUIRE_MESSAGE(part.starts_with("0 "), part);
    cli(redis.address(), {"HSET", envelope, "u:" + id, "0 1"});
    finds(scene,
          "redis: this campaign's part of shared:lab: holds 0.000000 spent and 0.000001 reserved");
    cli(redis.address(), {"HSET", envelope, "u:" + id, "7 " + part.substr(2)});
    finds(scene, "redis: this campaign's part of shared:lab: holds 0.000007 spent");
    cli(redis.address(), {"HSET", envelope, "u:" + id, part});
    const std::string limit = "50000000 50000000 ";
    REQUIRE_MESSAGE(member.starts_with("a " + limit), member);
    cli(redis.address(), {"HSET", envelope, "m:" + id, "a 60000000 60000000 1 1"});
    finds(scene,
          "redis: this campaign's part of shared:lab: may grow to 60.000000, the journal says 50");
    cli(redis.address(), {"HSET", envelope, "m:" + id, "w 1 0 1 0"});
    finds(scene, "redis: this campaign's part of shared:lab: counts as 0.000001 at most");
    cli(redis.address(), {"HSET", envelope, "m:" + id, "w 50000000 0 1 0"});
    compared("its part of shared:lab compared\n");
    cli(redis.address(), {"HDEL", envelope, "m:" + id, "u:" + id, "s:" + id, "n:" + id});
    finds(scene, "redis: this campaign's part of shared:lab: is not there, so the others count on");
    cli(redis.address(), {"HSET", envelope, "m:" + id, member, "u:" + id, part});
    compared("its part of shared:lab compared\n");
    run.signal(SIGCONT);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    compared("its part of shared:lab compared\n");

    // It has left: what it spent stays counted.
    const std::string spent = cli(redis.address(), {"HGET", envelope, "u:" + id});
    cli(redis.address(), {"HSET", envelope, "u:" + id, "9 0"});
    finds(scene, "redis: this campaign's part of shared:lab: has left with 0.000009, the journal");
    cli(redis.address(), {"HSET", envelope, "u:" + id, spent});
    compared("its part of shared:lab compared\n");
    // Redis was emptied, and others who knew it brought the envelope back.
    cli(redis.address(),
        {"DEL", head, key_of(redis.address(), "scopes"), key_of(redis.address(), "rows")});
    compared(
        "redis: holds nothing of this campaign: not compared; its part of shared:lab compared");
    cli(redis.address(), {"DEL", envelope});
    compared("not compared; shared:lab is not there: its part is not compared\n");
    redis.kill();
    compared("redis: does not answer: not compared");
  }
}
