// Contracts whose setup misbehaves: each ends exactly so, and leaves nothing.
#include "tests/hostile/hostile_campaign.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Row {
  const char* what;
  const char* setup;
  const char* outcome;
  const char* termination;
  const char* words;  // of the rationale
};

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("a setup that never ends or asks or leaves processes ends exactly so" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const Row rows[] = {
        {"never ends", "{command: \"setsid sleep 99 & while :; do sleep 1; done\", timeout: 1s}",
         "invalid", "infrastructure", "stopped at its time limit"},
        // There is nobody to ask: the end of the input is all it reads.
        {"asks", "{command: \"read answer && exit 0; echo no answer >&2; exit 3\", timeout: 120s}",
         "invalid", "infrastructure", "exit 3"},
        {"leaves processes",
         "{command: \"(setsid sh -c 'trap : TERM HUP; while :; do sleep 1; done' &) ; exit 0\", "
         "timeout: 120s}",
         "success", "completed", ""},
        {"writes everywhere",
         "{command: \"for d in / /usr /etc /proc/sys/kernel; do ! touch $d/x || exit 9; done\", "
         "timeout: 120s}",
         "success", "completed", ""}};
    for (const Row& row : rows) {
      CAPTURE(std::string(row.what));
      const std::vector<HostileAgent> solver = {
          {"solver", "echo 'echo $(($1 + $2))' > calc.sh", row.outcome, row.termination}};
      const auto scene = hostile_scene(
          *kind, solver, {},
          "setup: [" + std::string(row.setup) +
              "]\nchecks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
              "policy:\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n");
      run_hostile(*scene, solver);
      const Json report = must(parse_json(scene->run("report", {"--json"}).out));
      const std::string name = report["runs"][0]["run"].string();
      const std::string own =
          scene->read(scene->folder() / "runs" / name / "attempt-1/report.json");
      CHECK_MESSAGE(contains(own, row.words), own);
    }
  }

  TEST_CASE("what setup made where an agent may not write is no violation of the agent's") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::string right = "echo 'echo $(($1 + $2))' > calc.sh; ";
    for (const std::string cache : {"true", "false"}) {
      CAPTURE(cache);
      const std::vector<HostileAgent> agents = {
          {"honest", right, "success"},
          {"meddler", right + "echo mine >> tests/gen/made.sh", "success", "completed",
           "not writable: tests/gen/made.sh"},
          {"mover", right + "mv gen.txt moved.txt", "success", "completed",
           "not writable: moved.txt"}};
      const auto scene = hostile_scene(
          *kind, agents, {},
          "setup: [{command: \"mkdir -p tests/gen; echo x > tests/gen/made.sh; echo x > gen.txt\", "
          "timeout: 120s, cache: " +
              cache +
              "}]\nchecks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
              "policy:\n  protected: [\"tests/**\"]\n  writable: [calc.sh]\n  wall: 60s\n"
              "  memory: 128MiB\n  processes: 32\n");
      run_hostile(*scene, agents);
      const std::string own =
          scene->read(scene->folder() / "runs/add/honest/r1/attempt-1/report.json");
      CHECK_MESSAGE(contains(own, "\"violations\":[]"), own);
    }
  }

  TEST_CASE("a contract that would have a place of the sandbox or the root itself is refused") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> noop = {{"noop", ":", "failure"}};
    const std::string checks =
        "checks:\n  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n";
    for (const char* writable : {"/", "/**", "../**", "/etc/**"}) {
      CAPTURE(std::string(writable));
      const auto scene =
          hostile_scene(*kind, noop, {}, checks + "policy:\n  writable: [\"" + writable + "\"]\n");
      const CommandOutcome out = scene->run("check");
      CHECK_MESSAGE(out.exit_code == 2, out.out << out.err);
      CHECK_MESSAGE(contains(out.err, "policy.writable"), out.err);
    }
  }
}
