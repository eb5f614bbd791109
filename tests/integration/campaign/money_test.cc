// Money as an operator sees it: budget, explain, raise, report and verify on real campaigns.
#include <doctest/doctest.h>

#include <csignal>
#include <random>
#include <set>
#include <sstream>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Six runs, of which the envelope of their task holds some.
CampaignShape short_of_money() {
  CampaignShape shape;
  shape.replicates = 3;
  shape.task = "0.5025";
  shape.run = "0.50";
  return shape;
}

Json budget_of(const CampaignScene& scene, std::vector<std::string> more = {}) {
  more.insert(more.begin(), "--json");
  const CommandOutcome out = scene.run("budget", std::move(more));
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

CommandOutcome raise(const CampaignScene& scene, const std::string& scope, const std::string& usd,
                     const std::string& reason = "prices rose") {
  return proctor::testing::proctor(
      {"budget", "raise", scene.folder().string(), scope, usd, "--reason", reason, "--by", "Ada"});
}

std::string sqlite(const CampaignScene& scene, const std::string& statement) {
  return output_of({"sqlite3", (scene.state() / "journal.sqlite").string(), statement});
}

// Commands as the help lists them: lines "  NAME   text" below "Subcommands:".
std::vector<std::string> subcommands(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Subcommands:") {
      inside = true;
    } else if (inside && line.starts_with("  ") && !line.starts_with("   ")) {
      out.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (!line.starts_with("   ")) {
      inside = false;
    }
  }
  return out;
}

}  // namespace

