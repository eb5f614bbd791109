// From a dataset to folders, contracts and reports, as a user types it.
#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "tests/integration/cvdp/sim_scene.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::testing;

namespace {
std::string line(const std::string& id, const std::string& harness, const std::string& extra = "") {
  return R"({"id":")" + id +
         R"(","categories":["cid003","easy"],"prompt":"p","context":{"rtl/a.sv":"x\n")" + extra +
         R"(},"patch":{"rtl/a.sv":"@@ -1 +1 @@\n-x\n+y"},"harness":{"docker-compose.yml":")" +
         harness + R"(","src/.env":"A = /code/rtl/a.sv\n"}})" + "\n";
}
// Passes when the context's x has become y.
constexpr const char* kGrep =
    R"(services:\n  direct:\n    image: none\n    env_file: ./src/.env\n    command: sh -c 'grep -q y \"$$A\"'\n)";
constexpr const char* kHostile = R"(services:\n  direct:\n    image: x\n    privileged: true\n)";
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("cvdp prepare lays problems out and refuses hostile ones without stopping") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, line("cvdp_agentic_a_0001", kGrep) + "\n" +
                              line("cvdp_agentic_b_0002", kHostile) +
                              line("cvdp_agentic_c_0003", kGrep, R"(,"../../../escaped":"")") +
                              "{\"id\":\n" + line("cvdp_agentic_d_0004", kGrep)));
    const fs::path work = dir.path() / "work";
    const CommandOutcome done =
        run_proctor({"cvdp", "prepare", file, "--prefix", work, "--network-name", "n"});
    INFO(done.err);
    CHECK(done.exit_code == 2);
    CHECK(contains(done.out, "2 problems prepared"));
    CHECK(contains(done.err, "asks to be privileged"));
    CHECK(contains(done.err, "d.jsonl:4: error: context.../../../escaped: is no path inside"));
    const fs::path a = work / "cvdp_agentic_a/harness/1";
    CHECK(must(read_file(a / "rtl/a.sv", 100)) == "y\n");
    CHECK(must(read_file(a / "prompt.json", 100)) == R"({"prompt": "p"})");
    CHECK(fs::is_directory(a / "verif"));
    CHECK(fs::exists(work / "cvdp_agentic_d/harness/4/docker-compose.yml"));
    CHECK_FALSE(fs::exists(dir.path() / "escaped"));
    // A second run without the solution leaves nothing of the first.
    must(write_file(a / "rtl/left.sv", "left"));
    CHECK(run_proctor({"cvdp", "prepare", file, "--prefix", work, "--no-patch", "--id",
                       "cvdp_agentic_a_0001"})
              .exit_code == 2);
    CHECK(must(read_file(a / "rtl/a.sv", 100)) == "x\n");
    CHECK_FALSE(fs::exists(a / "rtl/left.sv"));
    CHECK(run_proctor({"cvdp", "prepare", file, "--filter", "nonsense"}).exit_code == 2);
    const auto selects_nothing = [&](std::vector<std::string> args, const char* why) {
      args.insert(args.begin(), "cvdp");
      const CommandOutcome nothing = run_proctor(args);
      CAPTURE(Json(args).dump());
      CHECK(nothing.exit_code == 2);
      CHECK_MESSAGE(contains(nothing.err, why), nothing.err);
    };
    const std::string camp = dir.path() / "camp";
    selects_nothing({"prepare", file, "--prefix", work, "--id", "cvdp_agentic_e_0009"},
                    "d.jsonl has no problem of this name that can be used");
    selects_nothing({"import", file, "--into", camp, "--filter", "category=cid099"},
                    "leave no problem of");
    selects_nothing({"run", file, "--golden", "-p", camp, "--id", "cvdp_agentic_e_0009"},
                    "--id cvdp_agentic_e_0009");
    // What `run` said is kept beside what it would have made; nothing else is there.
    if (fs::exists(camp))
      for (const auto& left : fs::directory_iterator(camp))
        CHECK(left.path().filename() == "run.log");
  }

  TEST_CASE("a folder that an agent made a symbolic link is not written through") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, line("cvdp_agentic_a_0001", kGrep)));
    const fs::path harness = dir.path() / "work/cvdp_agentic_a/harness";
    must(make_dirs(harness));
    must(make_dirs(dir.path() / "elsewhere/rtl"));
    fs::create_directory_symlink(dir.path() / "elsewhere", harness / "1");
    CHECK(run_proctor({"cvdp", "prepare", file, "--prefix", dir.path() / "work"}).exit_code == 0);
    CHECK(fs::is_empty(dir.path() / "elsewhere/rtl"));
    CHECK_FALSE(fs::is_symlink(harness / "1"));
  }

  TEST_CASE("cvdp import makes tasks on which noop fails and the reference succeeds") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file,
                    line("cvdp_agentic_a_0001", kGrep) + line("cvdp_agentic_b_0002", kHostile)));
    const fs::path campaign = dir.path() / "campaign";
    const CommandOutcome done =
        run_proctor({"cvdp", "import", file, "--into", campaign, "--no-containers"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(contains(done.out, "1 contracts in"));
    CHECK(
        contains(done.err, "cvdp_agentic_b_0002: left out: service direct: asks to be privileged"));
    const std::string contract =
        must(read_file(campaign / "contracts/cvdp_agentic_a_0001.yaml", 10'000));
    // The commit depends on the record alone.
    CHECK(run_proctor({"cvdp", "import", file, "--into", campaign, "--no-containers"}).exit_code ==
          0);
    CHECK(must(read_file(campaign / "contracts/cvdp_agentic_a_0001.yaml", 10'000)) == contract);
    const CommandOutcome run = run_proctor({"run", campaign}, std::chrono::minutes(2));
    INFO(run.out);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    const std::string runs = must(read_file(campaign / "reports/runs.csv", 100'000));
    INFO(runs);
    CHECK(contains(runs, "failure"));
    CHECK(contains(runs, "success"));
    CHECK(contains(must(read_file(campaign / "reports/report.txt", 100'000)), "category=cid003"));
    CHECK(run_proctor({"cvdp", "import", file, "--into", campaign, "--no-containers"}).exit_code ==
          2);
  }

  TEST_CASE("cvdp import that leaves out every record ends with 2") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "d.jsonl";
    must(write_file(file, line("cvdp_agentic_b_0002", kHostile)));
    const CommandOutcome done =
        run_proctor({"cvdp", "import", file, "--into", dir.path() / "camp", "--no-containers"});
    CHECK(done.exit_code == 2);
    CHECK(contains(done.out, "0 contracts in"));
    CHECK_MESSAGE(contains(done.err, "no problem was left"), done.err);
  }

  TEST_CASE("cvdp yaml goes there and back, and show prints what is asked for") {
    const TempDir dir = must(TempDir::create());
    ShellProblem p;
    p.compose = "services:\n  a:\n    image: x\n    command: 'true'\n";
    p.context = {{"docs/d.md", "one\n\ttwo\n"}};
    const fs::path file = dir.path() / "p.jsonl", yaml = dir.path() / "p.yaml";
    must(write_file(file, line_of(p)));
    CHECK(run_proctor({"cvdp", "yaml", file.string(), "-o", yaml.string()}).exit_code == 0);
    CHECK(contains(must(read_file(yaml, 1 << 20)), "docker-compose.yml: |\n    services:\n"));
    const CommandOutcome back = run_proctor({"cvdp", "yaml", yaml.string()});
    CHECK(back.exit_code == 0);
    CHECK(must(parse_json(back.out)) == must(parse_json(line_of(p))));
    const CommandOutcome shown =
        run_proctor({"cvdp", "show", file.string(), "-i", p.id, "--part", "context"});
    CHECK(shown.exit_code == 0);
    CHECK(contains(shown.out, "=== cvdp_agentic_a_0001: cid003, easy, agentic\n"));
    CHECK(contains(shown.out, "--- context docs/d.md\none\n\ttwo\n"));
    CHECK_FALSE(contains(shown.out, "services:"));
    CHECK(run_proctor({"cvdp", "show", file.string(), "-i", "cvdp_none_1"}).exit_code == 2);
    must(write_file(yaml, "a: [1\n---\nb: 2\n"));
    const CommandOutcome broken = run_proctor({"cvdp", "yaml", yaml.string()});
    CHECK(broken.exit_code == 2);
    CHECK(broken.out == "{\"b\": 2}\n");
  }

  TEST_CASE("a .env of the current folder is read, never over the environment, and never shown") {
    const TempDir dir = must(TempDir::create());
    ShellProblem p;
    p.compose = "services: {a: {image: __OSS_SIM_IMAGE__}, b: {image: __OSS_PNR_IMAGE__}}\n";
    must(write_file(dir.path() / "p.jsonl", line_of(p)));
    must(write_file(dir.path() / ".env",
                    "# settings\nOSS_SIM_IMAGE = 'from-file:1'\nOSS_PNR_IMAGE=other:1\n"
                    "OPENAI_USER_KEY=sk-never-shown\nLD_PRELOAD=/nonexistent.so\n"));
    CommandSpec spec;
    spec.argv = {proctor_program().string(), "cvdp", "prepare", "p.jsonl"};
    spec.cwd = dir.path();
    spec.env = {{"PATH", "/usr/bin:/bin"}, {"OSS_PNR_IMAGE", "from-outside:1"}};
    const CommandOutcome done = must(run_command(spec));
    CHECK(done.exit_code == 0);
    CHECK(contains(done.err, "from .env: OSS_SIM_IMAGE, OPENAI_USER_KEY\n"));
    CHECK_FALSE(contains(done.err + done.out, "sk-never-shown"));
    const std::string compose =
        must(read_file(dir.path() / "work/cvdp_agentic_a/harness/1/docker-compose.yml", 1 << 20));
    CHECK(contains(compose, "image: from-file:1"));
    CHECK(contains(compose, "image: from-outside:1"));
  }

  TEST_CASE("cvdp merge split stats and refine treat files as upstream's tools do") {
    const TempDir dir = must(TempDir::create());
    const fs::path a = dir.path() / "a.jsonl";
    const fs::path b = dir.path() / "b.jsonl";
    const fs::path all = dir.path() / "all.jsonl";
    must(write_file(a, line("cvdp_agentic_a_0001", "first")));
    must(write_file(b, line("cvdp_agentic_a_0001", "second") + line("cvdp_agentic_b_0002", "x")));
    CHECK(run_proctor({"cvdp", "merge", a, b, "-o", all}).exit_code == 0);
    const std::string merged = must(read_file(all, 10'000));
    CHECK(contains(merged, "first"));
    CHECK_FALSE(contains(merged, "second"));
    CHECK(contains(merged, "cvdp_agentic_b_0002"));
    CHECK(run_proctor({"cvdp", "split", all, "--by", "difficulty", "-o", dir.path() / "p"})
              .exit_code == 0);
    CHECK(must(read_file(dir.path() / "p/all.easy.jsonl", 10'000)) == merged);
    const fs::path one = dir.path() / "one.jsonl";
    CHECK(run_proctor({"cvdp", "split", all, "--id", "cvdp_agentic_b_0002", "-o", one}).exit_code ==
          0);
    CHECK_FALSE(contains(must(read_file(one, 10'000)), "cvdp_agentic_a"));
    CHECK(contains(run_proctor({"cvdp", "stats", all, "--json"}).out, "\"problems\": 2"));
    must(write_file(
        a, R"({"id":"cvdp_copilot_a_1","categories":["cid003","easy"],"input":{"prompt":"old",)"
           R"("context":{}},"output":{"context":{}},"harness":{"docker-compose.yml":""}})"
           "\n"));
    must(write_file(b, R"({"id":"cvdp_copilot_a_1","prompt":"new","ambiguity_score":2})"
                       "\n"));
    const CommandOutcome refined = run_proctor({"cvdp", "refine", a, b});
    CHECK(contains(refined.out, R"("input": {"prompt": "new", "context": {}})"));
    CHECK(contains(refined.out, R"("ambiguity_score": 2, "original_prompt": "old")"));
    must(write_file(b, "{}\n"));
    CHECK(run_proctor({"cvdp", "refine", a, b}).exit_code == 2);
  }

  TEST_CASE("cvdp report writes upstream's reports and the unbiased estimates") {
    const TempDir dir = must(TempDir::create());
    const auto raw = [](const char* result) {
      return R"({"p_1":{"category":"cid003","difficulty":"easy","tests":[{"result":)" +
             std::string(result) + R"(,"log":null}],"errors":0}})";
    };
    const fs::path one = dir.path() / "s1/raw_result.json";
    const fs::path two = dir.path() / "s2/raw_result.json";
    must(make_dirs(one.parent_path()));
    must(make_dirs(two.parent_path()));
    must(write_file(one, raw("0")));
    must(write_file(two, raw("137")));
    CHECK(run_proctor({"cvdp", "report", one, "--dataset", "d.jsonl", "-m", "m"}).exit_code == 0);
    CHECK(contains(must(read_file(dir.path() / "s1/report.txt", 100'000)), "Model/Agent: m\n"));
    CHECK(contains(must(read_file(dir.path() / "s1/report.json", 100'000)),
                   "\"Passed Problems\": 1"));
    const fs::path out = dir.path() / "all";
    CHECK(run_proctor({"cvdp", "report", one, two, "-k", "2", "-o", out}).exit_code == 0);
    CHECK(contains(must(read_file(out / "composite_report.txt", 100'000)),
                   "Overall Pass@2, n=2 probability: 75.00%"));
    CHECK(contains(must(read_file(out / "pass_at_k.txt", 100'000)), "pass@2 (unbiased)"));
    CHECK(contains(must(read_file(out / "pass_at_k.json", 100'000)), "\"estimate\": 1.0"));
    CHECK(run_proctor({"cvdp", "report", out / "composite_report.json", "-k", "1"}).exit_code == 0);
    must(write_file(one, "[]"));
    CHECK(run_proctor({"cvdp", "report", one}).exit_code == 2);
    must(write_file(one, "{"));
    CHECK(run_proctor({"cvdp", "report", one}).exit_code == 2);
  }
}
