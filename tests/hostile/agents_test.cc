// Hostile agents in whole campaigns: how each ends, by the books.
#include <sstream>

#include "tests/hostile/hostile_campaign.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::string seconds(const Kind& kind, int n) {
  return std::to_string(n * kind.patience()) + "s";
}
std::string contract_of(const Kind& kind) {
  return "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
         "policy:\n  protected: [\"tests/**\"]\n  memory: 64MiB\n  processes: 32\n"
         "  disk: 16MiB\n  wall: " +
         seconds(kind, 8) + "\n  cpu: " + seconds(kind, 1) +
         "\nfiles: [judge.sh]\nacceptance_files: [{from: judge.sh, to: judge/own/judge.sh}, "
         "{from: judge.sh, to: own/judge}]\n";
}
const std::string kSolve = "echo 'echo $(($1 + $2))' > calc.sh; ";

// What was done before the end counts: the tree is judged as it was left.  Where two limits race,
// or a slow machine meets the time limit first, the code is not foretold.
const std::vector<HostileAgent> kAgents = {
    {"memory", kSolve + "tail /dev/zero", "success", "resource_limit"},
    {"disk", kSolve + "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done",
     "success", "resource_limit"},
    {"one-file", kSolve + "head -c 99000000 /dev/zero > /proctor/home/big; exit 0", "success", ""},
    {"time", kSolve + "trap '' TERM INT; (setsid sleep 77 &); while :; do sleep 1; done", "success",
     "agent_timeout"},
    {"cpu", kSolve + "for i in 1 2 3; do while :; do :; done & done; wait", "success",
     "resource_limit"},
    {"forks", kSolve + "f() { f | f & }; f; sleep 2", "success", ""},
    {"output", kSolve + "head -c 60000000 /dev/zero; head -c 40000000 /dev/zero >&2", "success",
     ""},
    {"kills", kSolve + "kill -9 -1", "success"},
    {"deep", kSolve + "i=0; while [ $i -lt 300 ]; do i=$((i+1)); mkdir d && cd d || break; done",
     "failure", "resource_limit", "unreadable: workspace: nested deeper"},
    // Nobody who cannot solve a task gets out of the count by what he leaves.
    {"deeper",
     kSolve + "i=0; while [ $i -lt 101 ]; do i=$((i+1)); mkdir d && cd d || break; done; "
              "echo x > f",
     "failure", "resource_limit", "unreadable: workspace: nested deeper"},
    {"long-paths",
     kSolve + "n=$(printf '%0200d' 0); for i in $(seq 30); do mkdir $n; cd $n; done; "
              "echo x > f",
     "failure", "resource_limit", "unreadable: workspace: a path"},
    {"sparse",
     kSolve + "for i in $(seq 20); do dd if=/dev/null of=s$i bs=1 seek=15000000 "
              "2>/dev/null; done",
     "failure", "resource_limit", "unreadable: workspace: changed files"},
    {"names-like-git", kSolve + "mkdir 'git~1'; echo x > 'git~1/config'", "success"},
    // So few that a slow disk does not make it meet its second of CPU first.
    {"special-files", kSolve + "mkfifo $(seq 1000 | sed s/^/p/)", "success", "completed",
     "refused: p1"},
    {"closed", kSolve + "mkdir c; echo x > c/f; chmod 0 c/f c calc.sh", "success", "completed"},
    {"in-the-way", kSolve + "ln -s /etc judge; echo x > own", "success"},
    {"escapes",
     kSolve + "touch \"$(printf '\\033]0;owned\\007\\033[2J')\"; touch \"$(printf 'a\\nb')\"; "
              "printf '\\033]0;owned\\007\\033[31m'; printf '\\033[2J' >&2; touch '-rf' "
              "\"$(printf 'caf\\303\\251')\" \"$(printf 'cafe\\314\\201')\" \"$(printf '\\377')\"",
     "success"},
    {"leads-out",
     kSolve + "for t in /etc/shadow / ../../.. /proc/1/environ; do n=$((n+1)); "
              "sh -c \"cd .; exec chmod 777 .\"; done; mkdir .git2; true",
     "success"}};

// What it takes to look at what they leave is bounded, and paid for by them.
std::string large_contract_of(const Kind& kind) {
  return "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
         "policy:\n  memory: 512MiB\n  processes: 32\n  disk: 400MiB\n  wall: " +
         seconds(kind, 60) + "\n";
}
const std::vector<HostileAgent> kLarge = {
    {"random", kSolve + "head -c 240000000 /dev/urandom > big", "failure", "resource_limit",
     "unreadable: "},
    {"files", kSolve + "mkdir d; cd d; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); : > $i; done",
     "success"}};

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("what a large tree takes is bounded and in the books of its run" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const auto scene = hostile_scene(*kind, kLarge, {}, large_contract_of(*kind));
    run_hostile(*scene, kLarge);
    const Json report = must(parse_json(scene->run("report", {"--json"}).out));
    for (const Json& run : report["runs"]) {
      const fs::path dir = scene->folder() / "runs" / run["run"].get<std::string>() / "attempt-1";
      std::istringstream events(scene->read(dir / "events.jsonl"));
      std::uint64_t took = 0;
      for (std::string line; std::getline(events, line);) {
        const Json event = must(parse_json(line));
        if (event["type"] == "mutation") took = event["payload"]["wall_ms"].get<std::uint64_t>();
      }
      const Json own = must(parse_json(scene->read(dir / "report.json")));
      const std::string name = run["method"].string();
      MESSAGE(name << ": " << took << " ms");
      CHECK(0 < took);
      CHECK(took <= own["usage"]["acceptance_ms"].get<std::uint64_t>());
    }
  }

  TEST_CASE("each hostile agent ends by its own code and its tree is judged or refused" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    std::vector<HostileAgent> agents = kAgents;
    if (!kind->special_files())
      for (HostileAgent& agent : agents)
        if (agent.name == "special-files") agent.violation.clear();
    const auto scene = hostile_scene(*kind, agents, {}, contract_of(*kind));
    scene->write(scene->folder() / "contracts/judge.sh", "exit 0\n");
    run_hostile(*scene, agents);
  }
}
