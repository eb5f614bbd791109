// Golden and no-patch runs in the simulator image that ops/images/cvdp-sim builds: a problem of our
// own, and the runnable examples of the benchmark where they lie beside this clone.
#include "tests/integration/cvdp/simulator.h"
#include "tests/support/leftovers.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

// Every problem passes with its reference and fails without, in the words of the report that a
// user of the benchmark knows.
void judge(Runner runner, const std::string& lines, std::size_t problems,
           const std::vector<std::string>& more = {}) {
  const TempDir dir = must(TempDir::create("proctor-cvdp-sim"));
  const ImagesOf place(runner, test_store());
  const fs::path file = dir.path() / "problems.jsonl";
  must(write_file(file, lines));
  const std::string all = std::to_string(problems);
  const auto run = [&](const char* flag, const char* prefix) {
    std::vector<std::string> args = {
        "cvdp",        "run", file.string(), flag, "-p", (dir.path() / prefix).string(),
        "--image-sim", kSim,  "--workers",   "2"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandOutcome done = run_proctor(std::move(args), std::chrono::minutes(5));
    REQUIRE_MESSAGE(done.exit_code == 0, done.err);
    INFO(done.out);
    const fs::path folder = dir.path() / prefix;
    CHECK(leftovers_of(dir.path(), folder / "campaign/.proctor/workers") == "");
    return std::pair(done.out, must(read_file(folder / "report.txt", 1 << 20)));
  };
  const auto [golden, golden_report] = run("--golden", "golden");
  CHECK_MESSAGE(contains(golden, "golden: " + all + " of " + all + " problems passed"),
                golden_report);
  CHECK(contains(golden_report, "100.00%"));
  const auto [nothing, report] = run("--no-patch", "nothing");
  CHECK_MESSAGE(contains(nothing, "no-patch: 0 of " + all + " problems passed"), report);
  CHECK(contains(report, "Patches Disabled: Yes"));
}

void judge_examples(Runner runner, const char* test) {
  if (!cvdp::testing::have_shared_data(test) || !have_image(runner, test)) return;
  judge(runner, example_problems(), 2);
  if (runner == Runner::kDocker) return;  // the shape is no matter of who runs it
  judge(runner, example_problems(), 2, {"--force-agentic"});
  judge(runner, example_problems(), 2, {"--force-copilot"});
}

}  // namespace

TEST_SUITE("cvdp simulator") {
  TEST_CASE("a cocotb problem of our own passes golden and fails without a patch, by OCI" *
            doctest::test_suite("full")) {
    if (have_image(Runner::kOci, "a cocotb problem")) judge(Runner::kOci, toggle_problem(), 1);
  }

  TEST_CASE("a cocotb problem of our own passes golden and fails without a patch, by Docker" *
            doctest::test_suite("full")) {
    if (have_image(Runner::kDocker, "a cocotb problem"))
      judge(Runner::kDocker, toggle_problem(), 1);
  }

  TEST_CASE("the benchmark's runnable examples pass golden and fail without a patch, by OCI" *
            doctest::test_suite("full")) {
    judge_examples(Runner::kOci, "the benchmark's examples by OCI");
  }

  TEST_CASE("the benchmark's runnable examples pass golden and fail without a patch, by Docker" *
            doctest::test_suite("full")) {
    judge_examples(Runner::kDocker, "the benchmark's examples by Docker");
  }
}
