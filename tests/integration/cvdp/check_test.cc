#include "common/base/files.h"
#include "tests/integration/cvdp/run_proctor.h"
#include "tests/support/paths.h"

using namespace proctor;

namespace {
constexpr const char* kGood =
    R"({"id":"cvdp_agentic_a_1","categories":["cid003","easy"],"prompt":"p","context":{},"patch":{"x":""},"harness":{"docker-compose.yml":"x"}})"
    "\n";
}

TEST_SUITE("cvdp") {
  TEST_CASE("cvdp check counts problems and ends 2 on any error") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, kGood));
    const CommandOutcome good = run_proctor({"cvdp", "check", file});
    CHECK(good.exit_code == 0);
    CHECK(contains(good.out,
                   "1 problems: 0 copilot, 1 agentic (0 heavy); 0 comprehension, 1 redacted"));
    must(write_file(file, std::string(kGood) + "\n{\"id\":1}\n"));
    const CommandOutcome bad = run_proctor({"cvdp", "check", file});
    CHECK(bad.exit_code == 2);
    CHECK(contains(bad.err, "d.jsonl:2: error: a blank line"));
    CHECK(contains(bad.err, "d.jsonl:3: error: id: is a number, not text"));
    CHECK(run_proctor({"cvdp", "check", dir.path()}).exit_code == 2);
    CHECK(run_proctor({"cvdp", "check", dir.path() / "none"}).exit_code == 2);
    CHECK(run_proctor({"cvdp"}).exit_code == 2);
  }

  TEST_CASE("the dataset that the README checks is sound") {
    const fs::path file = proctor::testing::source_dir() / "examples/cvdp/toggle.jsonl";
    const CommandOutcome told = run_proctor({"cvdp", "check", file});
    CHECK(told.exit_code == 0);
    CHECK(contains(told.out, "0 errors, 0 warnings"));
  }

  TEST_CASE("cvdp is a program beside proctor, and without it proctor says what to build") {
    const fs::path program = proctor::testing::proctor_program();
    const auto run = [](std::vector<std::string> argv) {
      CommandSpec spec;
      spec.argv = std::move(argv);
      return must(run_command(spec));
    };
    const std::vector<std::string> line = {"__complete", "proctor cvdp merg"};
    const CommandOutcome direct = run({program.string() + "-cvdp", "check", "--help"});
    CHECK(direct.out == run({program, "cvdp", "check", "--help"}).out);
    CHECK(contains(direct.out, "proctor cvdp check [OPTIONS] FILE"));
    CHECK(run({program, line[0], line[1]}).out == "merge\n");
    const TempDir dir = must(TempDir::create());
    const fs::path alone = dir.path() / "proctor";
    fs::copy_file(program, alone);
    const CommandOutcome told = run({alone, "cvdp", "check", "x"});
    CHECK(told.exit_code == 4);
    CHECK(contains(told.err, (dir.path() / "proctor-cvdp").string() + ": No such file"));
    CHECK(contains(told.err, "--target proctor-cvdp"));
    CHECK(contains(run({alone, "--help"}).out, "cvdp"));
  }
}
