// Golden and no-patch runs in the simulator image that ops/images/cvdp-sim builds: a problem of our
// own, and the runnable examples of the benchmark where they lie beside this clone.
#include <unistd.h>

#include <cstdlib>

#include "tests/integration/cvdp/sim_scene.h"
#include "tests/support/leftovers.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

constexpr const char* kSim = "proctor-cvdp-sim";
constexpr std::chrono::minutes kBuildTime{10};

fs::path source(const std::string& name) {
  return fs::path(PROCTOR_SOURCE_DIR) / name;
}
std::string data(const std::string& name) {
  return must(read_file(source("tests/integration/cvdp/data") / name, 1 << 20));
}

// Unpacking takes seconds: one store for all tests of this machine.
fs::path test_store() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root = cache != nullptr  ? fs::path(cache)
                        : home != nullptr ? fs::path(home) / ".cache"
                                          : fs::path("/tmp");
  return root / "proctor/test-images";
}

// The image where `runner` finds it, built when it is nowhere.
bool have_image(Runner runner, const char* test) {
  if (runner == Runner::kOci ? !have_oci(test) : !have_docker(test)) return false;
  if (::geteuid() != 0 || !fs::exists("/usr/sbin/debootstrap")) {
    MESSAGE("not run: " << test << ": building the image needs root and debootstrap");
    return false;
  }
  CommandSpec build;
  build.argv = {source("ops/images/cvdp-sim/build").string(), "--archive"};
  build.timeout = kBuildTime;
  const CommandOutcome built = must(run_command(build));
  REQUIRE_MESSAGE(built.exit_code == 0, built.err);
  if (runner == Runner::kDocker) {
    const std::string program = build.argv[0];
    const CommandOutcome loaded =
        run_proctor({"images", "build", kSim, "--by", program}, kBuildTime);
    REQUIRE_MESSAGE(loaded.exit_code == 0, loaded.err);
    return true;
  }
  const ImagesOf place(runner, test_store());
  if (contains(run_proctor({"images", "list"}).out, std::string(kSim) + ":latest")) return true;
  std::string archive = built.out;
  while (archive.ends_with('\n')) archive.pop_back();
  const CommandOutcome imported = run_proctor({"images", "import", archive}, kBuildTime);
  REQUIRE_MESSAGE(imported.exit_code == 0, imported.err);
  return true;
}

std::string new_file(const std::string& text) {
  std::string lines;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += "+" + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return "@@ -0,0 +1," + std::to_string(count) + " @@\n" + lines;
}

std::string toggle_problem() {
  const std::string compose =
      "services:\n  direct:\n    image: __OSS_SIM_IMAGE__\n    env_file: ./src/.env\n"
      "    volumes:\n      - ./src/:/src/:ro\n"
      "    command: pytest -o cache_dir=/rundir/harness/.cache /src/test_runner.py\n";
  return Json{{"id", "cvdp_agentic_toggle_0001"},
              {"categories", {"cid003", "easy"}},
              {"prompt", "Write a toggle."},
              {"context", Json::object()},
              {"patch", {{"rtl/toggle.sv", new_file(data("toggle.sv"))}}},
              {"harness",
               {{"docker-compose.yml", compose},
                {"src/.env",
                 "SIM = icarus\nPYTHONPATH = /src\nVERILOG_SOURCES = /code/rtl/toggle.sv\n"},
                {"src/test_toggle.py", data("test_toggle.py")},
                {"src/test_runner.py", data("test_runner.py")}}}}
             .dump() +
         "\n";
}

std::string shared(const char* name) {
  return must(read_file(cvdp::testing::shared_data() / "datasets" / name, 1 << 20));
}

// The example with solutions, and the one whose solution is ours.
std::string example_problems() {
  Json arbiter =
      must(parse_json(shared("cvdp_v1.1.0_example_agentic_code_generation_no_commercial.jsonl")));
  arbiter["patch"]["rtl/fixed_priority_arbiter.sv"] = new_file(data("fixed_priority_arbiter.sv"));
  return shared(
             "cvdp_v1.1.0_example_nonagentic_code_generation_no_commercial_with_solutions.jsonl") +
         arbiter.dump() + "\n";
}

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
  TEST_CASE("a cocotb problem of our own passes golden and fails without a patch, by OCI") {
    if (have_image(Runner::kOci, "a cocotb problem")) judge(Runner::kOci, toggle_problem(), 1);
  }

  TEST_CASE("a cocotb problem of our own passes golden and fails without a patch, by Docker") {
    if (have_image(Runner::kDocker, "a cocotb problem"))
      judge(Runner::kDocker, toggle_problem(), 1);
  }

  TEST_CASE("the benchmark's runnable examples pass golden and fail without a patch, by OCI") {
    judge_examples(Runner::kOci, "the benchmark's examples by OCI");
  }

  TEST_CASE("the benchmark's runnable examples pass golden and fail without a patch, by Docker") {
    judge_examples(Runner::kDocker, "the benchmark's examples by Docker");
  }
}
