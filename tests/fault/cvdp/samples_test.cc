// Five samples of a scripted agent on two workers, coordinator and worker killed, gone on with: the
// composite report is that of a run nobody disturbed.  Over problems of our own, and over the
// benchmark's examples where they lie beside the clone; a script stands in for the simulator.
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "tests/integration/cvdp/run_cases.h"
#include "tests/support/leftovers.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

constexpr const char* kSim = "proctor-cvdp-fault-sim:latest";
constexpr const char* kAgent = "proctor-cvdp-fault-agent:latest";

void import_program(const fs::path& dir, const std::string& name, const std::string& script) {
  const fs::path root = dir / "root";
  must(remove_tree(root));
  must(make_dirs(root / "program"));
  must(write_file(root / "program/run", "#!/bin/sh\nPATH=/usr/bin\n" + script, Durability::kLazy,
                  0755));
  const fs::path tar = dir / "layer.tar";
  output_of({"tar", "-C", root.string(), "--owner=0", "--group=0", "-cf", tar.string(), "."});
  const TestImage image = must(write_program_image(dir, name, {tar}, {"/program/run"}));
  REQUIRE(run_proctor({"images", "import", image.archive.string()}).exit_code == 0);
}

// The published examples that a simulator can run; none where they are not beside this clone.
std::string examples() {
  const char* named = std::getenv("PROCTOR_CVDP_DATA");
  const fs::path data =
      named != nullptr ? fs::path(named) : source_dir().parent_path() / "shared/data/cvdp";
  std::string out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(data / "datasets", ec)) {
    const std::string text = must(read_file(entry.path(), std::size_t{64} << 20));
    // The other runnable one builds its image, for which there is no engine here.
    if (contains(entry.path().string(), "_agentic_code_generation_no_commercial"))
      out += text + (text.ends_with('\n') ? "" : "\n");
  }
  return out;
}

std::string problems() {
  std::string out;
  for (const char* id : {"cvdp_agentic_a_0001", "cvdp_agentic_b_0002", "cvdp_agentic_c_0003"}) {
    ShellProblem p;
    p.id = id;
    p.compose = service(kSim, "unused");
    Json record = must(parse_json(line_of(p)));
    record["prompt"] = id;
    out += record.dump() + "\n";
  }
  return out;
}

// What must be the same: all but times and places.
Json composite(const fs::path& prefix) {
  Json out = must(parse_json(must(read_file(prefix / "composite_report.json", 1 << 24))));
  out["metadata"].erase("timestamp");
  out["metadata"].erase("sample_prefixes");
  for (Json& sample : out["samples"]) {
    sample["metadata"].erase("timestamp");
    for (Json& value : sample)
      if (value.is_object() && value.contains("logs"))
        for (Json& log : value["logs"]) log.erase("log");
    for (const char* list : {"failing_tests", "passing_tests"})
      for (Json& test : sample["test_details"][list]) test.erase("log");
  }
  return out;
}

std::size_t ended_runs(const fs::path& prefix) {
  std::size_t out = 0;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(prefix / "campaign/runs", ec), end; !ec && it != end;
       it.increment(ec))
    out += it->path().filename() == "report.json" ? 1U : 0U;
  return out;
}

}  // namespace

TEST_SUITE("cvdp samples") {
  TEST_CASE("five samples of an agent on two workers survive kill -9 to the same composite report" *
            doctest::test_suite("full")) {
    if (!have_oci("five samples of an agent")) return;
    const RunScene scene(Runner::kOci);
    const TempDir images = must(TempDir::create("proctor-cvdp-images"));
    // The harness: passes what the agent was right about.
    import_program(images.path(), kSim, "grep -qr right /code/rtl\n");
    // The agent is right about some problems and takes its time.
    import_program(images.path(), kAgent,
                   "case $(cat /code/prompt.json) in *_b_*) w=wrong;; *) w=right;; esac\n"
                   "sleep 0.4; echo $w > /code/rtl/answer.sv\n");
    const std::string more = examples();
    if (more.empty()) MESSAGE("the published examples are not beside this clone: ours alone");
    const fs::path file = scene.dataset(problems() + more);
    const auto command = [&](const fs::path& prefix) {
      return std::vector<std::string>{"cvdp",        "run", file.string(), "-g", kAgent,
                                      "-n",          "5",   "-k",          "1",  "--workers",
                                      "2",           "-t",  "1",           "-p", prefix.string(),
                                      "--image-sim", kSim};
    };
    const fs::path work = scene.dir.path() / "work", quiet = scene.dir.path() / "quiet";
    CommandSpec spec;
    spec.argv = command(work);
    spec.argv.insert(spec.argv.begin(), proctor_program().string());
    for (const std::size_t after : {2, 6}) {
      Child child =
          must(Child::start(spec, scene.dir.path() / "said", Child::Lifetime::kDiesWithParent));
      REQUIRE(eventually([&] { return after <= ended_runs(work) && !workers_of(work).empty(); }));
      // One worker by itself, then the coordinator; the other worker goes on alone.
      ::kill(workers_of(work).front(), SIGKILL);
      child.signal(SIGKILL);
      REQUIRE(child.wait(std::chrono::seconds(180)));
    }
    CHECK_FALSE(fs::exists(work / "composite_report.json"));
    const CommandOutcome done = run_proctor(command(work), std::chrono::minutes(3));
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    const CommandOutcome undisturbed = run_proctor(command(quiet), std::chrono::minutes(3));
    INFO(undisturbed.err);
    REQUIRE(undisturbed.exit_code == 0);
    const Json mine = composite(work);
    CHECK(mine == composite(quiet));
    CHECK(mine["samples"].size() == 5);
    CHECK(mine["samples"][4]["cid003"]["easy"]["Passed Problems"] == (more.empty() ? 2 : 3));
    CHECK(mine["samples"][0]["cid003"]["easy"]["Failed Problems"] == 1);
    CHECK(eventually([&] {
      return leftovers_of(scene.dir.path(), work / "campaign/.proctor/workers").empty();
    }));
  }
}
