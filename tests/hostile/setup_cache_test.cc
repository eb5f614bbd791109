// What a setup left is kept for other runs: with it and without it every verdict, patch and
// violation is the same, and nothing an agent does to it reaches another run.
#include <cstdlib>
#include <sstream>

#include "tests/hostile/hostile_campaign.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kSolve = "echo 'echo $(($1 + $2))' > calc.sh\n";

// The setup reads needs.txt, and makes something in every place that it may write to.
constexpr const char* kSetupCommand =
    "grep -q '^fine$' needs.txt || exit 7; mkdir -p out \\\"$HOME/tools\\\" && "
    "echo 'echo tool' > \\\"$HOME/tools/tool.sh\\\" && chmod 700 \\\"$HOME/tools\\\" && "
    "echo product > out/product.o && cat needs.txt > out/needs.copy && echo made > made.txt && "
    "ln -sf made.txt made.link && chmod 755 shape.txt && rm -f gone.txt && echo set up";

std::vector<HostileAgent> agents() {
  return {
      {"idle", ":", "failure"},
      {"solver", kSolve, "success"},
      {"reader",
       std::string("test \"$(sh $HOME/tools/tool.sh)\" = tool || exit 1\n"
                   // Debian 12's gVisor refuses what `ls` asks of a name (docs/sandbox.md).
                   "if mode=$(ls -ld $HOME/tools 2>/dev/null); then\n"
                   "  case $mode in drwx------*) ;; *) exit 1 ;; esac\n"
                   "fi\n"
                   "test -e out/product.o -a ! -e gone.txt -a -L made.link || exit 1\n") +
           kSolve,
       "success"},
      // All of it is taken out of this run's sight, and of no other's.
      {"spoiler",
       std::string("rm -rf out made.* $HOME/tools; echo spoilt > made.txt; mkdir out; "
                   "echo spoilt > out/product.o; echo spoilt > $HOME/tools\n") +
           kSolve,
       "success"},
      {"breaker", std::string("echo broken > needs.txt\n") + kSolve, "failure"},
      {"shaper", std::string("chmod 600 shape.txt; echo back > gone.txt\n") + kSolve, "success"},
      {"dropper", "rm -rf out; rm needs.txt\n", "failure"},
  };
}

std::unique_ptr<CampaignScene> scene_of(const Kind& kind, const std::string& more) {
  return hostile_scene(
      kind, agents(),
      {{"needs.txt", "fine\n"},
       {"shape.txt", "shape\n"},
       {"gone.txt", "gone\n"},
       {".gitignore", "out/*.o\n"}},
      "setup: [{command: \"" + std::string(kSetupCommand) + "\", timeout: 120s" + more +
          "}]\nchecks:\n"
          "  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
          "  - {id: tool, command: 'test \"$(sh $HOME/tools/tool.sh)\" = tool', timeout: 120s, "
          "kind: script}\n"
          "  - {id: product, command: 'grep -q product out/product.o && test -L made.link && "
          "test ! -e gone.txt && test \"$(cat needs.txt)\" = \"$(cat out/needs.copy)\"', timeout: "
          "120s, kind: script}\n"
          "policy:\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n");
}

// A setup whose products the repository's rules ignore, as most builds' are.
std::vector<HostileAgent> tidy_agents() {
  return {{"idle", ":", "failure"},
          {"solver", kSolve, "success"},
          {"breaker", std::string("echo broken > needs.txt\n") + kSolve, "failure"},
          {"spoiler", std::string("rm -rf out $HOME/tool\n") + kSolve, "success"}};
}

std::unique_ptr<CampaignScene> tidy_scene(const Kind& kind, const std::string& more) {
  return hostile_scene(
      kind, tidy_agents(), {{"needs.txt", "fine\n"}, {".gitignore", "out/\n"}},
      "setup:\n  - {command: \"grep -q '^fine$' needs.txt || exit 7; echo set up\", timeout: 120s" +
          more +
          "}\n  - {command: \"mkdir out && echo 1 > out/a && echo 1 > $HOME/tool; echo set up" +
          "\", timeout: 120s" + more +
          "}\nchecks:\n"
          "  - {id: sums, command: sh tests/t.sh, kind: unit, timeout: 120s}\n"
          "  - {id: product, command: 'test \"$(cat out/a)\" = \"$(cat $HOME/tool)\"', timeout: "
          "120s, kind: script}\n"
          "policy:\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n");
}

// For the workers that are started meanwhile.
struct NoCache {
  NoCache() { ::setenv("PROCTOR_NO_SETUP_CACHE", "true", 1); }
  NoCache(const NoCache&) = delete;
  NoCache& operator=(const NoCache&) = delete;
  ~NoCache() { ::unsetenv("PROCTOR_NO_SETUP_CACHE"); }
};

struct Judged {
  std::map<std::string, std::string> runs;  // method -> all that a verdict is
  std::size_t kept = 0, hits = 0, off = 0, used_in_acceptance = 0;
};

std::string verdict_of(const Json& report, const std::string& patch) {
  Json out = {{"outcome", report["outcome"]},
              {"termination", report["termination"]["code"]},
              {"violations", report["violations"]},
              {"checks", Json::array()}};
  for (const Json& check : report["checks"])
    out["checks"].push_back(
        {check["id"], check["outcome"], check["exit_code"], check["ended"], check["why"]});
  return out.dump() + "\n" + patch;
}

