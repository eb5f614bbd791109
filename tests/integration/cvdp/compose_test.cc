// The same harnesses by the Engine API, by the OCI runtime and by docker compose itself: the same
// results, the same words.  What compose alone can run goes to it.
#include <cstdlib>

#include "tests/integration/cvdp/simulator.h"
#include "tests/support/leftovers.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

bool have_compose(const char* test) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"docker", "compose", "version"}, {"docker-compose", "version"}}) {
    CommandSpec spec;
    spec.argv = words;
    const auto said = run_command(spec);
    if (said.ok() && said->success()) return true;
  }
  MESSAGE("not run: there is neither docker compose nor docker-compose (" << test << ")");
  return false;
}

bool can_compare(const char* test) {
  return have_compose(test) && have_docker(test) && have_image(Runner::kDocker, test);
}

std::string text_of(const fs::path& file) {
  const Result<std::string> text = read_file(file, 1 << 20);
  return text.ok() ? *text : "";
}

// Everything of raw_result.json but times and places, and what the harnesses said.
Json verdicts(const fs::path& prefix) {
  Json raw = must(parse_json(text_of(prefix / "raw_result.json")));
  for (Json& item : raw)
    for (Json& test : item["tests"]) {
      test.erase("execution");
      if (test["log"].is_string()) {
        const fs::path log = test["log"].get<std::string>();
        test["log"] = fs::relative(log, fs::absolute(prefix)).string();
      }
    }
  return raw;
}

class Comparison {
 public:
  explicit Comparison(const std::string& lines) : dir_(must(TempDir::create("proctor-compose"))) {
    must(write_file(file(), lines));
  }

  // Runs it by one engine; what it printed.
  CommandOutcome run(const std::string& engine, const std::string& flag,
                     const std::vector<std::string>& more = {}) const {
    const ImagesOf place(engine == "oci" ? Runner::kOci : Runner::kDocker, test_store());
    std::vector<std::string> args = {
        "cvdp",        "run", file().string(), flag,  "-p", prefix(engine, flag).string(),
        "--image-sim", kSim,  "--engine",      engine};
    args.insert(args.end(), more.begin(), more.end());
    const CommandOutcome done = run_proctor(std::move(args), std::chrono::minutes(5));
    CAPTURE(done.err);
    CHECK(done.exit_code == 0);
    CHECK(leftovers_of(dir_.path(), prefix(engine, flag) / "campaign/.proctor/workers") == "");
    return done;
  }

  fs::path prefix(const std::string& engine, const std::string& flag) const {
    return dir_.path() / (engine + flag);
  }

  // By all that are here, golden; and without a patch, which simulator_test.cc judges by Docker and
  // OCI, by compose and one other.  The verdicts of the golden runs.
  Json all_equal(const std::vector<std::string>& more = {}) const {
    const Json golden = equal_by({"compose", "api", "oci"}, "--golden", more);
    equal_by({"compose", "api"}, "--no-patch", more);
    return golden;
  }
  Json equal_by(const std::vector<std::string>& engines, const char* flag,
                const std::vector<std::string>& more = {}) const {
    Json first;
    for (const std::string& engine : engines) {
      if (engine == "oci" && !have_image(Runner::kOci, "comparison with OCI")) continue;
      CAPTURE(engine);
      CAPTURE(flag);
      run(engine, flag, more);
      const Json found = verdicts(prefix(engine, flag));
      if (first.is_null()) first = found;
      CHECK(found.dump(1) == first.dump(1));
    }
    CHECK(!first.empty());
    return first;
  }

 private:
  fs::path file() const { return dir_.path() / "problems.jsonl"; }
  TempDir dir_;
};

// Results of one problem's services.
std::vector<int> results_of(const Json& verdicts, const char* id) {
  std::vector<int> out;
  for (const Json& test : verdicts.at(id).at("tests")) out.push_back(test.at("result").get<int>());
  return out;
}

std::string sim_service(const std::string& name, const std::string& command,
                        const std::string& more = "") {
  return "  " + name + ":\n    image: __OSS_SIM_IMAGE__\n    command: " + compose_words(command) +
         "\n" + more;
}

