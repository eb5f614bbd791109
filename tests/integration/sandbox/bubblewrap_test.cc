// What only bubblewrap can get wrong: tools of the host under our filter and our /etc.
#include <doctest/doctest.h>

#include "common/base/unique_fd.h"
#include "tests/integration/sandbox/engine_under_test.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("sandbox bubblewrap") {
  TEST_CASE("compilers and interpreters of the host work inside") {
    const auto bench = make_bench();
    if (!bench) return;
    struct Row {
      const char* tool;  // must be there for the row to be run
      const char* command;
    };
    const Row rows[] = {
        {"/usr/bin/gcc", "echo 'int main(){return 0;}' > a.c && gcc -o a a.c && ./a"},
        {"/usr/bin/git", "git init -q r && git -C r status --short"},
        {"/usr/bin/python3",
         "/usr/bin/python3 -c 'import multiprocessing as m, subprocess as s, threading as t; "
         "x = t.Thread(target=print); x.start(); x.join(); s.run([\"true\"], check=True); "
         "p = m.Process(target=print); p.start(); p.join(); assert p.exitcode == 0'"},
        {"/usr/bin/node",
         "node -e 'require(\"fs\").promises.readFile(\"/etc/passwd\").then(b => "
         "process.exit(b.length > 0 ? 0 : 1))'"},
        // Its scheduler and its threads, without building the standard library for a minute.
        {"/usr/local/go/bin/go",
         "export HOME=/tmp GOPROXY=off GOTOOLCHAIN=local; /usr/local/go/bin/go list std"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.tool);
      if (!fs::exists(row.tool)) {
        MESSAGE("left out: no " << row.tool << " on this machine");
        continue;
      }
      auto sandbox = bench->engine().open(bench->spec());
      REQUIRE(sandbox.ok());
      ExecSpec exec;
      exec.command = row.command;
      exec.timeout = std::chrono::minutes(3);
      exec.stdout_file = bench->scratch() / "out";
      exec.stderr_file = bench->scratch() / "err";
      const auto outcome = (*sandbox)->run(exec, {});
      REQUIRE(outcome.ok());
      CAPTURE(read_file(exec.stderr_file, 1 << 20).value());
      CAPTURE(read_file(exec.stdout_file, 1 << 20).value());
      CHECK(outcome->exit_code == 0);
    }
  }

  TEST_CASE("without control groups the memory of all processes together is watched") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxOptions options;
    options.owner = "no-groups";
    options.cgroups = false;
    auto engine = open_sandbox_engine(SandboxKind::kBubblewrap, options);
    REQUIRE_MESSAGE(engine.ok(), (engine.ok() ? "" : engine.error().detail));
    CHECK((*engine)->enforcement().at("memory") == "rlimit");
    CHECK((*engine)->enforcement().at("memory_sum") == "monitor");
    // Each stays far below the limit; the eight together do not.
    const std::string hog =
        "for i in 1 2 3 4 5 6 7 8; do (x=$(head -c 40000000 /dev/zero | tr '\\0' x); "
        "while :; do sleep 1; done) & done; wait";
    SandboxSpec spec = bench->spec();
    spec.memory_bytes = std::uint64_t{192} << 20;
    auto sandbox = (*engine)->open(spec);
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = hog;
    exec.timeout = std::chrono::seconds(20);
    auto outcome = (*sandbox)->run(exec, {});
    REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().detail));
    CHECK(outcome->end == ExecOutcome::End::kMemory);
    CHECK(outcome->wall < std::chrono::seconds(15));
    // What they share counts once, and what fits runs.
    exec.command = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 0.4; true";
    outcome = (*sandbox)->run(exec, {});
    REQUIRE(outcome.ok());
    CHECK(outcome->end == ExecOutcome::End::kExited);
    CHECK(outcome->exit_code == 0);
  }

  TEST_CASE("no descriptor of the worker reaches the command") {
    const auto bench = make_bench();
    if (!bench) return;
    const UniqueFd leaked(::dup(0));  // without close-on-exec, as a careless library would
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = "ls /proc/self/fd | wc -l";
    exec.stdout_file = bench->scratch() / "out";
    REQUIRE((*sandbox)->run(exec, {}).ok());
    // 0, 1, 2 and the one with which ls reads the folder.
    CHECK(read_file(exec.stdout_file, 100).value() == "4\n");
  }

  TEST_CASE("files made inside belong to the worker outside") {
    const auto bench = make_bench();
    if (!bench) return;
    const SandboxSpec spec = bench->spec();
    auto sandbox = bench->engine().open(spec);
    REQUIRE(sandbox.ok());
    REQUIRE(write_file(spec.workspace / "given", "old").ok());
    ExecSpec exec;
    exec.command = "id -u && echo new > given && echo made > made";
    exec.stdout_file = bench->scratch() / "out";
    REQUIRE((*sandbox)->run(exec, {}).value().exit_code == 0);
    CHECK(read_file(exec.stdout_file, 100).value() == "1000\n");
    CHECK(read_file(spec.workspace / "given", 100).value() == "new\n");
    CHECK(read_file(spec.workspace / "made", 100).value() == "made\n");
  }
}
