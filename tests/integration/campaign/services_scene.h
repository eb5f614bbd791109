#pragma once
// Campaigns whose check asks a service, on whatever runs them: the service says what the
// candidate's calc.sh makes of 2 and 3, and does not begin where that fails.
#include <csignal>
#include <sstream>

#include "tests/support/books.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/leftovers.h"
#include "tests/support/local_server.h"
#include "tests/support/paths.h"

namespace proctor::testing {

inline constexpr const char* kCalcService =
    "services:\n"
    "  - name: calc\n"
    "    command: '[ -n \"$SUMS\" ] && sum=$(sh calc.sh 2 3) && exec /opt/gate/net_probe serve "
    "80=$sum'\n"
    "    variables: {SUMS: all}\n"
    "    depends_on: [log]\n"
    "    ready: {port: 80, interval: 20ms, timeout: 120s}\n"
    "  - name: log\n"
    "    command: echo logging; while [ ${i:-0} -lt 200000 ]; do i=$((${i:-0} + 1)); done; "
    "exec sleep 1000\n"
    "    ready: {command: 'echo asked', timeout: 120s}\n"
    "    memory: 64MiB\n"
    "    processes: 8\n"
    "checks:\n"
    "  - {id: asks, kind: integration, timeout: 120s, command: \"@BEFORE@/opt/gate/net_probe say "
    "calc:80 | grep -q 'calc:80: 5'\"}\n"
    "  - {id: alone, kind: integration, timeout: 120s, services: [], command: "
    "\"/opt/gate/net_probe say calc:80 | grep -q 'no such name'\"}\n";

// `environment`: lines for the contract's environment; `before`: what the check does first.
inline void give_service(const CampaignScene& scene, const std::string& environment,
                         const std::string& before = "") {
  fs::copy_file(build_dir() / "net_probe", scene.temp() / "gate/net_probe");
  std::string services = kCalcService;
  services.replace(services.find("@BEFORE@"), std::string("@BEFORE@").size(), before);
  scene.edit(scene.contract(), "environment:\n", "environment:\n" + environment);
  scene.edit(scene.contract(), "checks:\n", services);
}

inline std::map<std::string, Json> reports_by_method(const CampaignScene& scene) {
  std::map<std::string, Json> out;
  for (const auto& e : fs::recursive_directory_iterator(scene.folder() / "runs")) {
    if (e.path().filename() != "report.json") continue;
    const Json report = must(parse_json(scene.read(e.path())));
    Json& kept = out[report["identity"]["method"].string()];
    kept = report;
    kept["folder"] = e.path().parent_path().string();
  }
  return out;
}

// Solved, untouched, and broken so that the service does not begin.
inline void run_services(const std::string& environment) {
  CampaignShape shape;
  shape.methods = {"noop", "reference",
                   "{name: breaker, kind: command, command: 'echo exit 4 > calc.sh'}"};
  shape.replicates = 1;
  shape.workers = 1;
  const CampaignScene scene(shape);
  give_service(scene, environment);
  const CommandOutcome ran = scene.run("run", {}, std::chrono::seconds(300));
  REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
  check_books(scene, {.runs = 3});
  CHECK(scene.run("verify").exit_code == 0);
  auto reports = reports_by_method(scene);
  REQUIRE(reports.size() == 3);
  CHECK(reports["reference"]["outcome"] == "success");
  CHECK(reports["noop"]["outcome"] == "failure");
  const Json& broken = reports["breaker"];
  CHECK(broken["outcome"] == "failure");
  CHECK(broken["termination"]["code"] == "completed");
  const std::string why = "service calc ended with exit code 4 before it was ready";
  std::map<std::string, Json> checks;
  for (const Json& check : broken["checks"]) checks[check["id"].string()] = check;
  REQUIRE(checks.size() == 5);                 // those of the contract, and services of two of them
  CHECK(checks["asks"]["outcome"].is_null());  // nobody has seen what it would say
  CHECK(checks["asks"]["ended"] == "not_run");
  CHECK(checks["asks"]["why"] == "did not run: " + why);
  CHECK(checks["services:asks"]["outcome"] == "fail");
  CHECK(checks["services:asks"]["why"] == why);
  CHECK(checks["alone"]["outcome"] == "pass");
  for (const Json& gate : broken["gates"])
    if (gate["gate"] == "functional") CHECK(gate["why"] == "services:asks: " + why);
  const fs::path run = reports["reference"]["folder"].get<std::string>();
  CHECK(scene.read(run / "acceptance/asks/services/log.stdout") == "logging\n");
  CHECK(scene.read(run / "acceptance/asks/services/log.ready.stdout") == "asked\n");
  CHECK_FALSE(fs::exists(run / "acceptance/alone/services"));
  const std::string events = scene.read(run / "events.jsonl");
  CHECK(contains(events, R"("by_itself":false,"check":"asks")"));
  CHECK(contains(events, R"("service":"calc")"));
  // What services use beside their time is used by the run.
  std::uint64_t cpu_ms = 0, memory = 0;
  std::istringstream each(events);
  for (std::string line; std::getline(each, line);) {
    const Json payload = must(parse_json(line)).at("payload");
    if (!payload.contains("service")) continue;
    cpu_ms += payload.value("cpu_ms", std::uint64_t{0});
    memory = std::max(memory, payload.value("memory_peak", std::uint64_t{0}));
  }
  const Json& usage = reports["reference"]["usage"];
  CHECK(cpu_ms <= usage.at("cpu_ms"));
  // Of containers that are gone before anybody looked, memory is not known: then of nobody.
  CHECK(memory <= usage.value("metered", Json::object()).value("memory_peak", std::uint64_t{0}));
  scene.require_nothing_left();
}

// The worker is killed while a check is among its services; its next life, or another attempt,
// does it all again, beside nothing of the first.
inline void run_killed_services(const std::string& environment) {
  CampaignShape shape;
  shape.methods = {"reference"};
  shape.replicates = 1;
  shape.workers = 1;
  const CampaignScene scene(shape);
  const LocalServer never;  // only for its port, which nobody else has
  give_service(scene, environment,
               ": gated-" + std::to_string(never.port()) +
                   "; until [ -s /opt/gate/open ]; do sleep 0.05; done; ");
  Child run = scene.start("run");
  const std::string mark = "gated-" + std::to_string(never.port());
  const auto among_services = [&] {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto line = read_file(entry.path() / "cmdline", 1 << 16);
      if (line.ok() && line->starts_with("/bin/sh") && contains(*line, mark)) return true;
    }
    return false;
  };
  REQUIRE_MESSAGE(eventually(among_services), scene.said());
  const std::vector<pid_t> victims = scene.workers();
  REQUIRE(victims.size() == 1);
  REQUIRE(::kill(victims[0], SIGKILL) == 0);
  REQUIRE_MESSAGE(eventually([&] {
                    const std::vector<pid_t> alive = scene.workers();
                    return alive.size() == 1 && alive != victims;
                  }),
                  scene.said());
  scene.open_gate();
  CHECK_MESSAGE(run.wait(std::chrono::seconds(300)) == 0, scene.said());
  CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 1);
  CHECK(scene.run("verify").exit_code == 0);
  scene.require_nothing_left();
}

