// Money under kill -9 and on several workers, as an operator meets it: alerts of a coordinator that
// is killed again and again, an attempt whose worker is killed, a rate that two workers share.
#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Ten cents a run, whatever the machine does.
void set_prices(const CampaignScene& scene) {
  scene.write(scene.folder() / "pilot_cost_model.csv",
              "action_type,unit,unit_price,notes\nsandbox,minute,0.000001,\nrun,run,0.10,\n"
              "tool_call,call,0.01,\n");
}

std::int64_t metered(const CampaignScene& scene) {
  const Json global =
      must(parse_json(scene.run("budget", {"--json"}).out))["envelopes"][0]["metered"];
  return global.is_null() ? -1 : global["micro_usd"].get<std::int64_t>();
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("each alert is told once though the coordinator is killed again and again") {
    CampaignShape shape;
    shape.methods = {solving_method("quick", "sleep 0.2; ")};
    shape.replicates = 10;
    shape.global = "2.00";
    shape.task = "2.00";
    const CampaignScene scene(shape);
    set_prices(scene);
    scene.edit(scene.folder() / "campaign.yaml", "  run: \"0.50\"\n",
               "  run: \"0.50\"\n  alerts: [5, 10, 15, 20, 25, 30, 40, 50]\n");
    int kills = 0;
    bool done = false;
    for (int life = 0; life < 12 && !done; ++life) {
      const std::string verb = life == 0 ? "run" : "resume";
      const std::int64_t before = scene.ended();
      Child coordinator = scene.start(verb, {}, verb + std::to_string(life));
      // Killed soon after something was settled, the first lives at least.
      const bool more = eventually([&] {
        done = coordinator.poll().has_value();
        return done || (life < 5 && before < scene.ended());
      });
      REQUIRE_MESSAGE(more, scene.said(verb + std::to_string(life)));
      if (done) break;
      coordinator.signal(SIGKILL);
      REQUIRE(coordinator.wait(180s).has_value());
      ++kills;
    }
    REQUIRE(done);
    CHECK(2 <= kills);
    CHECK(scene.ended() == 10);
    // Ten runs of eleven cents of two dollars: 1.10 and nothing more, for no result was lost.
    const Json told = scene.sql(
        "SELECT json_extract(detail, '$.name') AS name, json_extract(detail, '$.percent') AS "
        "percent, count(*) AS n FROM notes WHERE kind = 'budget_alert' GROUP BY 1, 2");
    for (const Json& row : told) CHECK_MESSAGE(row["n"] == 1, row.dump());
    std::size_t global = 0;
    for (const Json& row : told) global += row["name"] == "global" ? 1 : 0;
    CHECK(global == 8);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    scene.require_nothing_left();
  }

  TEST_CASE("what runs has metered is shown and an attempt whose worker is killed costs that") {
    const CampaignScene scene(gated_shape(1));
    set_prices(scene);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    // The price of the run and of its program's call, before anything is settled.
    CHECK(eventually([&] { return 110'000 <= metered(scene); }));
    CHECK(metered(scene) < 500'000);
    CHECK(contains(scene.run("budget").out, "metered"));
    CHECK(contains(scene.run("status").out, "metered"));
    const std::vector<pid_t> victims = scene.workers();
    REQUIRE(victims.size() == 1);
    REQUIRE(::kill(victims[0], SIGKILL) == 0);
    const auto second = [&] {
      return scene.number("SELECT count(*) FROM attempts WHERE attempt = 2 AND state = 'granted'");
    };
    REQUIRE_MESSAGE(eventually([&] { return second() == 1; }), scene.said());
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    const Json rows = scene.sql(
        "SELECT attempt, state, infrastructure, charged, ask FROM attempts ORDER BY attempt");
    REQUIRE(rows.size() == 2);
    CHECK_MESSAGE(rows[0]["state"] == "finished", rows.dump());
    CHECK(rows[0]["infrastructure"] == 1);
    CHECK(rows[0]["charged"].get<std::int64_t>() >= 110'000);
    CHECK(rows[0]["charged"].get<std::int64_t>() < 120'000);  // of 500'000 reserved
    CHECK(metered(scene) == -1);                              // nobody runs who knows
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    scene.require_nothing_left();
  }

  TEST_CASE("two workers together keep to the rate of the campaign" * doctest::test_suite("full")) {
    CampaignShape shape;
    shape.methods = {
        "{name: caller, kind: command, command: python3 \"$PROCTOR_METHOD/caller.py\", files: "
        "[caller.py]}"};
    shape.replicates = 6;
    const CampaignScene scene(shape);
    set_prices(scene);
    scene.edit(scene.folder() / "campaign.yaml", "workers: 2\n",
               "workers: 2\nrates: {calls_per_minute: 7}\n");
    // Asks until it is denied, waits a little and asks again, for eight seconds.
    scene.write(
        scene.folder() / "caller.py",
        "import json, os, socket, time\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(os.environ['PROCTOR_METER'])\n"
        "lines = s.makefile('r')\n"
        "n, end = 0, time.time() + 8\n"
        "while time.time() < end:\n"
        "    n += 1\n"
        "    ask = {'op': 'reserve', 'id': str(n), 'action': 'tool_call'}\n"
        "    s.sendall((json.dumps(ask) + '\\n').encode())\n"
        "    said = json.loads(lines.readline())\n"
        "    if said['answer'] != 'granted':\n"
        "        assert said['cap'] == 'calls_per_minute', said\n"
        "        assert 'rates.calls_per_minute: 7 on all workers' in said['reason'], said\n"
        "        assert not said['final'] and 0 < said['retry_after_ms'], said\n"
        "        time.sleep(0.2)\n"
        "open('calc.sh', 'w').write('echo $(($1 + $2))\\n')\n");
    const CommandOutcome checked = scene.run("check", {"--effective"});
    CHECK_MESSAGE(contains(checked.out, "rates.calls_per_minute"), (checked.out + checked.err));
    const CommandOutcome ran = scene.run("run", {}, 120s);
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE outcome = 'success'") == 6);
    // A run's own program is a tool call too, which no meter is asked for.
    const std::int64_t calls = scene.number("SELECT sum(tool_calls) - count(*) FROM attempts");
    const std::int64_t ms = scene.number("SELECT max(result_ms) - min(granted_ms) FROM attempts");
    CAPTURE(ms);
    CHECK(0 < calls);
    CHECK(calls <= 7 * (1 + ms / 60'000));
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE 1 < tool_calls") <= calls);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    scene.require_nothing_left();
  }
}
