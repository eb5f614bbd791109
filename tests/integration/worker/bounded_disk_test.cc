// A worker whose workspaces are on disks that end: an agent that writes faster than anybody looks
// takes no more of the host than its contract lets it.
#include "tests/integration/worker/left_scene.h"
#include "worker/workspace/workspace.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool can_bound() {
  const TempDir temp = TempDir::create("bounded").value();
  WorkspaceStoreOptions options;
  options.root = temp.path();
  options.owner = "probe";
  options.bounded_disks = true;
  const auto store = open_workspace_store(options);
  if (!store.ok()) MESSAGE("not run: " << store.error().detail);
  return store.ok();
}

}  // namespace

TEST_SUITE("worker") {
  TEST_CASE("on a bounded disk an agent ends at its limit, wherever and however it writes") {
    if (!can_bound()) return;
    LeftScene scene;
    scene.contract.policy.disk_bytes = 32 * kMiB;
    scene.contract.setup.push_back({"echo made > made.txt", std::chrono::seconds(120)});
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker({"--bounded-disks"});
    REQUIRE(coordinator.connected());
    const struct {
      const char* name;
      const char* command;
    } gluttons[] = {
        // Over before anybody has looked twice.
        {"tree", "while dd if=/dev/zero of=f$((i += 1)) bs=1M count=8; do :; done; exit 1"},
        {"home", "while dd if=/dev/zero of=$HOME/f$((i += 1)) bs=1M count=8; do :; done; exit 1"},
        {"patient", "while dd if=/dev/zero of=f$((i += 1)) bs=1M count=8; do :; done; sleep 30"},
        {"entries", "while : > f$((i += 1)); do :; done; exit 1"},
    };
    std::uint32_t run = 0;
    for (const auto& [name, command] : gluttons) {
      CAPTURE(std::string(name));
      ++run;
      const Method glutton = scene.method(name, Method::Kind::kCommand, command);
      coordinator.assign({scene.assignment(coordinator, glutton, run)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(run)), scene.log());
      const wire::ResultMessage& r = coordinator.results.at(id(run));
      CAPTURE(r.rationale);
      CHECK(r.termination == Termination::kResourceLimit);
      CHECK_FALSE(r.infrastructure);
    }
    const Method fix =
        scene.method("fix", Method::Kind::kCommand, "echo 'echo $(($1 + $2))' > calc.sh");
    coordinator.assign({scene.assignment(coordinator, fix, ++run)}, scene.settings_digest());
    const LeftScene::Ended e = scene.ended(coordinator, id(run));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(LeftScene::count(e.manifest, "\"disk\":\"filesystem\"") == 1);
    scene.stop(coordinator, worker);
    const auto mounts = read_file("/proc/self/mounts", 1 << 20);
    REQUIRE(mounts.ok());
    CHECK(mounts->find(scene.temp.path().string()) == std::string::npos);
  }

  // Its home is beside the workspace there, and nothing keeps it but this attempt.
  TEST_CASE("on a bounded disk git's settings of the home are put back though no setup is kept") {
    if (!can_bound()) return;
    LeftScene scene;
    scene.contract.policy.disk_bytes = 32 * kMiB;
    SetupStep made{"echo honest > $HOME/.gitconfig; sh calc.sh 1 1", std::chrono::seconds(120)};
    made.cache = false;
    scene.contract.setup.push_back(made);
    scene.contract.checks = {scene.check(
        "settings", "[ \"$(cat $HOME/.gitconfig)\" = honest ] && [ \"$(sh calc.sh 2 3)\" = 5 ]")};
    const Method forger =
        scene.method("forger", Method::Kind::kCommand,
                     "echo 'echo external >> $HOME/.gitconfig; echo $(($1 + $2))' > calc.sh");
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker({"--bounded-disks"});
    REQUIRE(coordinator.connected());
    coordinator.assign({scene.assignment(coordinator, forger, 1)}, scene.settings_digest());
    const LeftScene::Ended e = scene.ended(coordinator, id(1));
    CHECK_MESSAGE(e.result.outcome == RunOutcome::kSuccess, e.result.rationale);
    CHECK_MESSAGE(LeftScene::count(e.events, "~/.gitconfig") == 1, e.events);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("a killed worker finds the agent's work on its bounded disk") {
    if (!can_bound()) return;
    LeftScene scene;
    scene.contract.policy.disk_bytes = 32 * kMiB;
    const Method fix = scene.method("fix", Method::Kind::kCommand,
                                    "echo once; echo 'echo $(($1 + $2))' > calc.sh; i=0; while [ "
                                    "$i -lt 5000 ]; do : > f$i; i=$((i + 1)); done");
    FakeCoordinator coordinator(scene.socket, 3);
    const fs::path file = scene.temp.path() / "root/workers/w1/runs/camp1-4.1/checkpoint";
    const auto says_ended = [&file] {
      const auto text = read_file(file, 1 << 20);
      return text.ok() && text->find("\"ended\"") != std::string::npos;
    };
    scene.leave(coordinator, fix, [&](const wire::RunningAttempt&) { return says_ended(); },
                {"--bounded-disks"});
    REQUIRE(says_ended());
    Child worker = scene.start_worker({"--bounded-disks"});
    REQUIRE(coordinator.connected());
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "once\n");
    scene.stop(coordinator, worker);
  }
}