// A service of an image alone runs nothing of the candidate's: what fails is not his.
inline void run_broken_image_service(const std::string& environment, const std::string& image) {
  CampaignShape shape;
  shape.methods = {"reference"};
  shape.replicates = 1;
  shape.workers = 1;
  const CampaignScene scene(shape);
  scene.edit(scene.contract(), "environment:\n", "environment:\n" + environment);
  scene.edit(scene.contract(), "checks:\n",
             "services:\n  - name: db\n    container: {image: \"" + image +
                 "\", entrypoint: [/bin/sh, -c, \"echo no disk >&2; exit 3\"]}\n"
                 "    ready: {port: 5432, timeout: 120s}\nchecks:\n");
  scene.edit(scene.folder() / "campaign.yaml", "strata:", "infrastructure_retries: 0\nstrata:");
  const CommandOutcome ran = scene.run("run", {}, std::chrono::seconds(300));
  CAPTURE(ran.err);
  auto reports = reports_by_method(scene);
  REQUIRE(reports.size() == 1);
  CHECK(reports["reference"]["outcome"] == "invalid");
  // Its patch was made and could not be judged: the end is its own.
  CHECK(reports["reference"]["termination"]["code"] == "completed");
  CAPTURE(reports["reference"]["termination"].dump());
  CHECK(contains(reports["reference"]["termination"]["rationale"].get<std::string>(),
                 "service db ended with exit code 3 before it was ready"));
  scene.require_nothing_left();
}

}  // namespace proctor::testing
