// A worker that was killed goes on with agents whose containers outlived it.
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/worker/left_scene.h"
#include "tests/integration/worker/small_disk.h"
#include "tests/support/leftovers.h"
#include "worker/workspace/workspace.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct DockerScene : LeftScene {
  DockerScene() {
    const auto image = test_image();
    REQUIRE_MESSAGE(image.ok(), "no Docker Engine: " << (image.ok() ? "" : image.error().detail));
    docker = docker_socket();
    contract.environment.image = *image;
    contract.environment.variables["PATH"] = "/usr/bin:/bin";
  }
  // Kills the worker once the agent has said its first word.
  void leave_at_work(FakeCoordinator& c, const Method& m,
                     const std::vector<std::string>& options = {}) {
    const fs::path said = temp.path() / "root/workers/w1/runs/camp1-4.1/run/agent/stdout";
    leave(
        c, m,
        [&](const wire::RunningAttempt& r) {
          const auto text = read_file(said, 1 << 20);
          return r.stage == wire::Stage::kAgent && text.ok() && !text->empty();
        },
        options);
  }
  // What works in an image of its own: a program that is given one file.
  Method in_own_image(const std::string& command) {
    Method agent = method("agent", Method::Kind::kCommand, "image");
    agent.container = ProgramContainer{};
    agent.container->image = std::exchange(contract.environment.image, "");
    agent.container->entrypoint = {"/bin/sh", "-c"};
    agent.container->command = {command};
    agent.container->mounts = {{"calc.sh", "/given/calc.sh", true}};
    agent.container->variables["PATH"] = "/usr/bin:/bin";  // the image's own has no sleep
    agent.digest = digest_of(agent);
    return agent;
  }
  std::string left_in_engine() const { return testing::left_in_engine(owner_); }
  std::string owner_ = "w1-" + sha256(fs::absolute(temp.path() / "root").string()).short_hex();
};

}  // namespace

