// What an agent has for itself: seen by its own phase alone, made once, and no part of a contract.
#include <sys/stat.h>

#include <cstdlib>
#include <set>

#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kSecret = "SCENE_AGENT_KEY";

// A folder of the host with one program, at /opt/mini; `own` alone has it, a secret, a variable,
// and what its setup made.
class OwnScene {
 public:
  explicit OwnScene(CampaignShape shape = {}) : scene_(with_methods(std::move(shape))) {
    REQUIRE(make_dirs(tools() / "bin").ok());
    scene_.write(tools() / "bin/mini", "#!/bin/sh\necho mini works\n");
    REQUIRE(::chmod((tools() / "bin/mini").c_str(), 0755) == 0);
    scene_.edit(scene_.folder() / "campaign.yaml", "TOOLS", tools().string());
    scene_.edit(scene_.contract(), "checks:", "setup:\n  - env; ls -a /proctor /opt\nchecks:");
    scene_.edit(scene_.contract(), "command: sh tests/t.sh",
                "command: 'env; ls -a /proctor /opt; sh tests/t.sh'");
  }
  const CampaignScene& operator*() const { return scene_; }
  const CampaignScene* operator->() const { return &scene_; }
  fs::path tools() const { return scene_.temp() / "tools"; }
  std::string evidence(const std::string& method, int replicate, const std::string& file) const {
    return scene_.read(scene_.folder() / "runs/add" / method / ("r" + std::to_string(replicate)) /
                       "attempt-1" / file);
  }
  Json manifest(const std::string& method, int replicate) const {
    return must(parse_json(evidence(method, replicate, "manifest.json")));
  }

 private:
  static CampaignShape with_methods(CampaignShape shape) {
    shape.methods = {
        "{name: own, kind: command, command: 'env; ls -a /proctor /opt; mini && made && touch "
        "/proctor/agent/x || echo \"echo \\$((\\$1 + \\$2))\" > calc.sh', environment: {secrets: "
        "[" +
            std::string(kSecret) +
            "], network: {allow: ['api.example:443']}, variables: {MINI_MODE: fast}, toolchains: "
            "[{path: TOOLS, at: /opt/mini}], setup: "
            "['env; mini; mkdir bin; printf \"#!/bin/sh\\necho made by setup\\n\" > bin/made; "
            "chmod +x "
            "bin/made; pwd; ls /workspace']}}",
        solving_method("bare", "env; ls -a /proctor /opt; ")};
    shape.workers = 1;
    return shape;
  }
  CampaignScene scene_;
};

// Words that only what belongs to the method says.
const char* const kOwnWords[] = {"SCENE_AGENT_KEY", "MINI_MODE", "/opt/mini", "mini\n",
                                 "PROCTOR_AGENT"};

}  // namespace

