// Heavy records: repositories of our own, real git, containers of this machine's shell.
#include <cstdlib>

#include "tests/integration/cvdp/run_cases.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

// A repository whose folder external is the payload, and a second commit, so that the first is no
// tip; the first commit's id.
std::string make_repository(const fs::path& dir) {
  must(make_dirs(dir / "external/rtl"));
  must(make_dirs(dir / "external/src"));
  const auto git = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@t"});
    return output_of(std::move(args), dir);
  };
  git({"init", "-q"});
  must(write_file(dir / "external/rtl/a.sv", "x\n"));
  must(write_file(dir / "external/src/own.c", "theirs\n"));
  must(write_file(dir / "outside", "not shown\n"));
  git({"add", "-A"});
  git({"commit", "-qm", "one"});
  std::string commit = git({"rev-parse", "HEAD"});
  while (commit.ends_with('\n')) commit.pop_back();
  must(write_file(dir / "external/rtl/a.sv", "later\n"));
  git({"commit", "-qam", "two"});
  return commit;
}

std::string heavy_line(const std::string& id, const std::string& repo, const std::string& commit,
                       const std::string& command) {
  return Json{
             {"id", id},
             {"categories", {"cid004", "hard"}},
             {"prompt", "Make it y."},
             {"context", {{"repo", repo}, {"commit", commit}}},
             {"patch", {{"rtl/a.sv", "@@ -1 +1 @@\n-x\n+y\n"}}},
             {"harness",
              {{"docker-compose.yml", service(kImage, command, "    volumes: [./src/:/src/:ro]\n")},
               {"src/s", "the test\n"}}}}
             .dump() +
         "\n";
}

constexpr const char* kLook =
    "pwd; cat /src/s /code/src/own.c; ls /code; test ! -e /code/outside && test -w /rundir && "
    "grep -q y /code/rtl/a.sv";

struct HeavyScene : RunScene {
  HeavyScene() : RunScene(Runner::kOci), repos(dir.path() / "heavy") {
    commit = make_repository(repos / "cvdp_cpu");
    output_of({"git", "bundle", "create", "-q", (repos / "cvdp_packed.bundle").string(), "--all"},
              repos / "cvdp_cpu");
    ::setenv("CVDP_HEAVY_REPOS_PATH", repos.c_str(), 1);
  }
  HeavyScene(const HeavyScene&) = delete;
  HeavyScene& operator=(const HeavyScene&) = delete;
  ~HeavyScene() { ::unsetenv("CVDP_HEAVY_REPOS_PATH"); }
  fs::path repos;
  std::string commit;
};

}  // namespace