TEST_SUITE("worker") {
  TEST_CASE("an agent in a container survives the death of its worker") {
    DockerScene scene;
    const Method agent =
        scene.method("agent", Method::Kind::kCommand,
                     "echo begun; sleep 4; echo 'echo $(($1 + $2))' > calc.sh; echo done");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    CHECK(scene.left_in_engine() != "");
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    REQUIRE(coordinator.syncs[0].running.size() == 1);
    CHECK(coordinator.syncs[0].running[0].attempt == id(4));
    CHECK(coordinator.syncs[0].running[0].stage == wire::Stage::kAgent);
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK_FALSE(e.result.infrastructure);
    CHECK(e.said == "begun\ndone\n");
    CHECK(e.result.usage.tool_calls == 1);
    CHECK(4'000 <= e.result.usage.agent_ms);
    CHECK(e.result.usage.agent_ms < 30'000);
    CHECK(LeftScene::count(e.events, "\"type\":\"agent.start\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"worker.restarted\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"tool\"") == 1);
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
    CHECK(leftovers_of(scene.temp.path() / "root", scene.temp.path() / "root") == "");
  }

  TEST_CASE("an agent in an image of its own survives the death of its worker") {
    DockerScene scene;
    const Method agent = scene.in_own_image(
        "echo begun; sleep 4; echo 'echo $(($1 + $2))' > /given/calc.sh; echo done");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    REQUIRE(coordinator.syncs[0].running.size() == 1);
    CHECK(coordinator.syncs[0].running[0].stage == wire::Stage::kAgent);
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "begun\ndone\n");
    CHECK(LeftScene::count(e.events, "\"type\":\"agent.start\"") == 1);
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
    CHECK(leftovers_of(scene.temp.path() / "root", scene.temp.path() / "root") == "");
  }

  TEST_CASE("an agent over a kept setup survives the death of its worker") {
    DockerScene scene;
    scene.contract.setup.push_back({"echo made > made.txt", std::chrono::seconds(120)});
    const Method agent =
        scene.method("agent", Method::Kind::kCommand,
                     "echo begun; sleep 3; cat made.txt; echo 'echo $(($1 + $2))' > calc.sh");
    FakeCoordinator coordinator(scene.socket, 3);
    const fs::path patch = scene.temp.path() / "got/patch.diff";
    std::string undisturbed;
    {
      Child first = scene.start_worker();  // which keeps what setup makes
      REQUIRE(coordinator.connected());
      coordinator.assign({scene.assignment(coordinator, agent, 3)}, scene.settings_digest());
      CHECK(scene.ended(coordinator, id(3)).result.outcome == RunOutcome::kSuccess);
      undisturbed = read_file(patch, 1 << 20).value();
      CHECK(undisturbed.find("calc.sh") != std::string::npos);
      scene.stop(coordinator, first);
      coordinator.leaves = 0;
      coordinator.syncs.clear();
      REQUIRE(remove_tree(scene.temp.path() / "got").ok());
    }
    scene.leave_at_work(coordinator, agent);
    Child worker = scene.start_worker();
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "begun\nmade\n");
    const std::string manifest =
        read_file(scene.temp.path() / "got/manifest.json", 1 << 20).value();
    CHECK(manifest.find("\"use\":\"hit\"") != std::string::npos);
    CHECK(read_file(patch, 1 << 20).value() == undisturbed);
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
  }

  TEST_CASE("a container on a bounded disk ends at its limit and outlives its worker") {
    {
      const TempDir temp = TempDir::create("bounded").value();
      WorkspaceStoreOptions options;
      options.root = temp.path();
      options.owner = "probe";
      options.bounded_disks = true;
      const auto store = open_workspace_store(options);
      if (!store.ok()) {
        MESSAGE("not run: " << store.error().detail);
        return;
      }
    }
    DockerScene scene;
    scene.contract.policy.disk_bytes = std::uint64_t{32} << 20;
    FakeCoordinator coordinator(scene.socket, 3);
    {
      Child first = scene.start_worker({"--bounded-disks"});
      REQUIRE(coordinator.connected());
      const Method glutton =
          scene.method("glutton", Method::Kind::kCommand,
                       "while head -c 8000000 /dev/zero > $HOME/f$((i += 1)); do :; done; exit 1");
      coordinator.assign({scene.assignment(coordinator, glutton, 1)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
      const wire::ResultMessage& r = coordinator.results.at(id(1));
      CAPTURE(r.rationale);
      CHECK(r.termination == Termination::kResourceLimit);
      CHECK_FALSE(r.infrastructure);
      scene.stop(coordinator, first);
      coordinator.leaves = 0;
      coordinator.syncs.clear();
    }
    const Method agent = scene.in_own_image(
        "echo begun; sleep 4; echo 'echo $(($1 + $2))' > /given/calc.sh; echo done");
    scene.leave_at_work(coordinator, agent, {"--bounded-disks"});
    Child worker = scene.start_worker({"--bounded-disks"});
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "begun\ndone\n");
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
    CHECK(leftovers_of(scene.temp.path() / "root", scene.temp.path() / "root") == "");
  }

  TEST_CASE("an agent that ended while nobody looked is judged by what it left") {
    DockerScene scene;
    const Method agent =
        scene.method("agent", Method::Kind::kCommand,
                     "echo begun; sleep 1; echo 'echo $(($1 + $2))' > calc.sh; echo done; exit 3");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    REQUIRE(coordinator.until(
        [&] { return scene.left_in_engine().find("\"State\":\"exited\"") != std::string::npos; }));
    Child worker = scene.start_worker();
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "begun\ndone\n");
    CHECK(LeftScene::count(e.events, "\"exit_code\":3") == 1);
    CHECK(1'000 <= e.result.usage.agent_ms);
    CHECK(e.result.usage.agent_ms < 10'000);
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
  }

  TEST_CASE("a disk that was full while nobody looked is not held against the agent") {
    DockerScene scene;
    const fs::path root = scene.temp.path() / "root";
    const std::optional<SmallDisk> disk = SmallDisk::over(root);
    if (!disk) return;
    const fs::path go = "/proctor/home/go";  // which the test can make, and the agent waits for
    const Method agent =
        scene.method("agent", Method::Kind::kCommand,
                     "echo begun; while ! [ -e " + go.string() + " ]; do sleep 0.1; done; exit 1");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    disk->fill();
    REQUIRE(coordinator.until([&] { return disk->full_for(std::chrono::seconds(1)); }));
    disk->clear();
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(write_file(root / "workers/w1/runs/camp1-4.1/home-agent/go", "").ok());
    REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
    CHECK(coordinator.results.at(id(4)).infrastructure);
    CHECK_MESSAGE(
        coordinator.results.at(id(4)).rationale.find("was full while it ran") != std::string::npos,
        coordinator.results.at(id(4)).rationale);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("an agent whose time ran out while nobody looked is stopped at once") {
    DockerScene scene;
    scene.contract.policy.wall = std::chrono::seconds(2);
    const Method agent = scene.method("agent", Method::Kind::kCommand, "echo begun; sleep 60");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    const auto killed = std::chrono::steady_clock::now();
    REQUIRE(coordinator.until(
        [&] { return std::chrono::seconds(3) < std::chrono::steady_clock::now() - killed; }));
    Child worker = scene.start_worker();
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.termination == Termination::kAgentTimeout);
    CHECK(e.result.outcome == RunOutcome::kFailure);
    CHECK(e.said == "begun\n");
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
  }

  TEST_CASE("an agent whose container is gone is no failure of the agent's") {
    DockerScene scene;
    const Method agent = scene.method("agent", Method::Kind::kCommand, "echo begun; sleep 60");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave_at_work(coordinator, agent);
    const Json all = parse_json(docker_call("GET", "/containers/json?all=1").value(),
                                {std::size_t{16} << 20, 64})
                         .value();
    for (const Json& one : all)
      if (one.dump().find(scene.owner_) != std::string::npos)
        REQUIRE(
            docker_call("DELETE", "/containers/" + one["Id"].get<std::string>() + "?force=1").ok());
    Child worker = scene.start_worker();
    REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
    CHECK(coordinator.results.at(id(4)).infrastructure);
    CHECK(coordinator.results.at(id(4)).termination == Termination::kInfrastructure);
    scene.stop(coordinator, worker);
    CHECK(scene.left_in_engine() == "");
  }
}