Judged judge_all(const CampaignScene& scene, const std::vector<HostileAgent>& agents) {
  run_hostile(scene, agents);
  Judged out;
  INFO(scene.worker_log("local-1"));
  const Json report = must(parse_json(scene.run("report", {"--json"}).out));
  for (const Json& run : report["runs"]) {
    const fs::path dir = scene.folder() / "runs" / run["run"].get<std::string>() / "attempt-1";
    out.runs[run["method"].string()] = verdict_of(must(parse_json(scene.read(dir / "report.json"))),
                                                  scene.read(dir / "patch.diff"));
    const Json cache =
        must(parse_json(scene.read(dir / "manifest.json")))["environment"]["setup_cache"];
    if (cache["use"] == "hit") ++out.hits;
    if (cache["use"] == "off") ++out.off;
    std::istringstream events(scene.read(dir / "events.jsonl"));
    for (std::string line; std::getline(events, line);) {
      const Json event = must(parse_json(line));
      if (event["type"] == "setup.kept") ++out.kept;
      if (event["type"] == "setup" && event["payload"]["room"] == "acceptance" &&
          event["payload"].contains("layer"))
        ++out.used_in_acceptance;
      // What it said is there, whoever ran it.
      if (event["type"] == "setup" && event["payload"]["exit_code"] == 0)
        CHECK(event["payload"]["stdout"]["bytes"] == 7);
    }
  }
  return out;
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("kept setups give the verdicts and patches that setups which run give" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const Judged plain = [&] {
      const NoCache workers;
      return judge_all(*scene_of(*kind, ""), agents());
    }();
    CHECK(plain.off == agents().size());
    CHECK(plain.kept == 0);

    const Judged kept = judge_all(*scene_of(*kind, ""), agents());
    CHECK(kept.runs == plain.runs);
    CHECK(kept.kept == 1);
    CHECK(agents().size() - 3 <= kept.hits);  // two workers may meet before there is one
    // Without a word about what setup reads: where the snapshot is untouched, which setup's own
    // changes of files that no rule ignores leave to no run here.
    CHECK(kept.used_in_acceptance == 0);

    const Judged told = judge_all(*scene_of(*kind, ", inputs: [needs.txt]"), agents());
    CHECK(told.runs == plain.runs);
    CHECK(told.kept == 1);
  }

  TEST_CASE("setup sees no acceptance file and so leaves no copy of one for the agent") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> reader = {
        {"reader",
         "test -e copies/tools/lib.sh && ! grep -rl JUDGE copies && " + std::string(kSolve),
         "success"}};
    const auto scene = hostile_scene(
        *kind, reader, {},
        "setup: [{command: 'cp -r $PROCTOR_CONTRACT copies; true', timeout: 120s}]\nchecks:\n"
        "  - {id: own, command: sh tests/own.sh, kind: unit, timeout: 120s}\n"
        "  - {id: file, command: 'sh \"$PROCTOR_CONTRACT/judges/two.sh\"', kind: unit, timeout: "
        "20s}\n"
        "acceptance_files: [{from: own.sh, to: tests/own.sh}]\n"
        "files: [judges/two.sh, judges/data/three.sh, tools/lib.sh]\n"
        "policy:\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n");
    const std::string judge = "# JUDGE\ntest \"$(sh calc.sh 2 3)\" = 5\n";
    const fs::path contracts = scene->folder() / "contracts";
    must(make_dirs(contracts / "judges/data"));
    must(make_dirs(contracts / "tools"));
    scene->write(contracts / "own.sh", judge);
    scene->write(contracts / "judges/two.sh", judge);
    scene->write(contracts / "judges/data/three.sh", "data\n");
    scene->write(contracts / "tools/lib.sh", "true\n");
    run_hostile(*scene, reader);
  }

  TEST_CASE("setup of what an agent left sees no acceptance file and copies none of its answers") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> copier = {
        {"copier", "printf 'cp tests/expected.txt out.txt\\n' >build.sh", "failure", "", "[]"},
        {"honest", "echo the answer >out.txt", "success", "", "[]"},
        {"planter", "printf 'mkdir -p tests; echo mine >tests/expected.txt\\n' >build.sh",
         "failure", "", "[]", "tests/expected.txt"}};
    const auto scene = hostile_scene(
        *kind, copier, {},
        "setup: [{command: 'test ! -e build.sh || sh build.sh; true', timeout: 120s}]\nchecks:\n"
        "  - {id: own, command: 'test -s tests/expected.txt && grep -q answer out.txt', "
        "kind: unit, timeout: 120s}\n"
        "acceptance_files: [{from: expected.txt, to: tests/expected.txt}]\n"
        "policy:\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n  protected: ['tests/**']\n");
    scene->write(scene->folder() / "contracts/expected.txt", "the answer\n");
    run_hostile(*scene, copier);
  }

  TEST_CASE("acceptance uses a kept setup where setup could not tell the difference" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const Judged refused = judge_all(*tidy_scene(*kind, ", cache: false"), tidy_agents());
    CHECK(refused.used_in_acceptance == 0);
    const Judged untouched = judge_all(*tidy_scene(*kind, ""), tidy_agents());
    CHECK(untouched.runs == refused.runs);
    CHECK(untouched.used_in_acceptance == 2);  // both steps of the one that changed nothing
    const Judged told = judge_all(*tidy_scene(*kind, ", inputs: [needs.txt]"), tidy_agents());
    CHECK(told.runs == refused.runs);
    CHECK(told.used_in_acceptance == 6);  // all but the one that touched what setup reads
  }
}
