#include "tests/integration/cvdp/simulator.h"

#include <unistd.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/unit/cvdp/shared_data.h"

namespace proctor::testing {
namespace {

constexpr std::chrono::minutes kBuildTime{10};

fs::path source(const std::string& name) {
  return source_dir() / name;
}
std::string data(const std::string& name) {
  return must(read_file(source("tests/integration/cvdp/data") / name, 1 << 20));
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

std::string shared(const char* name) {
  return must(read_file(cvdp::testing::shared_data() / "datasets" / name, 1 << 20));
}

}  // namespace

fs::path test_store() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path root = cache != nullptr  ? fs::path(cache)
                        : home != nullptr ? fs::path(home) / ".cache"
                                          : fs::path("/tmp");
  return root / "proctor/test-images";
}

bool have_image(ImagesOf::Runner runner, const char* test) {
  if (runner == ImagesOf::Runner::kOci ? !have_oci(test) : !have_docker(test)) return false;
  if (::geteuid() != 0 || !fs::exists("/usr/sbin/debootstrap")) {
    MESSAGE("not run: building the image needs root and debootstrap (" << test << ")");
    return false;
  }
  CommandSpec build;
  build.argv = {source("ops/images/cvdp-sim/build").string(), "--archive"};
  build.timeout = kBuildTime;
  const CommandOutcome built = must(run_command(build));
  REQUIRE_MESSAGE(built.exit_code == 0, built.err);
  if (runner == ImagesOf::Runner::kDocker) {
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

std::string example_problems() {
  Json arbiter =
      must(parse_json(shared("cvdp_v1.1.0_example_agentic_code_generation_no_commercial.jsonl")));
  arbiter["patch"]["rtl/fixed_priority_arbiter.sv"] = new_file(data("fixed_priority_arbiter.sv"));
  return shared(
             "cvdp_v1.1.0_example_nonagentic_code_generation_no_commercial_with_solutions.jsonl") +
         arbiter.dump() + "\n";
}

}  // namespace proctor::testing
