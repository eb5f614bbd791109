// A check that does not pass while others hold all of what the kernel gives out by user is nobody's
// failure: the attempt ends as the host's, and the run is judged by one that had what it needed.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "common/base/owned.h"
#include "tests/hostile/hostile_campaign.h"
#include "tests/integration/sandbox/run_command.h"
#include "worker/selftest/attack_program.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::string mark() {
  return "lacks-" + std::to_string(::getpid());
}

// Beside the campaign, in a sandbox of this kind.
class Taker {
 public:
  Taker(Bench& bench, const std::string& what)
      : spec_(bench.spec()), dir_(bench.scratch() / "taker") {
    for (const char* name : {"program", "workspace"}) REQUIRE(make_dirs(dir_ / name).ok());
    fs::permissions(bench.scratch(), fs::perms(0755));
    fs::permissions(dir_ / "workspace", fs::perms(0777));
    REQUIRE(write_file(dir_ / "program/attack", attack_program(), Durability::kLazy, 0755).ok());
    spec_.label += "-taker";
    spec_.workspace = dir_ / "workspace";
    spec_.workspace_volume.clear();
    spec_.mounts.push_back({dir_ / "program", "/opt/counts", false});
    thread_ = std::jthread([this, &bench, what](const std::stop_token& stop) {
      ExecSpec exec = exec_of(bench, "exec /opt/counts/attack hold what=" + what);
      exec.timeout = std::chrono::minutes(4);
      run(bench, spec_, exec, stop);
      over_ = true;
    });
    while (!over_ && !fs::exists(spec_.workspace / "held"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

 private:
  SandboxSpec spec_;
  fs::path dir_;
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

// Waits until the others have taken all of it; found by this name in the list of processes.
std::string wait_for_gate() {
  return "sh -c 'until [ -s /opt/gate/open ]; do sleep 0.05; done; : " + mark() + "'\n";
}

const std::string kChecks =
    "checks:\n  - {id: sums, command: 'test $(sh calc.sh 2 3) = 5', timeout: 120s}\n"
    "policy:\n  wall: 100s\n  memory: 256MiB\n  processes: 64\n";

// With what asks for one of a thing in it.
void show_gate(const CampaignScene& scene) {
  const fs::path program = scene.temp() / "gate/attack";
  REQUIRE(make_dirs(program.parent_path()).ok());
  REQUIRE(write_file(program, attack_program(), Durability::kLazy, 0755).ok());
  const std::string with =
      "environment:\n  toolchains:\n    - {path: " + (scene.temp() / "gate").string() +
      ", at: /opt/gate}\n";
  const bool image = contains(scene.read(scene.contract()), "environment:\n");
  scene.edit(scene.contract(), image ? "environment:\n" : "environment: {}\n", with);
}

enum class Others { kTakeNothing, kTakePipes, kTakeDescriptors, kLock };
constexpr const char* kLocked = "/usr/bin/env";  // shown to every sandbox that has no image

// Is what they take no matter to a sandbox of this kind here?
bool is_spared(const SandboxEngine& engine, Others others) {
  if (others != Others::kLock) return engine.has_own_users();
  const auto told = engine.enforcement();
  const auto inodes = told.find("inodes");
  return inodes != told.end() && inodes->second == "own";
}

std::string outcome_beside(Others others, const std::string& contract, const std::string& agent) {
  const auto kind = make_kind();
  const auto bench = make_bench();
  if (!kind || !bench) return "not run";
  const auto scene = hostile_scene(*kind, {{"one", agent, ""}}, {}, contract);
  show_gate(*scene);
  scene->edit(scene->folder() / "campaign.yaml", "strata: [language, type]",
              "infrastructure_retries: 1\nretries: {backoff: 50ms}\nstrata: [language, type]");
  Child campaign = scene->start("run");
  while (processes_with(mark()) == 0 && campaign.running())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::optional<Taker> taker;
  if (others == Others::kTakePipes) taker.emplace(*bench, "pipes");
  if (others == Others::kTakeDescriptors) taker.emplace(*bench, "descriptors");
  UniqueFd locked;
  if (others == Others::kLock) {
    locked.reset(::open(kLocked, O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(locked.get(), LOCK_EX | LOCK_NB) == 0);
  }
  scene->open_gate();
  REQUIRE_MESSAGE(campaign.wait(std::chrono::seconds(170)).has_value(), scene->said());
  const Json report = must(parse_json(scene->run("report", {"--json"}).out));
  REQUIRE_MESSAGE(report["runs"].size() == 1, scene->said());
  const Json own = must(parse_json(
      scene->read(scene->folder() / "runs" / report["runs"][0]["run"].get<std::string>() /
                  "attempt-1/report.json")));
  MESSAGE(own["termination"].dump());
  const std::string outcome = report["runs"][0]["outcome"].string();
  const std::string lacked = others == Others::kLock              ? kLocked
                             : others == Others::kTakeDescriptors ? "descriptors on their way"
                                                                  : "pages in pipes";
  const bool spared = is_spared(bench->engine(), others);
  CHECK(contains(own["termination"].dump(), lacked) == (!spared && outcome == "invalid"));
  return outcome;
}

// What becomes of a run beside somebody who has taken all that one user may have: where sandboxes
// have users of their own, what would have become of it without him.
std::string beside_takers(const std::string& without) {
  return make_bench()->engine().has_own_users() ? without : "invalid";
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("a check that fails is judged only on a host that others have left something of") {
    const std::string wrong = wait_for_gate();
    const std::string right = wrong + "echo 'echo $(($1 + $2))' > calc.sh\n";
    const std::string alone = outcome_beside(Others::kTakeNothing, kChecks, wrong);
    if (alone == "not run") return;
    CHECK(alone == "failure");
    CHECK(outcome_beside(Others::kTakePipes, kChecks, wrong) == beside_takers("failure"));
    CHECK(outcome_beside(Others::kTakePipes, kChecks, right) == "success");
  }

  TEST_CASE("a setup step that fails for want of the host's is no fault of its task") {
    std::string setup = wait_for_gate();
    setup.back() = ';';
    const std::string beside = outcome_beside(
        Others::kTakePipes,
        "setup:\n  - {command: \"" + setup + " test -e ready\", timeout: 100s}\n" + kChecks,
        "true\n");
    if (beside != "not run") CHECK(beside == beside_takers("invalid"));
  }

  TEST_CASE("a check that needs what a neighbour has taken all of by user is judged as ever") {
    const std::string checks =
        "checks:\n  - {id: sums, command: 'test \"$(/opt/gate/attack need what=descriptors)\" = "
        "DONE && test $(sh calc.sh 2 3) = 5', timeout: 120s}\npolicy:\n  wall: 100s\n";
    const std::string right = wait_for_gate() + "echo 'echo $(($1 + $2))' > calc.sh\n";
    const std::string alone = outcome_beside(Others::kTakeNothing, checks, right);
    if (alone == "not run") return;
    CHECK(alone == "success");
    CHECK(outcome_beside(Others::kTakeDescriptors, checks, right) == beside_takers("success"));
    CHECK(outcome_beside(Others::kTakeDescriptors, checks, wait_for_gate()) ==
          beside_takers("failure"));
  }

  TEST_CASE("a check that wants a lock which a neighbour has on what all share is not judged") {
    const auto kind = make_kind();
    if (!kind || !kind->image().empty()) return;  // an image's files are each container's own
    const std::string checks = "checks:\n  - {id: sums, command: 'flock -n " +
                               std::string(kLocked) +
                               " sh tests/t.sh', timeout: 120s}\npolicy:\n  wall: 100s\n";
    const std::string right = wait_for_gate() + "echo 'echo $(($1 + $2))' > calc.sh\n";
    CHECK(outcome_beside(Others::kTakeNothing, checks, right) == "success");
    const auto bench = make_bench();
    if (!bench) return;
    const bool spared = is_spared(bench->engine(), Others::kLock);
    CHECK(outcome_beside(Others::kLock, checks, right) == (spared ? "success" : "invalid"));
    CHECK(outcome_beside(Others::kTakeNothing, checks, wait_for_gate()) == "failure");
  }
}
