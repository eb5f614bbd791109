#include "tests/integration/cvdp/run_cases.h"

#include <cstdlib>

#include "tests/support/leftovers.h"

namespace proctor::testing {
namespace {

// Says what a harness sees.
constexpr const char* kLook =
    "pwd; echo \"$HOME $A $B $FROM_IMAGE\"; cat /code/rtl/a.sv /code/docs/d /src/s; "
    "touch /code/rundir/made /code/rtl/made /made && echo writable; "
    "touch /src/made 2>/dev/null || echo read-only; ls /code; echo lost >&2; exit 3";

std::string two_services() {
  const std::string path = "    environment: {PATH: /usr/bin}\n";
  return "services:\n  zeta:\n    image: " + std::string(kImage) +
         "\n    command: [sh, -c, 'test -e /code/rundir/by-alpha && exit 2']\n" + path +
         "  alpha:\n    build: .\n    entrypoint: [sh, -c]\n    command: ['touch "
         "/code/rundir/by-alpha; " +
         std::string(kIsY) + "']\n" + path;
}

}  // namespace

RunScene::RunScene(Runner runner) : dir(must(TempDir::create("proctor-cvdp-run"))) {
  image = must(write_test_image(dir.path(), kImage));
  if (runner == Runner::kDocker)
    REQUIRE(run_proctor({"images", "import", "--engine", image.archive.string()}).exit_code == 0);
  images.emplace(runner, dir.path() / "store");
  if (runner == Runner::kOci)
    REQUIRE(run_proctor({"images", "import", image.archive.string()}).exit_code == 0);
}

fs::path RunScene::dataset(const std::string& lines) const {
  const fs::path file = dir.path() / "problems.jsonl";
  must(write_file(file, lines));
  return file;
}

CommandOutcome RunScene::run(const std::string& lines, std::vector<std::string> more,
                             const char* command) const {
  std::vector<std::string> args = {"cvdp", command, dataset(lines).string(), "--prefix",
                                   (dir.path() / "work").string()};
  args.insert(args.end(), more.begin(), more.end());
  CommandOutcome out = run_proctor(std::move(args), std::chrono::minutes(3));
  INFO(out.out);
  INFO(out.err);
  CHECK(leftovers_of(dir.path(), dir.path() / "work/campaign/.proctor/workers") == "");
  return out;
}

std::string RunScene::text(const std::string& path) const {
  return must(read_file(dir.path() / "work" / path, 1 << 20));
}

Json RunScene::raw(const std::string& sample) const {
  return must(parse_json(text(sample + "raw_result.json")));
}

void sees_what_upstream_shows(Runner runner) {
  const RunScene scene(runner);
  ShellProblem p;
  p.compose = service(kImage, kLook,
                      "    env_file: ./src/.env\n    volumes:\n"
                      "      - ./src/:/src/:ro\n");
  p.more = {{"src/.env", "A   = one\nB = lost\n"}, {"src/s", "the test\n"}};
  p.context = {{"docs/d", "a document\n"}};
  CHECK(scene.run(line_of(p), {"--golden"}).exit_code == 0);
  const Json item = scene.raw()["cvdp_agentic_a_0001"];
  CHECK(item["tests"][0]["result"] == 3);
  CHECK(item["errors"] == 3);
  const fs::path log = item["tests"][0]["log"].get<std::string>();
  CHECK(log == fs::absolute(scene.dir.path() / "work/cvdp_agentic_a/reports/1.txt"));
  CHECK(must(read_file(log, 10'000)) ==
        "/code/rundir\n/code/rundir one two 1\ny\na document\nthe test\nwritable\nread-only\n"
        "docs\nrtl\nrundir\nsrc\nverif\n");
  CHECK(scene.text("cvdp_agentic_a/reports/1_stderr.txt") == "lost\n");
  CHECK(scene.text("cvdp_agentic_a/harness/1/rtl/a.sv") == "y\n");
  CHECK(contains(scene.text("report.txt"), "cvdp_agentic_a_0001"));
}

void tells_services_apart(Runner runner) {
  const RunScene scene(runner);
  ShellProblem two;
  two.compose = two_services();
  two.more = {{"Dockerfile", "# nothing to build\nFROM " + std::string(kImage) + "\n"}};
  ShellProblem slow;
  slow.id = "cvdp_agentic_slow_0002";
  slow.compose = service(kImage, "echo begun; sleep 100");
  ShellProblem full;
  full.id = "cvdp_agentic_full_0003";
  full.compose = service(
      kImage, "for i in 1 2 3 4 5; do yes | head -c 1000000 > /code/rundir/f$i; done; sleep 100");
  ShellProblem absent;
  absent.id = "cvdp_agentic_absent_0004";
  absent.compose = service("no-such-image:1", kIsY);
  ShellProblem missing;
  missing.id = "cvdp_agentic_missing_0005";
  missing.compose =
      "services: {a: {image: " + std::string(kImage) + ", command: [no-such-program]}}\n";
  const std::string lines =
      line_of(two) + line_of(slow) + line_of(full) + line_of(absent) + line_of(missing);
  const CommandOutcome done =
      scene.run(lines, {"--golden", "--timeout", "3", "--disk-quota", "2", "-t", "4"});
  CHECK(done.exit_code == 0);
  CHECK(contains(done.out, "image no-such-image:1 is neither in the store"));
  const Json raw = scene.raw();
  const Json& alpha = raw["cvdp_agentic_a_0001"]["tests"][0];
  CHECK(alpha["result"] == 0);
  CHECK(contains(alpha["log"].get<std::string>(), "/reports/1_alpha.txt"));
  CHECK(raw["cvdp_agentic_a_0001"]["tests"][1]["result"] == 2);
  CHECK(raw["cvdp_agentic_a_0001"]["errors"] == 2);
  const Json& late = raw["cvdp_agentic_slow_0002"]["tests"][0];
  CHECK(late["result"] == 1);
  CHECK(late["error_msg"] == "killed after 3 s, its time limit");
  CHECK(scene.text("cvdp_agentic_slow/reports/2.txt") == "begun\n");
  const Json& quota = raw["cvdp_agentic_full_0003"]["tests"][0];
  CHECK(quota["result"] == -9);
  CHECK(quota["error_msg"] == "used more of the disk than the policy allows");
  CHECK(contains(raw["cvdp_agentic_absent_0004"]["tests"][0]["error_msg"].get<std::string>(),
                 "th_prepare: "));
  CHECK(raw["cvdp_agentic_missing_0005"]["tests"][0]["result"] == 127);
}

namespace {

// What an agent image has beside the shell: a program of its own that starts without a word.
fs::path agent_layer(const fs::path& dir, const std::string& script) {
  const fs::path root = dir / "agent";
  must(make_dirs(root / "agent"));
  must(write_file(root / "agent/work", "#!/bin/sh\n" + script, Durability::kLazy, 0755));
  const fs::path tar = dir / "agent.tar";
  output_of({"tar", "-C", root.string(), "--owner=0", "--group=0", "-cf", tar.string(), "."});
  return tar;
}

}  // namespace

void import_agent(Runner runner, const fs::path& dir, const std::string& script) {
  const TestImage agent = must(write_program_image(dir, "proctor-cvdp-agent:latest",
                                                   {agent_layer(dir, script)}, {"/agent/work"}));
  std::vector<std::string> import = {"images", "import", agent.archive.string()};
  if (runner == Runner::kDocker) import.insert(import.begin() + 2, "--engine");
  REQUIRE(run_proctor(import).exit_code == 0);
}

void agent_sees_what_upstream_shows(Runner runner) {
  const RunScene scene(runner);
  const TempDir dir = must(TempDir::create("proctor-cvdp-agent"));
  const std::string script =
      "PATH=/usr/bin\npwd; ls /code; cat /code/prompt.json; echo \"$HOME\"\n"
      "echo y > /code/rtl/a.sv; echo lost > /code/elsewhere; rm -r /code/verif/*\n"
      "mkdir /code/docs/deep; echo new > /code/docs/deep/note; echo lie > /code/prompt.json\n"
      "ln -s /etc/passwd /code/docs/link; exit 9\n";
  import_agent(runner, dir.path(), script);
  ShellProblem p;
  p.compose = service(kImage, std::string(kIsY) +
                                  " && cat /code/docs/deep/note && ls /code/verif && test -L "
                                  "/code/docs/link");
  p.context = {{"verif/old.sv", "old\n"}, {"docs/spec.md", "s\n"}};
  const CommandOutcome done =
      scene.run(line_of(p), {"-l", "-g", "proctor-cvdp-agent", "-n", "2", "--workers", "2"});
  INFO(done.err);
  CHECK(done.exit_code == 0);
  for (const std::string sample : {"sample_1/", "sample_2/"}) {
    INFO(scene.text(sample + "raw_result.json"));
    CHECK(scene.raw(sample)["cvdp_agentic_a_0001"]["errors"] == 0);
    CHECK(scene.text(sample + "cvdp_agentic_a/reports/1.txt") == "new\n");
    CHECK(scene.text(sample + "cvdp_agentic_a/reports/1_agent.txt") ==
          "/code\ndocs\nprompt.json\nrtl\nrundir\nverif\n{\"prompt\": \"Make it y.\"}/root\n");
    const std::string patch = scene.text(sample + "cvdp_agentic_a/harness/1/agent_changes.patch");
    // Upstream's form; not the link, nor what lies outside the four folders.
    CHECK(patch ==
          "--- /dev/null\n+++ b/docs/deep/note\n@@ -0,0 +1,1 @@\n+new\n\n"
          "--- a/rtl/a.sv\n+++ b/rtl/a.sv\n@@ -1 +1 @@\n-x\n+y\n\n"
          "--- a/verif/old.sv\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-old\n");
    CHECK(contains(scene.text(sample + "report.txt"), "Model/Agent: proctor-cvdp-agent"));
  }
}

void agent_is_stopped_at_its_disk_limit(Runner runner) {
  const RunScene scene(runner);
  const TempDir dir = must(TempDir::create("proctor-cvdp-agent"));
  import_agent(
      runner, dir.path(),
      "PATH=/usr/bin\necho y > /code/rtl/a.sv\n"
      "for i in 1 2 3 4 5; do yes | head -c 1000000 > /code/rundir/f$i; done; sleep 100\n");
  ShellProblem p;
  p.compose = service(kImage, kIsY);
  const CommandOutcome done =
      scene.run(line_of(p), {"-g", "proctor-cvdp-agent", "--disk-quota", "2"});
  INFO(done.err);
  CHECK(done.exit_code == 0);
  std::vector<Json> reports;
  for (const auto& entry :
       fs::recursive_directory_iterator(scene.dir.path() / "work/campaign/runs"))
    if (entry.path().filename() == "report.json")
      reports.push_back(must(parse_json(must(read_file(entry.path(), 1 << 20)))));
  REQUIRE(reports.size() == 1);
  const Json& end = reports[0]["termination"];
  CHECK(end["code"] == "resource_limit");
  CHECK(end["rationale"] == "the agent was stopped at its disk limit");
}

void agent_is_given_its_key_and_a_network(Runner runner) {
  const RunScene scene(runner);
  const TempDir dir = must(TempDir::create("proctor-cvdp-agent"));
  import_agent(runner, dir.path(),
               "PATH=/usr/bin\necho \"key ${CVDP_AGENT_KEY:-none} ${CVDP_OTHER_KEY:-none}\"\n"
               "grep -c : /proc/net/dev\n"
               "test \"$CVDP_AGENT_KEY\" = letmein && echo y > /code/rtl/a.sv\n");
  ::setenv("CVDP_AGENT_KEY", "letmein", 1);
  ::setenv("CVDP_OTHER_KEY", "not for it", 1);
  ShellProblem p;
  p.compose = service(kImage, std::string(kIsY) + " && test -z \"$CVDP_AGENT_KEY\"");
  const CommandOutcome done = scene.run(line_of(p), {"-g", "proctor-cvdp-agent", "--agent-secret",
                                                     "CVDP_AGENT_KEY", "--agent-network"});
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK(scene.raw()["cvdp_agentic_a_0001"]["errors"] == 0);
  // Docker's bridge, or the host's own network: more than a loopback, where the host has more.
  const std::string interfaces =
      runner == Runner::kDocker ? "2" : output_of({"grep", "-c", ":", "/proc/net/dev"});
  CHECK(scene.text("cvdp_agentic_a/reports/1_agent.txt") ==
        "key letmein none\n" + interfaces + "\n");
  // What it is given is part of the question that this prefix answers.
  const CommandOutcome other = scene.run(line_of(p), {"-g", "proctor-cvdp-agent"});
  CHECK_MESSAGE(contains(other.err, "another question (modes)"), other.err);
  ::unsetenv("CVDP_OTHER_KEY");
  ::unsetenv("CVDP_AGENT_KEY");
}

}  // namespace proctor::testing
