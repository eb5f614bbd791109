// A reviewer's minutes on real campaigns: booked, shown, refused, and counted under every cap.
#include <doctest/doctest.h>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

constexpr const char* kPrices =
    "action_type,unit,unit_price,notes\nrun,run,0.001,\nhuman,minute,0.80,a reviewer\n";

void put_prices(const CampaignScene& scene, const char* prices = kPrices) {
  scene.write(scene.folder() / "pilot_cost_model.csv", prices);
}

CommandOutcome review(const CampaignScene& scene, const std::string& minutes,
                      const std::string& run = "add/noop/r1", const std::string& by = "Ada",
                      const std::string& note = "reads the diff") {
  return scene.run("review", {run, "--minutes=" + minutes, "--by", by, "--note", note});
}

std::string dump(const CampaignScene& scene) {
  return output_of({"sqlite3", (scene.state() / "journal.sqlite").string(), ".dump"});
}

Json json_of(const CommandOutcome& out) {
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

}  // namespace

TEST_SUITE("money") {
  TEST_CASE("minutes of a reviewer are charged and shown everywhere") {
    const CampaignScene scene;
    put_prices(scene);
    // Nothing is registered by asking for a review.
    CHECK(contains(review(scene, "12").err, "is not registered yet"));
    std::error_code ec;
    CHECK(!fs::exists(scene.folder() / "registration.json", ec));
    REQUIRE(scene.run("run").exit_code == 0);

    const CommandOutcome booked = review(scene, "12");
    REQUIRE_MESSAGE(booked.exit_code == 0, booked.err);
    CHECK(booked.out ==
          "add/noop/r1: 12 minutes by Ada, 9.60 USD charged to global, stage:main, task:add "
          "(review 1 of the campaign)\n");
    REQUIRE(review(scene, "0.001", "add/reference/r2", "Grace", "").exit_code == 0);
    // Four runs at 0.001, 12 minutes at 0.80, and 0.0008 for a thousandth of a minute.
    constexpr std::int64_t kSpent = 4'000 + 9'600'000 + 800;
    CHECK(scene.number("SELECT spent FROM balance") == kSpent);
    const Json budget = json_of(scene.run("budget", {"--json", "--by", "category"}));
    for (const Json& e : budget["envelopes"]) CHECK(e["spent"]["micro_usd"] == kSpent);
    CHECK(budget["groups"][2]["name"] == "human");
    CHECK(budget["groups"][2]["spent"]["micro_usd"] == 9'600'800);
    CHECK(json_of(scene.run("budget", {"--json", "--by",
                                       "method"}))["groups"][0]["spent"]["micro_usd"] == 9'602'000);
    CHECK(contains(scene.run("explain", {"add/noop/r1"}).out,
                   ": 12 minutes by Ada, 9.60 USD: reads the diff\n"));
    const Json report = json_of(scene.run("report", {"--json"}));
    CHECK(report["costs"][0]["cost"]["human"]["micro_usd"] == 9'600'800);
    CHECK(report["costs"][0]["reviews"] == 2);
    CHECK(report["costs"][0]["cost"]["total"]["micro_usd"] == kSpent);
    CHECK(contains(scene.read(scene.folder() / "reports/report.txt"),
                   "Reviews (human): 9.6008 USD in 2 bookings."));
    CHECK(contains(scene.read(scene.folder() / "reports/runs.csv"), ",9.600000,"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK(contains(verified.out, "money: 9.604800 USD spent"));
    // A coordinator that goes on counts it too.
    CHECK(scene.run("resume").exit_code == 0);
    CHECK(scene.number("SELECT spent FROM balance") == kSpent);
  }

  TEST_CASE("a review that fills an envelope is told as a settlement is and once") {
    CampaignShape shape;
    shape.global = "20.00";
    shape.task = "10.00";
    const CampaignScene scene(shape);
    put_prices(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome booked = review(scene, "11");  // 8.80 of 10.00, and of 20.00
    REQUIRE_MESSAGE(booked.exit_code == 0, booked.err);
    CHECK(contains(booked.out, "envelope task:add: 8.804 of 10.00 USD are spent, 50 % or more"));
    CHECK(contains(booked.out, "80 % or more"));
    CHECK_FALSE(contains(booked.out, "95 % or more"));
    CHECK_FALSE(contains(booked.out, "envelope global"));
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'budget_alert'") == 2);
    REQUIRE(review(scene, "1").exit_code ==
            0);  // 9.604: the last level, and the first of 20.00 not
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'budget_alert'") == 3);
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                              scene.folder().string()}),
                   ": 0 problems"));
  }

  TEST_CASE("what is no review is refused and changes nothing") {
    const CampaignScene scene;
    put_prices(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string before = dump(scene);
    for (const char* minutes : {"-1", "0", "NaN", "1e300", "0.0001", "1000001", "12 "}) {
      CAPTURE(minutes);
      const CommandOutcome out = review(scene, minutes);
      CHECK(out.exit_code == 2);
      CHECK_MESSAGE(contains(out.err, "--minutes"), out.err);
    }
    CHECK(contains(review(scene, "-1").err,
                   "--minutes: found \"-1\", expected a non-negative decimal with at most 3 digits "
                   "after the point"));
    CHECK(contains(review(scene, "1", "add/noop/r9").err, "the plan has no run add/noop/r9"));
    CHECK(contains(review(scene, "1", "add/noop/r1", " ").err, "--by: found nothing"));
    CHECK(contains(review(scene, "1", "add/noop/r1", std::string(5000, 'x')).err,
                   "--by: found 5000 bytes, expected at most 4096"));
    CHECK(contains(review(scene, "1", "add/noop/r1", "\xff").err, "--by: expected UTF-8"));
    CHECK(dump(scene) == before);
  }

  TEST_CASE("a review that passes an envelope is refused until the envelope is raised") {
    const CampaignScene scene;
    put_prices(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string before = dump(scene);
    const CommandOutcome refused = review(scene, "60");  // 48.00 of 40.00
    CHECK(refused.exit_code == 3);
    CHECK_MESSAGE(contains(refused.err, "task:add is short by 8.004 USD: 0.004 of 40.00 are spent"),
                  refused.err);
    CHECK(!contains(refused.err, "global is short"));
    CHECK(contains(refused.err, "task:add 48.004 --reason"));
    CHECK(dump(scene) == before);
    CHECK(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "task:add",
                                     "48.004", "--reason", "a long review"})
              .exit_code == 0);
    const CommandOutcome booked = review(scene, "60");
    CHECK_MESSAGE(booked.exit_code == 0, booked.err);
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(review(scene, "0.001").exit_code == 3);
    CHECK(review(scene, "1000000").exit_code == 3);
  }

  TEST_CASE("money that a review took is not there for the runs that are parked") {
    CampaignShape shape;
    shape.replicates = 3;
    shape.task = "0.5025";
    const CampaignScene scene(shape);
    put_prices(scene);
    // A run reserves 0.50 and costs 0.001: three fit before 0.5025 is short.
    REQUIRE(scene.run("run").exit_code == 3);
    REQUIRE(scene.ended() == 3);
    const Json ended = scene.sql("SELECT run FROM runs WHERE state = 'ended' LIMIT 1");
    const Json plan = json_of(scene.run("report", {"--json"}));
    const std::string run = plan["runs"][ended[0]["run"].get<std::size_t>()]["run"].string();
    REQUIRE(review(scene, "0.5", run).exit_code == 0);  // 0.40
    CHECK(scene.number("SELECT count(*) FROM runs WHERE short_by = 400500") == 3);
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(contains(review(scene, "0.5", plan["runs"][5]["run"].string()).err, "has not ended"));
    // 0.403 are spent: with 0.904 the runs of 0.903 and 0.904 start, that of 0.905 does not.
    REQUIRE(proctor::testing::proctor({"budget", "raise", scene.folder().string(), "task:add",
                                       "0.904", "--reason", "room for two"})
                .exit_code == 0);
    CHECK(scene.run("resume").exit_code == 3);
    CHECK(scene.ended() == 5);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK(scene.number("SELECT spent FROM balance") == 405'000);
  }

  TEST_CASE("no review is booked of a run at work or at a price that is not there") {
    const CampaignScene scene(gated_shape(1));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    const std::string name =
        must(parse_json(scene.run("report", {"--json"}).out))["runs"][0]["run"].string();
    CHECK(contains(review(scene, "1", name).err,
                   "the price table (the built-in fallback-1) has no row human,minute, so a review "
                   "has no price.\nPrices are registered with a campaign"));
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());

    const CampaignScene priced(gated_shape(1));
    put_prices(priced);
    Child second = priced.start("run");
    REQUIRE_MESSAGE(eventually([&] { return priced.agents_run(1); }), priced.said());
    const CommandOutcome refused = review(priced, "1", name);
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, "has not ended"), refused.err);
    priced.open_gate();
    CHECK_MESSAGE(second.wait(180s) == 0, priced.said());
    CHECK(review(priced, "1", name).exit_code == 0);
  }

  TEST_CASE("a coordinator at work books reviews of runs that have ended") {
    for (const bool in_redis : {true, false}) {
      CAPTURE(in_redis);
      CampaignShape shape;
      shape.methods = {"noop", gated_method("gated")};
      shape.replicates = 1;
      shape.task = "20.00";
      if (!in_redis) shape.ledger = "journal";
      const CampaignScene scene(shape);
      put_prices(scene);
      Child run = scene.start("run");
      REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1) && scene.ended() == 1; }),
                      scene.said());
      const CommandOutcome booked = review(scene, "12");  // 9.60
      REQUIRE_MESSAGE(booked.exit_code == 0, booked.err);
      CHECK(booked.out ==
            "add/noop/r1: 12 minutes by Ada, 9.60 USD charged to global, stage:main, task:add "
            "(review 1 of the campaign)\n");
      CHECK(review(scene, "1", "add/gated/r1").exit_code == 2);
      // What is reserved for the run at work is nobody's to take: 20.00 - 9.601 - 0.50 are left.
      const std::string before = dump(scene);
      const CommandOutcome refused = review(scene, "13");  // 10.40
      CHECK(refused.exit_code == 3);
      CHECK_MESSAGE(contains(refused.err,
                             "task:add is short by 0.501 USD: 9.601 of 20.00 are "
                             "spent and 0.50 reserved"),
                    refused.err);
      CHECK(scene.number("SELECT count(*) FROM reviews") == 1);
      REQUIRE(review(scene, "12").exit_code == 0);
      CHECK(scene.number("SELECT count(*) FROM reviews") == 2);
      // 80 and 95 % of the envelope were reached, and are told as by a settlement.
      CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'budget_alert' AND detail LIKE "
                         "'%task:add%'") == 3);
      CHECK(contains(scene.run("verify").out, ": 0 problems"));
      scene.open_gate();
      CHECK_MESSAGE(run.wait(60s) == 0, scene.said());
      CHECK(scene.number("SELECT spent FROM balance") == 2 * 1'000 + 2 * 9'600'000);
      const CommandOutcome verified = scene.run("verify");
      CHECK_MESSAGE(verified.exit_code == 0, verified.out);
      CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                                scene.folder().string()}),
                     ": 0 problems"));
      CHECK_FALSE(contains(scene.said(), "warning: ledger"));
    }
  }

  TEST_CASE("a review that was changed in the journal is found by verify") {
    const CampaignScene scene;
    put_prices(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    REQUIRE(review(scene, "12").exit_code == 0);
    const fs::path journal = scene.state() / "journal.sqlite";
    output_of({"sqlite3", journal.string(), "PRAGMA wal_checkpoint(TRUNCATE)"});
    const std::string kept = scene.read(journal);
    for (const char* sql :
         {"UPDATE reviews SET charged = charged - 1", "UPDATE reviews SET milli_minutes = 11000",
          "UPDATE reviews SET reviewer = 'Eve'", "DELETE FROM reviews",
          "UPDATE reviews SET run = (run + 1) % 4"}) {
      CAPTURE(sql);
      output_of(
          {"sqlite3", journal.string(), std::string(sql) + "; PRAGMA wal_checkpoint(TRUNCATE)"});
      const CommandOutcome found = scene.run("verify");
      CHECK(found.exit_code != 0);
      CHECK_MESSAGE(contains(found.out + found.err, "review"), found.out << found.err);
      scene.write(journal, kept);
    }
    CHECK(scene.run("verify").exit_code == 0);
  }
}
