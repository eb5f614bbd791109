// One suite for every engine: what a command shuts does not stand in the way of the next.
#include <doctest/doctest.h>

#include "tests/integration/sandbox/run_command.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("sandbox") {
  TEST_CASE("what a command closes of its own places is open again for the next") {
    const auto bench = make_bench();
    if (!bench) return;
    const fs::path home = bench->scratch() / "home";
    REQUIRE(make_dirs(home).ok());
    fs::permissions(home, fs::perms(0777));
    SandboxSpec spec = bench->spec();
    if (spec.workspace.empty()) return;  // a volume, whose folder its user opens
    spec.mounts.push_back({home, "/proctor/home", true});
    for (const char* mode : {"000", "600", "100"}) {
      CAPTURE(std::string(mode));
      const Said closed = run(
          *bench, spec,
          exec_of(*bench, "chmod " + std::string(mode) + " /workspace /proctor/home; echo done"));
      CHECK(closed.out == "done\n");
      const Said next =
          run(*bench, spec, exec_of(*bench, "pwd; cd /proctor/home && echo x > f && cat f"));
      CHECK_MESSAGE(next.out == "/workspace\nx\n", next.err);
    }
  }
}