TEST_SUITE("cvdp heavy") {
  TEST_CASE("a commit of a repository is a context, from a folder and from a bundle") {
    if (!have_oci("heavy records")) return;
    const HeavyScene scene;
    Json lying =
        must(parse_json(heavy_line("cvdp_agentic_heavy_f_0006", "cvdp_cpu", scene.commit, kLook)));
    lying["patch"]["rtl/a.sv"] = "@@ -1 +1 @@\n-not there\n+y\n";
    const std::string lines =
        heavy_line("cvdp_agentic_heavy_a_0001", "cvdp_cpu", scene.commit, kLook) +
        heavy_line("cvdp_agentic_heavy_b_0002", "cvdp_packed", scene.commit, kLook) +
        heavy_line("cvdp_agentic_heavy_c_0003", "cvdp_none", scene.commit, kLook) +
        heavy_line("cvdp_agentic_heavy_d_0004", "cvdp_cpu", std::string(40, '0'), kLook) +
        heavy_line("cvdp_agentic_heavy_e_0005", "ext::sh -c id", scene.commit, kLook) +
        lying.dump() + "\n";
    const CommandOutcome golden = scene.run(lines, {"--golden"});
    INFO(golden.err);
    CHECK(golden.exit_code == 0);
    const Json raw = scene.raw();
    CHECK(raw["cvdp_agentic_heavy_a_0001"]["errors"] == 0);
    CHECK(raw["cvdp_agentic_heavy_b_0002"]["errors"] == 0);
    CHECK(scene.text("cvdp_agentic_heavy_a/reports/1.txt") ==
          "/rundir\nthe test\ntheirs\nprompt.json\nrtl\nsrc\n");
    for (const char* id : {"cvdp_agentic_heavy_c_0003", "cvdp_agentic_heavy_d_0004",
                           "cvdp_agentic_heavy_e_0005", "cvdp_agentic_heavy_f_0006"})
      CHECK(contains(raw[id]["tests"][0]["error_msg"].get<std::string>(), "th_prepare: "));
    const CommandOutcome none = run_proctor(
        {"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "--no-patch", "-p",
         (scene.dir.path() / "none").string(), "--id", "cvdp_agentic_heavy_a_0001", "--repo-url",
         (scene.repos / "cvdp_cpu").string(), "--commit-hash", scene.commit},
        std::chrono::minutes(2));
    CHECK(none.exit_code == 0);
    CHECK(must(parse_json(must(read_file(scene.dir.path() / "none/raw_result.json",
                                         1 << 20))))["cvdp_agentic_heavy_a_0001"]["errors"] == 1);
  }

  TEST_CASE("an agent works on the whole payload, and what it leaves there is its change") {
    if (!have_oci("a heavy agent")) return;
    const HeavyScene scene;
    const TempDir dir = must(TempDir::create("proctor-cvdp-agent"));
    import_agent(Runner::kOci, dir.path(),
                 "PATH=/usr/bin\nls /code; test -e /code/golden_ref_solution.patch && echo golden\n"
                 "echo y > /code/rtl/a.sv; echo new > /code/added; rm -r /code/src\n"
                 "mkdir /code/.git; echo '[core]' > /code/.git/config\n");
    const CommandOutcome done = scene.run(
        heavy_line("cvdp_agentic_heavy_a_0001", "cvdp_cpu", scene.commit,
                   "grep -q y /code/rtl/a.sv && cat /code/added && test ! -e /code/src && "
                   "test ! -e /code/.git"),
        {"-g", "proctor-cvdp-agent", "--force-agentic-include-golden"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(scene.raw()["cvdp_agentic_heavy_a_0001"]["errors"] == 0);
    CHECK(scene.text("cvdp_agentic_heavy_a/reports/1_agent.txt") ==
          "golden_ref_solution.patch\nprompt.json\nrtl\nsrc\ngolden\n");
    const std::string patch = scene.text("cvdp_agentic_heavy_a/harness/1/agent_changes.patch");
    CHECK(contains(patch, "b/added"));
    CHECK(contains(patch, "deleted file"));
    CHECK_FALSE(contains(patch, ".git/"));
    // Others show five folders: one image cannot do both at once.
    ShellProblem plain;
    plain.id = "cvdp_agentic_plain_0002";
    plain.compose = service(kImage, kIsY);
    const CommandOutcome both = run_proctor(
        {"cvdp", "run",
         scene
             .dataset(heavy_line("cvdp_agentic_heavy_a_0001", "cvdp_cpu", scene.commit, "true") +
                      line_of(plain))
             .string(),
         "-g", "proctor-cvdp-agent", "-p", (scene.dir.path() / "both").string()});
    CHECK(both.exit_code == 2);
    CHECK(contains(both.err, "not both at once"));
  }

  TEST_CASE("an agent is shown the solution and the harness when it is asked for") {
    if (!have_oci("include-golden and include-harness")) return;
    const RunScene scene(Runner::kOci);
    const TempDir dir = must(TempDir::create("proctor-cvdp-agent"));
    import_agent(Runner::kOci, dir.path(),
                 "PATH=/usr/bin\nls /code; cat /code/golden_ref_solution.patch /code/src/s\n"
                 "grep -c image: /code/docker-compose.yml\n"
                 "echo y > /code/rtl/a.sv; echo 'exit 0' > /code/src/s\n");
    ShellProblem p;
    p.compose = service(kImage, std::string(kIsY) + " && grep -q secret /code/src/s");
    p.more = {{"src/s", "secret\n"}};
    const CommandOutcome done =
        scene.run(line_of(p), {"-g", "proctor-cvdp-agent", "--force-agentic-include-golden",
                               "--force-agentic-include-harness"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(scene.raw()["cvdp_agentic_a_0001"]["errors"] == 0);
    const std::string said = scene.text("cvdp_agentic_a/reports/1_agent.txt");
    CHECK(said.starts_with("docker-compose.yml\ndocs\ngolden_ref_solution.patch\nprompt.json\n"));
    CHECK(contains(said, "# File: rtl/a.sv\n@@ -1 +1 @@\n-x\n+y\n"));
    CHECK(contains(said, "secret\n1\n"));
    const Json report = must(parse_json(scene.text("report.json")));
    CHECK(report["metadata"]["force_agentic_include_golden"] == true);
  }
}
