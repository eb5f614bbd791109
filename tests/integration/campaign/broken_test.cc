// One bad task must not stop a campaign, and a broken agent is not a failure.
#include "tests/support/books.h"
#include "tests/support/json_tools.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::string quick() {
  return "retries: {backoff: 50ms}\nstrata: [language, type]";
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("a task whose setup fails is parked with its reason and the other never notices") {
    CampaignShape shape;
    shape.tasks = {"add", "bad"};
    shape.replicates = 3;
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]", quick());
    scene.edit(scene.contract("bad"), "checks:",
               "setup:\n  - command: echo fetching >&2; echo no route to the index >&2; exit 1\n"
               "    network: {allow: [\"index.example:443\"]}\nchecks:");
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 1);
    const std::string reason =
        "setup step 1 (echo fetching >&2; echo no route to the index >&2; exit 1): exit 1 on the "
        "untouched snapshot; stderr ends: fetching | no route to the index";
    CHECK_MESSAGE(contains(ran.err, "6 runs are parked because their task or their method"),
                  ran.err);
    CHECK_MESSAGE(contains(ran.err, reason), ran.err);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'ended'") == 6);
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
    // Three of a row, and what was under way beside them.
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE infrastructure <> 0") <= 4);
    CHECK(scene.status()["faulty"] == 6);
    CHECK(scene.run("wait").exit_code == 5);  // a person decides
    const Json status = must(parse_json(scene.run("status", {"--json"}).out));
    CHECK(status.at("faulty") == 6);
    CHECK(status.at("parked") == 6);
    REQUIRE(status.at("broken").size() == 1);
    CHECK(status.at("broken").at(0).at("of") == "task");

    const CommandOutcome why = scene.run("explain", {"bad/noop/r3"});
    CHECK_MESSAGE(contains(why.out, "its task is parked: it failed "), why.out);
    const std::string folder = scene.folder().string();
    for (const std::string& said : {why.out, ran.err}) {
      CHECK_MESSAGE(contains(said, "proctor copy " + folder + " " + folder + "-2"), said);
      CHECK_MESSAGE(contains(said, "proctor remove-task " + folder + " bad --reason"), said);
      CHECK_MESSAGE(contains(said, "proctor requeue " + folder + " bad/"), said);
    }
    CHECK_MESSAGE(contains(why.out, reason), why.out);
    const CommandOutcome report = scene.run("report");
    CHECK_MESSAGE(contains(report.out, "6 parked"), report.out);
    CHECK_MESSAGE(contains(report.out, "bad/noop/r3: its task failed"), report.out);
    const std::string runs = scene.read(scene.folder() / "reports/runs.csv");
    CHECK_MESSAGE(contains(runs, "no route to the index"), runs);

    // It stays so in the next life; a requeue lets it try again.
    CHECK(scene.run("resume").exit_code == 1);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE infrastructure <> 0") <= 4);
    CHECK(scene.run("requeue", {"bad/noop/r1"}).exit_code == 0);
    const std::int64_t before = scene.number("SELECT count(*) FROM attempts");
    CHECK(scene.run("resume").exit_code == 1);
    CHECK(before < scene.number("SELECT count(*) FROM attempts"));
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a method whose program starts nowhere is stopped early, and is no failure") {
    CampaignShape shape;
    shape.tasks = {"add", "sub"};
    shape.replicates = 3;
    shape.methods = {"{name: absent, kind: command, command: /nonexistent --fix}",
                     solving_method("sound")};
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]", quick());
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 1);
    CHECK_MESSAGE(contains(ran.err, "its method is parked: it failed "), ran.err);
    CHECK_MESSAGE(contains(ran.err, "the agent could not start: exit 127"), ran.err);
    CHECK_MESSAGE(contains(ran.err, "/nonexistent"), ran.err);
    // The agent is registered: a mended one is another campaign's.
    const std::string folder = scene.folder().string();
    std::string why;  // the runs that were not tried say it
    for (const char* task : {"add", "sub"})
      for (const char* run : {"/absent/r1", "/absent/r2", "/absent/r3"})
        why += scene.run("explain", {std::string(task) + run}).out;
    for (const std::string& said : {why, ran.err}) {
      CHECK_MESSAGE(contains(said, "If the agent itself is wrong"), said);
      CHECK_MESSAGE(contains(said, "proctor copy " + folder + " " + folder + "-2"), said);
      CHECK_MESSAGE(contains(said, " && proctor resume " + folder), said);
    }
    CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'ended' AND outcome = 'success'") ==
          6);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'failure'") == 0);
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("what setup changed is no change of an agent that could not start") {
    CampaignShape shape;
    shape.tasks = {"add", "sub"};
    shape.replicates = 2;  // the second finds what a cached setup left
    shape.methods = {"{name: absent, kind: command, command: /nonexistent --fix}",
                     "{name: shut, kind: command, command: ./tests/t.sh}",
                     "{name: busy, kind: command, command: 'echo x > made; exit 127'}",
                     "{name: undoes, kind: command, command: 'rm by-setup; exit 127'}"};
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]", quick());
    for (const auto& [task, cache] : {std::pair("add", "true"), std::pair("sub", "false")})
      scene.edit(scene.contract(task), "checks:\n",
                 "setup:\n  - {command: \"chmod +x calc.sh; date > by-setup\", cache: " +
                     std::string(cache) + "}\nchecks:\n");
    (void)scene.run("run");
    struct Row {
      std::string method, termination;
    };
    for (const Row& row : {Row{"absent", "agent_unavailable"}, Row{"shut", "agent_unavailable"},
                           Row{"busy", "completed"}, Row{"undoes", "completed"}}) {
      CAPTURE(row.method);
      // Four runs each, in the order of tasks, methods and replicates or in another: by name.
      std::int64_t seen = 0;
      for (const char* task : {"add", "sub"})
        for (const char* run : {"r1", "r2"}) {
          const Json why = read_json(
              scene.run("explain", {std::string(task) + "/" + row.method + "/" + run, "--json"})
                  .out);
          for (const Json& attempt : why["attempts"]) {
            if (!attempt.contains("termination")) continue;
            CAPTURE(attempt.dump());
            CHECK(attempt["termination"] == row.termination);
            ++seen;
          }
        }
      CHECK(0 < seen);
    }
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("an exit code of an agent that started elsewhere is its failure") {
    CampaignShape shape;
    shape.tasks = {"add", "sub"};
    shape.replicates = 1;
    shape.methods = {
        "{name: picky, kind: command, command: 'case $PROCTOR_RUN in sub/*) exec "
        "/nonexistent;; esac; echo \"echo \\$((\\$1 + \\$2))\" > calc.sh'}"};
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "infrastructure_retries: 1\n" + quick());
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 0);
    const CommandOutcome report = scene.run("report");
    CHECK_MESSAGE(!contains(report.out, "Agents that could not start"), report.out);
    CHECK_MESSAGE(contains(report.out, "50.0 %"), report.out);
    CHECK_MESSAGE(!contains(report.out, "100.0 %"), report.out);
    CHECK_MESSAGE(contains(report.out, "1 agent_unavailable (agents: 1 exit 127)"), report.out);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 1);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'failure'") == 1);
    CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                              scene.folder().string()}),
                   ": 0 problems"));
    const std::string csv = scene.read(scene.folder() / "reports/report.csv");
    CHECK(contains(csv, "agent_unavailable"));
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("one run is tried and nothing is registered, and a copy is fresh") {
    CampaignShape shape;
    shape.methods = {"{name: absent, kind: command, command: /nonexistent}",
                     solving_method("sound")};
    const CampaignScene scene(shape);
    const CommandOutcome sound = scene.run("try", {"add", "sound"});
    CHECK_MESSAGE(sound.exit_code == 0, sound.err);
    CHECK_MESSAGE(contains(sound.out, "add/sound/r1: ended with success, completed"), sound.out);
    CHECK(fs::exists(scene.state() / "try/add/sound/runs/add/sound/r1/attempt-1/report.json"));
    const CommandOutcome absent = scene.run("try", {"add", "absent"});
    CHECK(absent.exit_code == 1);
    CHECK_MESSAGE(contains(absent.out, "the agent could not start: exit 127"), absent.out);
    CHECK(scene.run("try", {"add", "sound"}).exit_code == 0);  // again, in the same place
    const CommandOutcome unknown = scene.run("try", {"add", "sond"});
    CHECK(unknown.exit_code == 2);
    CHECK_MESSAGE(contains(unknown.err, "did you mean sound?"), unknown.err);
    CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
    CHECK_FALSE(fs::exists(scene.folder() / "pilot_randomization_plan.csv"));
    CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));

    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const fs::path fresh = scene.temp() / "fresh";
    CHECK(scene.run("copy", {fresh.string()}).exit_code == 0);
    CHECK(scene.read(fresh / "campaign.yaml") == scene.read(scene.folder() / "campaign.yaml"));
    CHECK(fs::exists(fresh / "repo/calc.sh"));
    for (const char* made : {"registration.json", "pilot_randomization_plan.csv", ".proctor"})
      CHECK_FALSE(fs::exists(fresh / made));
    CHECK(scene.run("copy", {fresh.string()}).exit_code == 2);
    CHECK(scene.run("copy", {(scene.folder() / "inside").string()}).exit_code == 2);
    CHECK_FALSE(fs::exists(scene.folder() / "inside"));
  }

  TEST_CASE(
      "what a run's programs wrote and what its agent changed can be read, also while it runs") {
    CampaignShape shape = gated_shape(1);
    shape.methods = {solving_method(
        "gated",
        "printf \"a\\tred \\033[31m\\n\"; echo begun; until [ -s /opt/gate/open ]; do sleep "
        "0.05; done; echo done >&2; ")};
    const CampaignScene scene(shape);
    Child ran = scene.start("run");
    REQUIRE(eventually([&] { return scene.agents_run(1); }));
    Child follow = scene.start("logs", {"add/gated/r1", "--phase", "agent", "--follow"}, "follow");
    REQUIRE(eventually([&] { return contains(scene.said("follow"), "begun"); }));
    CHECK_FALSE(contains(scene.said("follow"), "done"));
    CHECK(scene.run("diff", {"add/gated/r1"}).exit_code == 2);  // still at work
    scene.open_gate();
    CHECK(ran.wait(std::chrono::seconds(180)) == 0);
    CHECK(follow.wait(std::chrono::seconds(180)) == 0);
    CHECK(contains(scene.said("follow"), "==> agent/stderr <==\ndone"));
    const CommandOutcome checks = scene.run("logs", {"add/gated/r1", "--phase", "checks"});
    CHECK(checks.exit_code == 0);
    CHECK_FALSE(contains(checks.out, "begun"));
    const CommandOutcome all = scene.run("logs", {"add/gated/r1"});
    CHECK_MESSAGE(contains(all.out, "==> agent/stdout <==\na\tred \\x1b[31m\nbegun"), all.out);
    CHECK_MESSAGE(contains(all.err, "--raw"), all.err);
    const CommandOutcome raw = scene.run("logs", {"add/gated/r1", "--raw"});
    CHECK(contains(raw.out, "==> agent/stdout <==\na\tred \x1b[31m\nbegun"));
    CHECK_FALSE(contains(raw.err, "--raw"));
    const CommandOutcome diff = scene.run("diff", {"add/gated/r1"});
    CHECK_MESSAGE(contains(diff.out, "+echo $(($1 + $2))"), diff.out);
    CHECK(scene.run("logs", {"add/gated/r9"}).exit_code == 2);
    CHECK(scene.run("logs", {"add/gated/r1", "--attempt", "7"}).exit_code == 2);
  }

  TEST_CASE("a model of which no local worker knows is refused before anything is registered") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.methods = {"{name: asked, kind: single_shot, model: m-1}"};
    const CampaignScene scene(shape);
    scene.edit(scene.contract(), "reference_patch: fix.patch",
               "reference_patch: fix.patch\nsingle_shot: ask.json");
    scene.write(scene.folder() / "contracts/ask.json",
                R"({"format": 1, "answer": "files", "expected": ["calc.sh"],
                    "prompt": {"system": "", "user": "x"}})");
    const CommandOutcome none = scene.run("run");
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(contains(none.err,
                           "method asked asks the model m-1, and local workers are told "
                           "of none: --models FILE"),
                  none.err);
    scene.write(scene.temp() / "models.json", R"({"models": {"m-2": {"program": ["/bin/true"]}}})");
    const std::string file = (scene.temp() / "models.json").string();
    const CommandOutcome other = scene.run("run", {"--models", file});
    CHECK(other.exit_code == 2);
    CHECK_MESSAGE(contains(other.err, "which " + file + " does not name"), other.err);
    CHECK(scene.run("try", {"add", "asked"}).exit_code == 2);
    CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
  }
}
