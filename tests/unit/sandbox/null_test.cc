#include <doctest/doctest.h>

#include "worker/sandbox/sandbox.h"

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("the null sandbox succeeds at once and leaves empty output files") {
    const TempDir dir = TempDir::create().value();
    auto engine = open_sandbox_engine(SandboxKind::kNull, {"w1", ""});
    REQUIRE(engine.ok());
    CHECK((*engine)->kind() == SandboxKind::kNull);
    CHECK((*engine)->clean_up().ok());
    auto sandbox = (*engine)->open({});
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = "exit 3";
    exec.stdout_file = dir.path() / "out";
    const auto outcome = (*sandbox)->run(exec, {});
    REQUIRE(outcome.ok());
    CHECK(outcome->end == ExecOutcome::End::kExited);
    CHECK(outcome->exit_code == 0);
    CHECK(read_file(dir.path() / "out", 10).value().empty());
  }

  TEST_CASE("every kind has a name") {
    CHECK(to_string(SandboxKind::kBubblewrap) == "bubblewrap");
    CHECK(to_string(SandboxKind::kDocker) == "docker");
    CHECK(to_string(SandboxKind::kOci) == "oci");
    CHECK(to_string(SandboxKind::kNull) == "null");
  }

  TEST_CASE("exit codes of the shell's kind become signals only for signals that kill") {
    struct Row {
      int code;
      int signal;  // 0: an exit
    };
    for (const Row& row :
         {Row{0, 0}, Row{1, 0}, Row{127, 0}, Row{128, 0}, Row{129, 0}, Row{130, 2}, Row{134, 6},
          Row{137, 9}, Row{139, 11}, Row{143, 15}, Row{145, 0}, Row{152, 24}, Row{255, 0}}) {
      CAPTURE(row.code);
      ExecOutcome out;
      set_exit(out, row.code);
      CHECK(out.signal == row.signal);
      CHECK(out.exit_code == row.code);
      CHECK((out.end == ExecOutcome::End::kSignalled) == (row.signal != 0));
    }
  }
}