TEST_SUITE("money") {
  TEST_CASE("an envelope that ran out is shown and explained and raised as a declared deviation") {
    const CampaignScene scene(short_of_money());
    REQUIRE(scene.run("run").exit_code == 3);
    const std::int64_t parked = scene.number("SELECT count(*) FROM runs WHERE state = 'parked'");
    REQUIRE(0 < parked);
    // More tries are of no use to them, and money is.
    const CommandOutcome vain = scene.run("requeue", {"all"});
    CHECK(vain.exit_code == 2);
    CHECK_MESSAGE(contains(vain.err, "for money that an envelope has too little of"), vain.err);
    CHECK_MESSAGE(
        contains(vain.err, "proctor budget raise " + scene.folder().string() + " task:add "),
        vain.err);
    CHECK_MESSAGE(contains(vain.err, "task:add is short by "), vain.err);
    const std::int64_t spent = scene.number("SELECT spent FROM balance");

    Json money = budget_of(scene, {"--by", "method"});
    const Json& global = money["envelopes"][0];
    const Json& task = money["envelopes"][2];
    CHECK(global["name"] == "global");
    CHECK(global["spent"]["micro_usd"] == spent);
    CHECK(task["name"] == "task:add");
    CHECK(task["spent"]["micro_usd"] == spent);
    CHECK(task["free"]["micro_usd"] == 502'500 - spent);
    CHECK(task["denied"]["runs"] == parked);
    CHECK(task["denied"]["short_most"]["micro_usd"] == 500'000 - (502'500 - spent));
    CHECK(money["running"] == false);
    std::int64_t sum = 0;
    for (const Json& g : money["groups"]) sum += g["spent"]["micro_usd"].get<std::int64_t>();
    CHECK(sum == spent);
    CHECK(contains(scene.run("budget").out, "task:add: " + std::to_string(parked)));

    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    const std::string last = report["runs"][5]["run"].get<std::string>();
    const CommandOutcome why = scene.run("explain", {last});
    CHECK_MESSAGE(contains(why.out, "nothing is out there. Raise the envelope"), why.out);
    CHECK_MESSAGE(contains(why.out, "task:add"), why.out);

    // What is refused changes nothing.
    const std::string before = sqlite(scene, ".dump");
    CHECK(contains(raise(scene, "task:add", "0.000001").err, "units are spent there"));
    CHECK(contains(raise(scene, "task:add", "0.5025").err, "already"));
    CHECK(contains(raise(scene, "task:add", "0.502501").err, "none of the runs parked there"));
    CHECK(contains(raise(scene, "task:add", "50.000001").err, "raise that first"));
    CHECK(contains(raise(scene, "task:ad", "1.00").err, "there is no envelope \"task:ad\""));
    CHECK(contains(raise(scene, "task:add", "1e3").err, "the new cap"));
    CHECK(contains(raise(scene, "task:add", "40.00", " ").err, "needs a reason"));
    for (const char* usd : {"0.000001", "-1", "50.000001", "99999999999999"})
      CHECK(raise(scene, "task:add", usd).exit_code == 2);
    CHECK(sqlite(scene, ".dump") == before);

    const CommandOutcome raised = raise(scene, "task:add", "40.00");
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    CHECK(scene.number("SELECT cap FROM scopes WHERE name = 'task:add'") == 40'000'000);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'parked'") == 0);
    CHECK(scene.run("verify").exit_code == 0);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    const std::string raise_told = "envelope task:add was raised from 0.5025 to 40.00 units by Ada";
    CHECK(contains(resumed.err, raise_told));
    const std::string shown = scene.run("report").out;
    CHECK(contains(shown, "Deviations from what was registered"));
    CHECK(contains(shown, raise_told));
    CHECK(scene.ended() == 6);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    money = budget_of(scene);
    CHECK(money["envelopes"][2]["cap"]["micro_usd"] == 40'000'000);
    CHECK(money["envelopes"][2]["registered_cap"]["micro_usd"] == 502'500);
    const Json after = must(parse_json(scene.run("report", {"--json"}).out));
    CHECK(after["deviations"].size() == 1);
    CHECK(after["costs"][0]["cost"]["total"]["micro_usd"] ==
          scene.number("SELECT spent + overrun FROM balance"));
    const std::string picture = scene.read(scene.folder() / "reports/burndown.svg");
    CHECK(contains(picture, "cap 40.00 units"));
    CHECK(contains(scene.read(scene.folder() / "reports/costs.csv"), "method,noop,3,3,0,"));
    scene.require_nothing_left();
  }

  TEST_CASE("what is counted in units is nowhere called dollars") {
    const CampaignScene scene(short_of_money());
    fs::remove(scene.folder() / "pilot_cost_model.csv");
    const auto silent = [&](const CommandOutcome& out) {
      for (const std::string& text : {out.out, out.err}) {
        CHECK_MESSAGE(!contains(text, "USD"), text);
      }
      const std::string all = out.out + out.err;
      CHECK_MESSAGE(contains(all, " units"), all);
    };
    silent(scene.run("check"));
    const CommandOutcome ran = scene.run("run");
    REQUIRE(ran.exit_code == 3);
    silent(ran);
    for (const char* command : {"status", "budget", "story", "report", "verify"}) {
      CAPTURE(command);
      silent(scene.run(command));
    }
    silent(scene.run("story", {"--json"}));
    silent(scene.run("requeue", {"all"}));
    for (const Json& row : scene.sql("SELECT run FROM runs WHERE state = 'parked' LIMIT 1")) {
      const Json runs = must(parse_json(scene.run("report", {"--json"}).out))["runs"];
      silent(scene.run("explain", {runs[row["run"].get<std::size_t>()]["run"].get<std::string>()}));
    }
    silent(raise(scene, "task:add", "0.40"));  // refused
    silent(raise(scene, "task:add", "40.00"));
    // With the price table of somebody who edited a cap to be too small.
    scene.edit(scene.folder() / "campaign.yaml", "run: \"0.50\"", "run: \"0.000001\"");
    CHECK(contains(scene.run("check").err, "units, the price of one run"));
  }

  TEST_CASE("raising the campaign takes along the envelopes without a cap of their own") {
    CampaignShape shape = short_of_money();
    shape.global = "0.5025";
    shape.task = "0.5025";
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "  task: \"0.5025\"\n", "");
    REQUIRE(scene.run("run").exit_code == 3);
    const CommandOutcome raised = raise(scene, "global", "20.00");
    REQUIRE_MESSAGE(raised.exit_code == 0, raised.err);
    CHECK(scene.number("SELECT count(*) FROM scopes WHERE cap = 20000000") == 3);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a campaign at work shows what is reserved and is raised without a stop") {
    const CampaignScene scene(gated_shape(1));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    const Json money = budget_of(scene);
    CHECK(money["running"] == true);
    CHECK(money["envelopes"][0]["reserved"]["micro_usd"] == 500'000);
    CHECK(money["envelopes"][0]["at_risk"]["micro_usd"] == 0);
    const CommandOutcome raised = raise(scene, "global", "100.00");
    CHECK_MESSAGE(raised.exit_code == 0, raised.err);
    CHECK(budget_of(scene)["envelopes"][0]["cap"]["micro_usd"] == 100'000'000);
    CHECK(raise(scene, "global", "0.10").exit_code == 2);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(budget_of(scene)["envelopes"][0]["reserved"]["micro_usd"] == 0);
  }

  TEST_CASE("money of a killed coordinator is at risk until a resume knows more") {
    const CampaignScene scene(gated_shape(2));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGKILL);
    (void)run.wait(180s);
    const Json money = budget_of(scene);
    CHECK(money["running"] == false);
    CHECK(money["envelopes"][0]["reserved"]["micro_usd"] == 500'000);
    CHECK(money["envelopes"][0]["at_risk"]["micro_usd"] == 500'000);
    CHECK(money["envelopes"][0]["used_up_at"].is_null());
    CHECK(scene.run("verify").exit_code == 0);
    // With money out a raise is possible, and counts it.
    CHECK(contains(raise(scene, "global", "0.40").err, "0.50 reserved"));
    const CommandOutcome raised = raise(scene, "global", "60.00");
    CHECK_MESSAGE(raised.exit_code == 0, raised.err);
    scene.open_gate();
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK(budget_of(scene)["envelopes"][0]["reserved"]["micro_usd"] == 0);
    // What was lost with the coordinator is charged whole and called wasted; or nothing was.
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    CHECK(report["costs"][0]["wasted"]["micro_usd"] ==
          scene.number("SELECT coalesce(sum(charged), 0) FROM attempts WHERE state = 'lost'"));
    CHECK(report["costs"][0]["cost"]["total"]["micro_usd"] ==
          scene.number("SELECT spent FROM balance"));
  }

  TEST_CASE("any single change of a row that money depends on is found by verify") {
    CampaignShape shape = short_of_money();
    shape.tasks = {"add", "sum"};
    shape.replicates = 2;
    const CampaignScene scene(shape);
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,notes\nsandbox,minute,0.15,\nrun,run,0.01,\n");
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 3, ran.err);
    REQUIRE(raise(scene, "task:add", "0.70").exit_code == 0);
    const int again = scene.run("resume").exit_code;
    REQUIRE((again == 0 || again == 3));
    const CommandOutcome whole = scene.run("verify");
    REQUIRE_MESSAGE(whole.exit_code == 0, whole.out);
    const fs::path journal = scene.state() / "journal.sqlite";
    sqlite(scene, "PRAGMA wal_checkpoint(TRUNCATE)");
    const std::string kept = scene.read(journal);

    const std::vector<std::string> amounts = {
        "ask",        "charged",       "overrun",       "cost_model",  "cost_execution",
        "setup_ms",   "agent_ms",      "acceptance_ms", "cpu_ms",      "tool_calls",
        "cost_human", "cost_overhead", "input_tokens",  "model_calls", "stored_bytes"};
    const std::vector<std::string> blanks = {"charged",    "settled_ms", "outcome",
                                             "granted_ms", "result_ms",  "cost_execution"};
    const std::vector<std::string> words = {"granted",   "voided", "lost",
                                            "cancelled", "denied", "reserving"};
    constexpr unsigned kSeed = 20260307;
    std::mt19937 random(kSeed);
    const auto one_of = [&](const std::vector<std::string>& from) {
      return from[random() % from.size()];
    };
    const auto a_row = [&](const std::string& table, const std::string& where) {
      const Json rows = scene.sql("SELECT rowid AS id FROM " + table + " " + where);
      REQUIRE(!rows.empty());
      return std::to_string(rows[random() % rows.size()]["id"].get<std::int64_t>());
    };
    const auto an_attempt = [&] {
      const Json rows = scene.sql("SELECT run, attempt FROM attempts WHERE state = 'finished'");
      const Json row = rows[random() % rows.size()];
      return " WHERE run = " + row["run"].dump() + " AND attempt = " + row["attempt"].dump();
    };
    const auto change = [&]() -> std::string {
      const std::string by = std::to_string(1 + random() % 1000);
      switch (random() % 12) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const std::string column = one_of(amounts);
          return "UPDATE attempts SET " + column + " = " + column + " + " + by + an_attempt();
        }
        case 4:
          return "UPDATE attempts SET " + one_of(blanks) + " = NULL" + an_attempt();
        case 5:
          return "UPDATE attempts SET state = '" + one_of(words) + "'" + an_attempt();
        case 6:
          return "DELETE FROM attempts" + an_attempt();
        case 7:
          return "UPDATE scopes SET cap = cap + " + by + " WHERE id = " + a_row("scopes", "");
        case 8:
          return "UPDATE runs SET attempt = attempt + 1 WHERE run = " +
                 a_row("runs", "WHERE state = 'ended'");
        case 9:
          return "UPDATE runs SET short_by = short_by - 1 WHERE run = " +
                 a_row("runs", "WHERE state = 'parked'");
        case 10:
          return "UPDATE notes SET detail = replace(detail, '\"to\":', '\"to\":1') WHERE kind = "
                 "'budget_raised'";
        default:
          return random() % 2 == 0
                     ? "DELETE FROM notes WHERE kind = 'budget_raised'"
                     : "DELETE FROM runs WHERE run = " + a_row("runs", "WHERE state = 'ended'");
      }
    };
    constexpr int kChanges = 200;
    std::set<std::string> different;
    for (int i = 0; i < kChanges; ++i) {
      const std::string statement = change();
      CAPTURE(statement);
      different.insert(statement);
      sqlite(scene,
             "PRAGMA foreign_keys = OFF; " + statement + "; PRAGMA wal_checkpoint(TRUNCATE)");
      const CommandOutcome found = scene.run("verify");
      CHECK_MESSAGE(found.exit_code != 0, found.out);
      CHECK_MESSAGE(contains(found.out + found.err, "journal"), found.out << found.err);
      std::error_code ec;
      for (const char* beside : {"-wal", "-shm"}) fs::remove(journal.string() + beside, ec);
      scene.write(journal, kept);
    }
    CHECK(100 < different.size());
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("the help of every command has an example") {
    const std::string help = proctor::testing::proctor({"--help"}).out;
    const std::vector<std::string> commands = subcommands(help);
    REQUIRE_MESSAGE(13 <= commands.size(), help);
    for (const std::string& command : commands) {
      CAPTURE(command);
      const CommandOutcome out = proctor::testing::proctor({command, "--help"});
      CHECK(out.exit_code == 0);
      const std::size_t example = out.out.find("Example:\n  proctor ");
      REQUIRE_MESSAGE(example != std::string::npos, out.out);
      CHECK_MESSAGE(contains(out.out.substr(example), "  proctor " + command + " "), out.out);
      for (const std::string& inner : subcommands(out.out)) {
        const CommandOutcome deeper = proctor::testing::proctor({command, inner, "--help"});
        const std::size_t shown = deeper.out.find("Example:\n  proctor ");
        REQUIRE_MESSAGE(shown != std::string::npos, deeper.out);
        CHECK_MESSAGE(contains(deeper.out.substr(shown), "  proctor " + command + " " + inner),
                      deeper.out);
      }
    }
  }
}