// One that passes by what it depends on: a server that is started by compose's own lines, which is
// healthy when its port answers, and a folder that both see.
ShellProblem served() {
  ShellProblem p;
  p.id = "cvdp_agentic_served_0001";
  p.compose =
      "services:\n" +
      sim_service("db",
                  "pwd > /shared/where; echo \"$WHO\" > /shared/page; cd /shared; sleep 1; "
                  "exec python3 -m http.server 8080",
                  "    working_dir: /tmp\n    environment: {WHO: the database}\n"
                  "    volumes:\n      - ./rundir:/shared\n"
                  "    healthcheck:\n      test: [CMD, python3, -c, \"import urllib.request as u; "
                  "u.urlopen('http://localhost:8080/page')\"]\n"
                  "      interval: 1s\n      retries: 30\n") +
      sim_service("user",
                  "grep -q y /code/rtl/a.sv && cat /code/rundir/where && python3 -c \"import "
                  "urllib.request as u; "
                  "print(u.urlopen('http://db:8080/page').read().decode())\"",
                  "    depends_on:\n      db:\n        condition: service_healthy\n");
  return p;
}

// Services that are only started, one that never ends, results that are not 0.
ShellProblem mixed() {
  ShellProblem p;
  p.id = "cvdp_agentic_mixed_0002";
  p.compose =
      "services:\n" +
      sim_service("begins", "touch /code/rundir/begun; sleep 1000",
                  "    volumes: [\"./rundir:/code/rundir\"]\n") +
      sim_service("fails", "echo no; exit 3") +
      sim_service("waits", "until [ -e /code/rundir/begun ]; do sleep 0.1; done; echo begun",
                  "    depends_on: [begins]\n") +
      "  wrong:\n    image: __OSS_SIM_IMAGE__\n    entrypoint: sh -c 'exit 255'\n";
  return p;
}

}  // namespace

TEST_SUITE("cvdp compose") {
  TEST_CASE("problems of our own end the same by the Engine API, by OCI and by docker compose" *
            doctest::test_suite("full")) {
    if (!can_compare("problems of our own by every engine")) return;
    // The one that never ends is killed alike.
    const Comparison compare(toggle_problem() + line_of(served()) + line_of(mixed()));
    const Json golden = compare.all_equal({"--timeout", "10"});
    CHECK(results_of(golden, "cvdp_agentic_toggle_0001") == std::vector<int>{0});
    CHECK(results_of(golden, "cvdp_agentic_mixed_0002") == std::vector<int>{1, 3, 0, 255});
    for (const char* engine : {"compose", "api"}) {
      const fs::path reports = compare.prefix(engine, "--golden") / "cvdp_agentic_served/reports";
      CHECK(text_of(reports / "1_user.txt") == "/tmp\nthe database\n\n");
    }
  }

  TEST_CASE("the benchmark's runnable examples end the same by every engine" *
            doctest::test_suite("full")) {
    constexpr const char* kTest = "the benchmark's examples by every engine";
    if (!cvdp::testing::have_shared_data(kTest) || !can_compare(kTest)) return;
    const Json golden =
        Comparison(example_problems()).equal_by({"compose", "api", "oci"}, "--golden");
    for (const auto& [id, item] : golden.items()) CHECK(item.at("errors") == 0);
  }

  TEST_CASE("what compose alone can run goes to it, and is named where it cannot" *
            doctest::test_suite("full")) {
    if (!can_compare("what compose alone can run")) return;
    ShellProblem beyond;
    beyond.id = "cvdp_agentic_beyond_0003";
    beyond.compose = "services:\n" + sim_service("direct", "grep -q y /code/rtl/a.sv && nproc",
                                                 "    shm_size: 128m\n");
    const Comparison compare(toggle_problem() + line_of(beyond));
    const CommandOutcome done = compare.run("auto", "--golden");
    CHECK_MESSAGE(contains(done.out, "golden: 2 of 2 problems passed"), done.out);
    CHECK(results_of(verdicts(compare.prefix("auto", "--golden")), "cvdp_agentic_beyond_0003") ==
          std::vector<int>{0});
    const CommandOutcome named = compare.run("api", "--golden");
    CHECK(contains(named.out, "golden: 1 of 2 problems passed"));
    CHECK(contains(named.out, "\"shm_size\" is not in the subset"));
  }

  TEST_CASE("docker compose runs no agents and says so") {
    const TempDir dir = must(TempDir::create("proctor-compose"));
    must(write_file(dir.path() / "p.jsonl", toggle_problem()));
    const CommandOutcome done =
        run_proctor({"cvdp", "run", (dir.path() / "p.jsonl").string(), "-p",
                     (dir.path() / "w").string(), "--agent", "a:1", "--engine", "compose"});
    CHECK(done.exit_code == 2);
    CHECK(contains(done.err, "no agents"));
  }
}
