// Envelopes across the tree and alerts, as an operator meets them on a real campaign with Redis.
#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/campaign_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Two tasks under two methods, three times; the method "reference" may have little more than one
// run's cap.  A run costs 10 cents at least: a few of it fit.
CampaignShape shape() {
  CampaignShape out;
  out.tasks = {"add", "sum"};
  out.replicates = 3;
  out.workers = 2;
  return out;
}

// Every run costs ten cents and a little: the price of a run, whatever the machine does.
void set_money(const CampaignScene& scene) {
  scene.write(scene.folder() / "pilot_cost_model.csv",
              "action_type,unit,unit_price,notes\nsandbox,minute,0.000001,\nrun,run,0.10,\n");
  scene.edit(scene.folder() / "campaign.yaml", "  run: \"0.50\"\n",
             "  run: \"0.50\"\n  methods: {reference: \"0.75\"}\n"
             "  strata: {language: {shell: \"30.00\"}}\n");
}

Json budget_of(const CampaignScene& scene) {
  const CommandOutcome out = scene.run("budget", {"--json"});
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

Json envelope(const Json& budget, const std::string& name) {
  for (const Json& e : budget["envelopes"])
    if (e["name"] == name) return e;
  FAIL("no envelope ", name);
  return {};
}

std::int64_t alerts(const CampaignScene& scene) {
  return scene.number("SELECT count(*) FROM notes WHERE kind = 'budget_alert'");
}

void audit(const CampaignScene& scene) {
  CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                            scene.folder().string()}),
                 ": 0 problems"));
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("a method's envelope parks the last runs of that method and of no other") {
    const CampaignScene scene(shape());
    set_money(scene);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 3, ran.err);
    // 0.75 hold three runs of ten cents: the fourth would ask for 0.50 of 0.45.
    CHECK(scene.ended() == 9);
    const Json parked = scene.sql(
        "SELECT r.run, r.short_by, s.name FROM runs r JOIN scopes s ON s.id = r.scope "
        "WHERE r.state = 'parked'");
    REQUIRE(parked.size() == 3);
    for (const Json& row : parked) CHECK(row["name"] == "method:reference");
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    std::string one;
    for (const Json& run : report["runs"]) {
      const std::string name = run["run"].get<std::string>();
      const bool reference = name.find("/reference/") != std::string::npos;
      if (run["state"] == "parked") {
        CHECK(reference);
        one = name;
      }
      if (!reference) CHECK(run["state"] == "ended");
    }

    const Json money = budget_of(scene);
    const Json method = envelope(money, "method:reference");
    CHECK(method["across"] == true);
    CHECK(method["cap"]["micro_usd"] == 750'000);
    CHECK(method["denied"]["runs"] == 3);
    CHECK(method["spent"]["micro_usd"].get<std::int64_t>() >= 300'000);
    CHECK(envelope(money, "stratum:language=shell")["spent"] == envelope(money, "global")["spent"]);
    const std::string shown = scene.run("budget").out;
    CHECK_MESSAGE(contains(shown, "across the tree:"), shown);
    CHECK_MESSAGE(contains(shown, "method:reference: 3 runs are parked"), shown);
    const std::string why = scene.run("explain", {one}).out;
    CHECK_MESSAGE(contains(why, "The envelope method:reference was short by"), why);
    CHECK_MESSAGE(contains(why, "budget raise " + scene.folder().string() + " method:reference"),
                  why);
    CHECK(contains(scene.read(scene.folder() / "reports/burndown.svg"), "method:reference"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    audit(scene);
    scene.require_nothing_left();
  }

  TEST_CASE("alerts are told once in log and journal and report and again after a raise") {
    const CampaignScene scene(shape());
    set_money(scene);
    scene.edit(scene.folder() / "campaign.yaml", "  methods: {reference: \"0.75\"}\n",
               "  methods: {reference: \"0.75\"}\n  alerts: [40, 80]\n");
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 3, ran.err);
    // 0.30 of 0.75: 40 % of that envelope and of no other.
    REQUIRE(alerts(scene) == 1);
    CHECK_MESSAGE(contains(ran.err, "envelope method:reference: 0.3"), ran.err);
    CHECK(contains(scene.run("report").out, "Alerts about money"));
    CHECK(contains(scene.run("status").out, "envelope method:reference: 0.3"));
    const Json told = envelope(budget_of(scene), "method:reference")["alerts"];
    REQUIRE(told.size() == 1);
    CHECK(told[0]["percent"] == 40);
    REQUIRE(scene.run("resume").exit_code == 3);
    CHECK(alerts(scene) == 1);

    const CommandOutcome raised =
        proctor::testing::proctor({"budget", "raise", scene.folder().string(), "method:reference",
                                   "1.25", "--reason", "prices rose", "--by", "Ada"});
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(scene.ended() == 12);
    // 40 % of 1.25 were out of reach after the raise, and are reached again.
    CHECK(alerts(scene) == 2);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    audit(scene);

    // What was told and what had to be told are compared.
    const std::string journal = scene.read(scene.state() / "journal.sqlite");
    for (const char* change :
         {"DELETE FROM notes WHERE kind = 'budget_alert'",
          "UPDATE notes SET detail = replace(detail, '\"percent\":40', '\"percent\":80') WHERE "
          "kind = 'budget_alert'",
          "UPDATE notes SET detail = replace(detail, '\"spent\":', '\"spent\":1') WHERE kind = "
          "'budget_alert'",
          "INSERT INTO notes(at_ms, kind, detail) SELECT at_ms, kind, detail FROM notes WHERE kind "
          "= 'budget_alert'"}) {
      CAPTURE(change);
      (void)output_of({"sqlite3", (scene.state() / "journal.sqlite").string(),
                       std::string(change) + "; PRAGMA wal_checkpoint(TRUNCATE)"});
      const CommandOutcome found = scene.run("verify");
      CHECK(found.exit_code == 1);
      CHECK_MESSAGE(contains(found.out, "journal: alert of method:reference"), found.out);
      std::error_code ec;
      for (const char* beside : {"-wal", "-shm"})
        fs::remove((scene.state() / "journal.sqlite").string() + beside, ec);
      scene.write(scene.state() / "journal.sqlite", journal);
    }
    const CommandOutcome again = scene.run("verify");
    CHECK_MESSAGE(again.exit_code == 0, again.out);
  }

  TEST_CASE("a run that uses its money without a milestone is told of once whatever is killed") {
    const CampaignScene scene(gated_shape(1));
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,notes\nsandbox,minute,0.000001,\nrun,run,0.10,\n");
    scene.edit(scene.folder() / "campaign.yaml", "  run: \"0.50\"\n",
               "  run: \"0.50\"\n  dominance: {percent: 20}\n");
    const auto told = [&] {
      return scene.number("SELECT count(*) FROM notes WHERE kind = 'dominance'");
    };
    Child first = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return told() == 1; }), scene.said());
    first.signal(SIGKILL);
    (void)first.wait(std::chrono::seconds(180));
    Child second = scene.start("resume", {}, "resume");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("resume"));
    CHECK(contains(scene.run("budget").out, "add/gated/r1: attempt 1 has used 0.1"));
    scene.open_gate();
    CHECK_MESSAGE(second.wait(std::chrono::seconds(180)) == 0, scene.said("resume"));
    CHECK(scene.number("SELECT max(n) FROM (SELECT count(*) AS n FROM notes WHERE kind = "
                       "'dominance' GROUP BY run, attempt)") == 1);
    CHECK(contains(scene.run("report").out, "has used 0.1"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }

  TEST_CASE("a dominant run is stopped and what it left is judged where that is registered") {
    CampaignShape one = gated_shape(1);
    one.methods = {solving_method("lost", "echo > found; sleep 55; ")};
    const CampaignScene scene(one);
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,notes\nsandbox,minute,0.000001,\nrun,run,0.10,\n");
    scene.edit(scene.folder() / "campaign.yaml", "  run: \"0.50\"\n",
               "  run: \"0.50\"\n  dominance: {action: stop, percent: 20}\n");
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK_MESSAGE(contains(ran.err, "with 0 milestones; its agent is stopped"), ran.err);
    const Json rows = scene.sql("SELECT outcome, termination, rationale FROM attempts");
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["outcome"] == "failure");
    CHECK(rows[0]["termination"] == "budget_exceeded");
    CHECK_MESSAGE(contains(rows[0]["rationale"].get<std::string>(), "dominance"), rows[0].dump());
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
  }

  TEST_CASE("envelopes across the tree are checked and registered") {
    const CampaignScene scene(shape());
    set_money(scene);
    const fs::path file = scene.folder() / "campaign.yaml";
    scene.edit(file, "methods: {reference: \"0.75\"}", "methods: {referense: \"0.75\"}");
    const CommandOutcome wrong = scene.run("check");
    CHECK(wrong.exit_code == 2);
    CHECK_MESSAGE(contains(wrong.err, "budget.methods.referense: found the unknown method"),
                  wrong.err);
    scene.edit(file, "methods: {referense: \"0.75\"}", "methods: {reference: \"0.75\"}");
    const CommandOutcome effective = scene.run("check", {"--effective"});
    CHECK_MESSAGE(contains(effective.out, "method:reference"), effective.out);
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    scene.edit(file, "reference: \"0.75\"", "reference: \"0.80\"");
    const CommandOutcome changed = scene.run("run");
    CHECK(changed.exit_code == 2);
    CHECK_MESSAGE(contains(changed.err,
                           "envelope in micro-USD method:reference: registered 750000, now 800000"),
                  changed.err);
  }
}
