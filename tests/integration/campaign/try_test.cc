// What a newcomer asks after a first run: why did it fail, what did it say, is the task sound.
#include <csignal>

#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("campaign") {
  TEST_CASE("a try says which check failed and what it wrote, and is read again") {
    CampaignShape shape;
    shape.methods = {
        "noop", "reference",
        "{name: wrong, kind: command, command: 'head -c 9000000 /dev/zero | tr \"\\0\" x; "
        "echo gave-up >&2; echo \"echo 7\" > "
        "calc.sh; exit 3'}"};
    const CampaignScene scene(shape);
    const CommandOutcome tried = scene.run("try", {"add", "wrong"});
    INFO(tried.out << tried.err);
    CHECK(tried.exit_code == 0);
    CHECK(contains(tried.out, "add/wrong/r1: ended with failure, completed"));
    CHECK(contains(tried.out, "  check "));
    CHECK(contains(tried.out, ": fail: exit code 1"));
    CHECK(contains(tried.out, "the agent's stderr ends:\n      gave-up"));
    CHECK(contains(tried.out, "runs/add/wrong/r1/attempt-1"));
    CHECK(contains(tried.out, "add/wrong --try"));

    for (const char* run : {"add/wrong", "add/wrong/r1"}) {
      const CommandOutcome logs = scene.run("logs", {run, "--try", "--phase", "agent", "--raw"});
      CHECK_MESSAGE(logs.exit_code == 0, logs.err);
      CHECK(contains(logs.out, "gave-up"));
      CHECK_MESSAGE(contains(logs.err, " of 9000000 bytes are not kept]"), logs.err);
    }
    // 8 MiB of it are kept, the line that says so included.
    const std::string kept =
        scene.read(scene.state() / "try/add/wrong/runs/add/wrong/r1/attempt-1/agent/stdout");
    CHECK(kept.size() == 8'388'608);
    CHECK(kept.ends_with("\n[proctor: cut here: 611451 of 9000000 bytes are not kept]\n"));
    const CommandOutcome diff = scene.run("diff", {"add/wrong", "--try"});
    CHECK_MESSAGE(contains(diff.out, "+echo 7"), diff.out << diff.err);
    const CommandOutcome why = scene.run("explain", {"add/wrong", "--try"});
    CHECK_MESSAGE(contains(why.out, "attempt 1 on trial-"), why.out << why.err);
    CHECK(contains(why.out, ": fail"));
    CHECK(scene.run("explain", {"add/wrong", "--try", "--json"}).exit_code == 0);
    // Who forgets the word, and who has not tried it, is told.
    CHECK(contains(scene.run("logs", {"add/wrong/r1"}).err, "with --try"));
    const CommandOutcome untried = scene.run("logs", {"add/noop", "--try"});
    CHECK(untried.exit_code == 2);
    CHECK_MESSAGE(contains(untried.err, "has not been tried: proctor try"), untried.err);
    CHECK(scene.run("logs", {"nonsense", "--try"}).exit_code == 2);

    CHECK(contains(scene.run("try", {"add", "noop"}).out, "that is right: noop changes nothing"));
  }

  TEST_CASE("a try that was killed is no obstacle to the next one") {
    CampaignShape shape;
    shape.methods = {"noop", gated_method("slow")};
    const CampaignScene scene(shape);
    Child first = scene.start("try", {"add", "slow"});
    REQUIRE(eventually([&] { return scene.agents_run(1); }));
    const CommandOutcome beside = scene.run("try", {"add", "slow"});
    CHECK(beside.exit_code != 0);
    CHECK_MESSAGE(contains(beside.err, "by another proctor try"), beside.err);
    first.signal(SIGKILL);
    first.wait(std::chrono::minutes(1));
    scene.open_gate();
    const CommandOutcome again = scene.run("try", {"add", "slow"});
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    CHECK_MESSAGE(contains(again.out, "ended with success"), again.out);
    scene.require_nothing_left();
  }

  TEST_CASE("a first stage with tasks and replicates of its own changes no try and no selfcheck") {
    CampaignShape shape;
    shape.tasks = {"add", "more"};
    shape.methods = {"noop", "reference", solving_method("agent")};
    const CampaignScene scene(shape);
    const fs::path yaml = scene.folder() / "campaign.yaml";
    scene.write(yaml,
                scene.read(yaml) +
                    "stages:\n  - {name: limited, tasks: [more], replicates: 3, order: tasks}\n"
                    "  - {name: full, entry: [complete_or_stopped], approval: {people: 2}}\n"
                    "retries: {escalate: true, park_after: 1}\n");
    for (const char* task : {"add", "more"}) {
      const CommandOutcome tried = scene.run("try", {task, "agent"});
      CHECK_MESSAGE(tried.exit_code == 0, tried.err);
      const fs::path runs = scene.state() / "try" / task / "agent/runs" / task / "agent";
      CHECK(fs::exists(runs / "r1/attempt-1"));
      CHECK_FALSE(fs::exists(runs / "r2"));
    }
    const CommandOutcome checked = scene.run("selfcheck", {"--repeats", "2", "--mutants", "2"});
    CHECK_MESSAGE(checked.exit_code == 0, checked.out << checked.err);
    const Json kept = parse_json(scene.read(scene.folder() / "reports/selfcheck.json")).value();
    for (const Json& task : kept["tasks"]) {
      CHECK(task["verdict"] == "weak");  // its reference is one line
      for (const Json& variant : task["variants"]) CHECK(variant["outcomes"].size() == 2);
    }
  }

  TEST_CASE("tries and the campaign make a setup once, and an agent's traces stay with its try") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.methods = {
        "noop", "reference",
        solving_method("litter", "chmod -R u+w .; echo spoilt > made.txt; echo x > $HOME/x; ")};
    const CampaignScene scene(shape);
    scene.edit(scene.contract(),
               "checks:", "setup: ['test ! -e $HOME/x && echo made > made.txt']\nchecks:");
    scene.edit(scene.contract(), "command: sh tests/t.sh",
               "command: 'test ! -e $HOME/x && sh tests/t.sh'");
    const auto use = [&](const fs::path& folder, const std::string& method) {
      const std::string manifest =
          scene.read(folder / "runs/add" / method / "r1/attempt-1/manifest.json");
      return parse_json(manifest).value()["environment"]["setup_cache"]["use"].get<std::string>();
    };
    const auto tried = [&](const std::string& method) {
      const CommandOutcome out = scene.run("try", {"add", method});
      CHECK_MESSAGE(out.exit_code == 0, out.err);
      return use(scene.state() / "try/add" / method, method);
    };
    CHECK(tried("litter") == "miss");
    CHECK(tried("reference") == "hit");
    CHECK(tried("litter") == "hit");
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    for (const char* method : {"noop", "reference", "litter"})
      CHECK(use(scene.folder(), method) == "hit");
    const Json report = parse_json(scene.run("report", {"--json"}).out).value();
    for (const Json& run : report["runs"])
      CHECK_MESSAGE(run["outcome"] == (run["method"] == "noop" ? "failure" : "success"),
                    run.dump());
    // Homes of workers, with what they have not handed over, are by names of their own.
    std::size_t trials = 0;
    for (const auto& home : fs::directory_iterator(scene.state() / "workers/workers"))
      trials += home.path().filename().string().starts_with("trial-") ? 1U : 0U;
    CHECK(trials == 2);
    CHECK(fs::exists(scene.state() / "workers/workers/local-1"));
    CHECK(scene.run("verify").exit_code == 0);
    scene.require_nothing_left();
  }

  TEST_CASE("a task that tells no solution from none is told wherever somebody looks") {
    CampaignShape shape;
    shape.tasks = {"add", "idle", "stale"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.contract("idle"), "command: sh tests/t.sh", "command: \"true\"");
    scene.edit(scene.contract("stale"), "command: sh tests/t.sh",
               "command: \"echo the fix is not there; exit 4\"");
    const std::string idle = "task idle is broken: noop ended with success in 1 of 1 run";
    const std::string stale = "task stale is broken: reference ended with failure in 1 of 1 run";
    const CommandOutcome tried = scene.run("try", {"stale", "reference"});
    CHECK_MESSAGE(contains(tried.out, "the task is broken: its checks fail with its own"),
                  tried.out);
    CHECK_MESSAGE(contains(tried.out, "its stdout ends:\n      the fix is not there"), tried.out);
    CHECK(contains(scene.run("try", {"idle", "noop"}).out, "the task is broken: its checks pass"));
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 1);
    CHECK(scene.run("wait").exit_code == 1);
    CHECK(scene.run("resume").exit_code == 1);
    // Six runs are told on one screen, from the beginning to the end.
    CHECK_MESSAGE(std::ranges::count(ran.out + ran.err, '\n') <= 40, ran.out << ran.err);
    const std::string report = scene.run("report").out;
    for (const std::string& told : {idle, stale}) {
      CHECK_MESSAGE(contains(ran.err, told), ran.err);
      CHECK(contains(report, told.substr(0, 40)));
      CHECK(contains(scene.run("status").out, told.substr(0, 40)));
      CHECK(contains(scene.read(scene.folder() / "reports/report.html"), told));
    }
    CHECK_FALSE(contains(ran.err, "task add is broken"));
  }

  TEST_CASE("a reference that passed and, repeated, did not is flaky wherever somebody looks") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.methods = {"reference"};
    const CampaignScene scene(shape);
    // The first run of acceptance waits for the gate and passes; the second finds it open.
    scene.edit(scene.contract(), "command: sh tests/t.sh",
               "command: 'test ! -s /opt/gate/open || { echo second; exit 4; }; echo first; "
               "until test -s /opt/gate/open; do sleep 0.05; done; sh tests/t.sh'");
    const fs::path yaml = scene.folder() / "campaign.yaml";
    scene.write(yaml, scene.read(yaml) + "acceptance: {rerun: 2, tie: safety-then-correctness}\n");
    const CommandOutcome checked = scene.run("check", {"--effective"});
    CHECK_MESSAGE(contains(checked.out, "rerun 2, tie safety-then-correctness"), checked.out);
    CHECK_MESSAGE(contains(checked.out, ": acceptance.rerun (tie: safety-"), checked.out);

    const auto torn = [&](const std::string& command, const std::vector<std::string>& run,
                          const std::vector<std::string>& shown) {
      scene.write(scene.temp() / "gate/open", "");
      Child child = scene.start(command, run, command);
      std::vector<std::string> logs = shown;
      logs.insert(logs.end(), {"--phase", "checks"});
      REQUIRE(eventually([&] { return contains(scene.run("logs", logs).out, "first"); }));
      logs.emplace_back("--follow");
      const std::string told = "logs of " + command;
      Child follow = scene.start("logs", logs, told);
      REQUIRE(eventually([&] { return contains(scene.said(told), "first"); }));
      scene.open_gate();
      const std::optional<int> code = child.wait(std::chrono::minutes(3));
      CHECK(follow.wait(std::chrono::minutes(1)) == 0);
      // The first one's output is shown once, though its folder has another name by then.
      CHECK(scene.said(told) ==
            "==> acceptance/sums/stdout <==\nfirst\n"
            "==> acceptance/sums/stdout (run 2) <==\nsecond\n");
      logs.pop_back();
      CHECK(scene.run("logs", logs).out ==
            "==> acceptance-1/sums/stdout <==\nfirst\n"
            "==> acceptance/sums/stdout <==\nsecond\n");
      return code;
    };
    CHECK(torn("try", {"add", "reference"}, {"add/reference", "--try"}) == 0);
    CHECK_MESSAGE(contains(scene.said("try"), "the task is flaky: its acceptance passed 1 time"),
                  scene.said("try"));
    CHECK_FALSE(contains(scene.said("try"), "no agent can pass"));

    CHECK(torn("run", {}, {"add/reference/r1"}) == 1);
    const std::string flaky = "task add is flaky: reference ended with failure in 1 of 1 run";
    CHECK_MESSAGE(contains(scene.said("run"), flaky), scene.said("run"));
    CHECK(contains(scene.read(scene.folder() / "reports/report.html"), flaky));
    const std::string told = "acceptance passed 1 time and did not pass in run 2 of 3";
    const std::string why = scene.run("explain", {"add/reference/r1"}).out;
    CHECK_MESSAGE(contains(why, told), why);
    CHECK(why.find(told) == why.rfind(told));
    CHECK(contains(scene.run("story", {"add/reference/r1"}).out, told));
    const Json run = must(parse_json(scene.run("explain", {"add/reference/r1", "--json"}).out));
    const Json attempt = run.at("attempts").at(0);
    CHECK(contains(attempt.at("rationale").get<std::string>(), told));
    CHECK(attempt.at("satisfied") == false);
    REQUIRE(attempt.at("checks").size() == 1);
    CHECK(attempt.at("checks").at(0).at("outcome") == "fail");
    CHECK(attempt.at("checks").at(0).at("exit_code") == 4);
    CHECK(attempt.at("violations") == Json::array());
    CHECK(scene.run("verify").exit_code == 0);
    scene.require_nothing_left();
  }

  TEST_CASE("a campaign in which no run came to a verdict says why and is no success") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.methods = {"noop", solving_method("sound")};
    const CampaignScene scene(shape);
    scene.edit(scene.contract(), "command: sh tests/t.sh", "command: sleep 100");
    scene.edit(scene.contract(), "timeout: 120s", "timeout: 1s");
    const CommandOutcome ran = scene.run("run");
    INFO(ran.err);
    CHECK(ran.exit_code == 1);
    CHECK(contains(ran.err, "2 of 2 runs that ended came to no verdict:"));
    CHECK(contains(ran.err, "1 acceptance_error of sound: check sums: "));
    CHECK(contains(ran.err, "proctor explain " + scene.folder().string() + " RUN"));
    CHECK(contains(ran.err, "exit code 1: no run came to a verdict"));
    CHECK(scene.run("wait").exit_code == 1);
    CHECK(scene.run("try", {"add", "sound"}).exit_code == 1);
  }

  TEST_CASE("a script that nobody made executable is run by what its first line asks for") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.methods = {"{name: scripted, kind: command, script: agent.py}"};
    const CampaignScene scene(shape);
    scene.write(scene.folder() / "agent.py",
                "#!/usr/bin/env python3\nopen('calc.sh', 'w').write('echo $(($1 + $2))\\n')\n");
    const CommandOutcome tried = scene.run("try", {"add", "scripted"});
    CHECK_MESSAGE(contains(tried.out, "ended with success"), tried.out << tried.err);
    scene.write(scene.folder() / "agent.py", "#!python3\nprint(1)\n");
    const CommandOutcome checked = scene.run("check");
    CHECK(checked.exit_code == 2);
    CHECK_MESSAGE(contains(checked.err, "names its interpreter by a path"), checked.err);
  }
}