TEST_SUITE("method environment") {
  TEST_CASE("what belongs to a method is seen by its own agent, by nothing else, and made once") {
    ::setenv(kSecret, "a-value-of-thirty-and-some-letters", 1);
    const OwnScene scene;
    const CommandOutcome ran = scene->run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    for (const int r : {1, 2}) {
      CAPTURE(r);
      const std::string agent = scene.evidence("own", r, "agent/stdout");
      CHECK_MESSAGE(contains(agent, "SCENE_AGENT_KEY=a-value-of-thirty-and-some-letters"), agent);
      CHECK(contains(agent, "MINI_MODE=fast"));
      CHECK(contains(agent, "PATH=/proctor/agent/bin:/opt/mini/bin:"));
      CHECK(contains(agent, "mini works"));
      CHECK(contains(agent, "made by setup"));
      CHECK(contains(scene.evidence("own", r, "agent/stderr"), "Read-only file system"));
      // Its briefing names the network that it has, not the contract's alone.
      CHECK(contains(scene.evidence("own", r, "events.jsonl"), "network: only api.example:443, "));
      CHECK(contains(scene.evidence("bare", r, "events.jsonl"), "network: none"));
      CHECK(scene.evidence("own", r, "patch.diff") == scene.evidence("bare", r, "patch.diff"));
      for (const char* method : {"own", "bare"})
        for (const char* phase : {"setup-agent/0.stdout", "setup-acceptance/0.stdout",
                                  "acceptance/sums/stdout", "agent/stdout"}) {
          if (method == std::string("own") && phase == std::string("agent/stdout")) continue;
          CAPTURE(method);
          CAPTURE(phase);
          const std::string seen = scene.evidence(method, r, phase);
          CHECK(contains(seen, "PROCTOR_SEED="));
          for (const char* word : kOwnWords) CHECK_MESSAGE(!contains(seen, word), seen);
        }
      // Its setup has its variables and tools, and neither a secret nor the task.
      const std::string setup = scene.evidence("own", r, "setup-method/0.stdout");
      CHECK(contains(setup, "mini works"));
      CHECK(contains(setup, "MINI_MODE=fast"));
      CHECK(contains(setup, "\n/proctor/agent\n"));
      CHECK_FALSE(contains(setup, kSecret));
      CHECK_FALSE(contains(setup, "calc.sh"));
      const Json own = scene.manifest("own", r)["method"];
      CHECK(own["secrets"] == Json::array({kSecret}));
      CHECK(own["variables"]["MINI_MODE"] == "fast");
      CHECK(own["toolchains"][0]["at"] == "/opt/mini");
      CHECK_FALSE(scene.manifest("bare", r).contains("method"));
      CHECK_FALSE(contains(scene.evidence("own", r, "manifest.json"), "a-value-of-thirty"));
    }
    const auto uses = [&](int r) {
      return scene.manifest("own", r)["method"]["setup_cache"]["use"];
    };
    CHECK(std::multiset<Json>{uses(1), uses(2)} == std::multiset<Json>{"hit", "miss"});
    CHECK(scene->run("verify").exit_code == 0);
    ::unsetenv(kSecret);
  }

  TEST_CASE("a method's environment changes the registration and no contract's digest") {
    const OwnScene scene;
    const std::string with = scene->run("check").out;
    REQUIRE(scene->run("plan", {"--freeze"}).exit_code == 0);
    scene->edit(scene->folder() / "campaign.yaml", "MINI_MODE: fast", "MINI_MODE: slow");
    CHECK(scene->run("check").out == with);  // it shows the digests of contracts
    CHECK(contains(with, "add "));
    const CommandOutcome refused = scene->run("plan", {"--freeze"});
    CHECK(refused.exit_code != 0);
    CHECK_MESSAGE(contains(refused.err, "method own: registered "), refused.err);
    CHECK_FALSE(contains(refused.err, "contract add"));
  }

  TEST_CASE("a method whose setup fails is parked with its reason and no task or worker suffers") {
    CampaignShape shape;
    shape.tasks = {"add", "sub"};
    shape.replicates = 3;
    shape.methods = {
        "{name: broken, kind: command, command: 'true', environment: {setup: ['echo no "
        "such package >&2; exit 4']}}",
        solving_method("sound")};
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "retries: {backoff: 50ms}\nstrata: [language, type]");
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 1);
    CHECK_MESSAGE(contains(ran.err, "its method is parked: it failed "), ran.err);
    CHECK_MESSAGE(contains(ran.err,
                           "the method's setup step 1 (echo no such package >&2; exit 4): "
                           "exit 4; stderr ends: no such package"),
                  ran.err);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'ended' AND outcome = 'success'") ==
          6);
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE termination = 'agent_unavailable'") <=
          5);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a secret that no worker can have is refused at start, for whoever needs it") {
    ::unsetenv(kSecret);
    const OwnScene scene;
    const CommandOutcome refused = scene->run("run");
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err,
                           "method own needs the secret SCENE_AGENT_KEY, which is not "
                           "set: export it"),
                  refused.err);
    CHECK_FALSE(fs::exists(scene->folder() / "registration.json"));
    CHECK(scene->run("try", {"add", "own"}).exit_code == 2);
    CHECK(scene->run("try", {"add", "bare"}).exit_code == 0);  // it does not need it
    REQUIRE(remove_tree(scene.tools()).ok());
    CHECK(contains(scene->run("run").err, "method own needs the toolchain " +
                                              scene.tools().string() +
                                              ", which is not on this host"));
  }

  TEST_CASE("a locale, time zone or toolchain that this host lacks is refused by its name") {
    struct Row {
      std::string from, to, words;
    };
    for (const Row& row :
         {Row{"environment:\n", "environment:\n  timezone: Asia/Calcuta\n",
              "contract add needs the time zone Asia/Calcuta, which is not in /usr/share/zoneinfo"},
          Row{"environment:\n", "environment:\n  locale: xx_XX.UTF-8\n",
              "contract add needs the locale xx_XX.UTF-8, which is not on this host"},
          Row{"toolchains: [", "toolchains: [{path: /opt/no-such-tools}, ",
              "contract add needs the toolchain /opt/no-such-tools, which is not on this host"}}) {
      CampaignShape shape;
      shape.workers = 1;
      const CampaignScene scene(shape);
      scene.edit(scene.contract(), row.from, row.to);
      for (const char* command : {"check", "run"}) {
        const CommandOutcome refused = scene.run(command);
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(contains(refused.err, row.words), refused.err);
      }
      CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
      CHECK(scene.run("check", {"--offline"}).exit_code == 0);  // workers may be elsewhere
    }
  }

  TEST_CASE("a worker whose host does not know a time zone gives such runs back") {
    const CampaignScene scene;
    scene.edit(scene.contract(), "environment:\n", "environment:\n  timezone: Asia/Calcuta\n");
    Child running = scene.start("run", {"--workers", "0"});
    const fs::path socket = scene.state() / "coordinator.sock";
    REQUIRE(eventually([&] { return fs::exists(socket); }));
    Child worker = scene.start_worker({"--connect", "ipc://" + socket.string()}, "poor");
    CHECK_MESSAGE(eventually([&] {
                    return contains(scene.said("poor"), "this host lacks timezone Asia/Calcuta");
                  }),
                  scene.said("poor"));
    CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'ended'") == 0);
  }

  TEST_CASE("a worker that lacks a secret gets the runs that need none, and is not quarantined") {
    ::unsetenv(kSecret);
    CampaignShape shape;
    shape.replicates = 3;
    const OwnScene scene(shape);
    Child running = scene->start("run", {"--workers", "0"});
    const std::string at = "ipc://" + (scene->state() / "coordinator.sock").string();
    REQUIRE(eventually([&] { return fs::exists(scene->state() / "coordinator.sock"); }));
    Child poor = scene->start_worker({"--connect", at, "--slots", "2"}, "poor");
    CHECK_MESSAGE(eventually([&] { return scene->ended() == 3; }), scene->said("poor"));
    CHECK(eventually([&] {
      return contains(scene->run("explain", {"add/own/r1"}).out,
                      "it waits for a free worker with bubblewrap and secret SCENE_AGENT_KEY");
    }));
    CHECK_MESSAGE(eventually([&] {
                    return contains(scene->run("status").out, "but not secret SCENE_AGENT_KEY");
                  }),
                  scene->run("status").out);
    ::setenv(kSecret, "a-value-of-thirty-and-some-letters", 1);
    Child rich = scene->start_worker({"--connect", at}, "rich");
    CHECK_MESSAGE(running.wait(std::chrono::seconds(300)) == 0, scene->said());
    ::unsetenv(kSecret);
    CHECK(contains(scene->said("poor"), "this host lacks secret SCENE_AGENT_KEY"));
    CHECK(scene->number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
    CHECK(scene->number("SELECT count(*) FROM attempts WHERE infrastructure <> 0") == 0);
    CHECK(scene->number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 6);
    CHECK(scene->run("verify").exit_code == 0);
    poor.wait(std::chrono::seconds(180));
    rich.wait(std::chrono::seconds(180));
  }

  TEST_CASE(
      "declared files of an agent are kept as evidence, and nothing that it plants is followed") {
    CampaignShape shape;
    shape.workers = 1;
    shape.replicates = 1;
    shape.methods = {
        "{name: told, kind: command, keep: [\"~/.mini/traj.json\", \"logs/*\", \"~/big\", "
        "\"~/pipe\"], "
        "command: 'mkdir -p ~/.mini logs; echo traj > ~/.mini/traj.json; echo one > logs/a.log; "
        "ln -s /etc/passwd logs/link; mkfifo ~/pipe; truncate -s 100M ~/big; "
        "echo other > not-kept; echo \"echo \\$((\\$1 + \\$2))\" > calc.sh'}"};
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    const fs::path run = scene.folder() / "runs/add/told/r1/attempt-1";
    CHECK(scene.read(run / "agent/kept/home/.mini/traj.json") == "traj\n");
    CHECK(scene.read(run / "agent/kept/workspace/logs/a.log") == "one\n");
    std::set<std::string> kept;
    for (const auto& e : fs::recursive_directory_iterator(run / "agent/kept"))
      if (!e.is_directory()) kept.insert(e.path().filename().string());
    CHECK(kept == std::set<std::string>{"a.log", "traj.json"});
    const std::string events = scene.read(run / "events.jsonl");
    CHECK(contains(events, "\"agent.kept\""));
    CHECK(contains(events, "agent/kept/workspace/logs/link"));
    CHECK(contains(events, "agent/kept/home/big"));
    CHECK(contains(events, "neither file nor folder"));
    CHECK(must(parse_json(scene.read(run / "manifest.json")))["method"]["keep"].size() == 4);
    const CommandOutcome logs = scene.run("logs", {"add/told/r1"});
    CHECK_MESSAGE(contains(logs.err, "kept: " + (run / "agent/kept/home/.mini/traj.json").string()),
                  logs.err);
    const CommandOutcome why = scene.run("explain", {"add/told/r1"});
    CHECK_MESSAGE(contains(why.out, "kept of its agent: agent/kept/home/.mini/traj.json"), why.out);
    CHECK(scene.run("verify").exit_code == 0);
    scene.write(run / "agent/kept/home/.mini/traj.json", "forged\n");
    CHECK(scene.run("verify").exit_code == 1);
  }
}
