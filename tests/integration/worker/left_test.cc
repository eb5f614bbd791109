// A worker that was killed goes on with attempts whose agent is done: acceptance begins again.
#include <fcntl.h>
#include <sys/file.h>

#include "common/base/owned.h"
#include "common/score/outcome.h"
#include "tests/integration/worker/left_scene.h"
#include "worker/shell/spool.h"

using namespace proctor;
using namespace proctor::testing;

namespace {
const auto kAccepting = [](const wire::RunningAttempt& r) {
  return r.stage == wire::Stage::kAcceptance && r.sandbox_started;
};
}  // namespace

TEST_SUITE("worker") {
  TEST_CASE("a killed worker keeps the agent's work and begins acceptance again") {
    LeftScene scene;
    scene.hold_acceptance();
    const Method fix = scene.method("fix", Method::Kind::kCommand,
                                    "echo once; echo 'echo $(($1 + $2))' > calc.sh");
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave(coordinator, fix, kAccepting);
    coordinator.epoch = 4;  // and the coordinator has been restarted meanwhile
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const wire::Sync& first = coordinator.syncs[0];
    REQUIRE(first.running.size() == 1);
    CHECK(first.running[0].attempt == id(4));
    CHECK(first.running[0].sandbox_started);
    CHECK(first.unacked.empty());
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.epoch == Epoch(3));  // the one it was assigned under
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK_FALSE(e.result.infrastructure);
    CHECK(e.result.usage.tool_calls == 1);
    CHECK(e.said == "once\n");
    CHECK(LeftScene::count(e.events, "\"type\":\"agent.start\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"worker.restarted\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"acceptance\"") == 3);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("an agent that had ended is judged by its workspace and not paid twice") {
    LeftScene scene;
    // So many that its patch is still being made when the worker is killed.
    const Method fix = scene.method("fix", Method::Kind::kCommand,
                                    "echo once; echo 'echo $(($1 + $2))' > calc.sh; i=0; while [ "
                                    "$i -lt 5000 ]; do : > f$i; i=$((i + 1)); done");
    FakeCoordinator coordinator(scene.socket, 3);
    const fs::path file = scene.temp.path() / "root/workers/w1/runs/camp1-4.1/checkpoint";
    const auto says_ended = [&file] {
      const auto text = read_file(file, 1 << 20);
      return text.ok() && text->find("\"ended\"") != std::string::npos;
    };
    scene.leave(coordinator, fix, [&](const wire::RunningAttempt&) { return says_ended(); });
    REQUIRE(says_ended());
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    REQUIRE(coordinator.syncs[0].running.size() == 1);
    CHECK(coordinator.syncs[0].running[0].stage == wire::Stage::kExtracting);
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK_FALSE(e.result.infrastructure);
    CHECK(e.result.usage.tool_calls == 1);
    CHECK(0 < e.result.usage.agent_ms);
    CHECK(0 < e.result.usage.memory_peak);
    CHECK(e.said == "once\n");
    CHECK(LeftScene::count(e.events, "\"type\":\"agent.start\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"tool\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"meter.closed\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"mutation\"") == 1);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("a killed worker finds its coordinator at another address") {
    LeftScene scene;
    scene.hold_acceptance();
    const Method fix =
        scene.method("fix", Method::Kind::kCommand, "echo 'echo $(($1 + $2))' > calc.sh");
    FakeCoordinator before(scene.socket, 3);
    scene.leave(before, fix, kAccepting);
    scene.socket = scene.temp.path() / "elsewhere.sock";
    FakeCoordinator after(scene.socket, 4);
    after.bundles = before.bundles;
    Child worker = scene.start_worker();
    REQUIRE(after.connected());
    CHECK(after.syncs[0].campaign == "camp1");
    REQUIRE(after.syncs[0].running.size() == 1);
    CHECK(after.syncs[0].running[0].attempt == id(4));
    CHECK(scene.ended(after, id(4)).result.outcome == RunOutcome::kSuccess);
    scene.stop(after, worker);
  }

  TEST_CASE("what is of one campaign is never said as if it were of another") {
    LeftScene scene;
    scene.hold_acceptance();
    const Method fix =
        scene.method("fix", Method::Kind::kCommand, "echo 'echo $(($1 + $2))' > calc.sh");
    FakeCoordinator first(scene.socket, 3);
    scene.leave(first, fix, kAccepting);
    const fs::path home = std::exchange(scene.socket, scene.temp.path() / "elsewhere.sock");
    FakeCoordinator other(scene.socket, 1, "camp2");
    Child worker = scene.start_worker();
    REQUIRE(other.until(
        [&] { return !other.syncs.empty() && other.syncs.back().campaign == "camp2"; }));
    CHECK(other.syncs[0].campaign == "camp1");
    CHECK(other.syncs.back().running.empty());
    CHECK(other.syncs.back().unacked.empty());
    scene.stop(other, worker);  // which waits for what runs
    CHECK(other.results.empty());
    scene.socket = home;
    Child again = scene.start_worker();
    CHECK(scene.ended(first, id(4)).result.outcome == RunOutcome::kSuccess);
    scene.stop(first, again);
  }

  TEST_CASE("an attempt that outlived a worker is not taken over a second time") {
    LeftScene scene;
    scene.hold_acceptance();
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    FakeCoordinator coordinator(scene.socket, 3);
    for (int life = 0; life < 2; ++life) {
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      if (life == 0)
        coordinator.assign({scene.assignment(coordinator, noop, 4)}, scene.settings_digest());
      scene.kill_when(coordinator, std::move(worker), kAccepting);
    }
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].running.empty());
    CHECK(coordinator.syncs[0].unacked == std::vector<AttemptId>{id(4)});
    REQUIRE(coordinator.has_result(id(4)));
    CHECK(coordinator.results.at(id(4)).infrastructure);
    CHECK(coordinator.results.at(id(4)).rationale ==
          "its worker was killed; it is charged as metered until then");
    scene.stop(coordinator, worker);
  }

  TEST_CASE("a check that starves is judged again from the same patch, by the same agent's work") {
    LeftScene scene;
    REQUIRE(make_dirs(scene.gate()).ok());
    for (const char* name : {"go", "right"})
      REQUIRE(write_file(scene.gate() / name, "", Durability::kLazy).ok());
    const auto put = [&](const char* name) {
      std::ofstream(scene.gate() / name, std::ios::app) << "yes\n" << std::flush;
    };
    scene.contract.environment.toolchains.push_back({scene.gate().string(), "/opt/gate"});
    scene.contract.files.push_back({"locked", 0644, "a file of the contract\n"});
    scene.contract.checks = {
        LeftScene::check("sums", "test $(sh calc.sh 2 3) = 5"),
        LeftScene::check("starves",
                         "until [ -s /opt/gate/go ]; do sleep 0.1; done; "
                         "test -f \"$PROCTOR_CONTRACT/locked\" -a -s /opt/gate/right")};
    const Method fix = scene.method("fix", Method::Kind::kCommand,
                                    "echo once; echo 'echo $(($1 + $2))' > calc.sh");
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.assign({scene.assignment(coordinator, fix, 4)}, scene.settings_digest());
    const fs::path file = scene.temp.path() / "root/workers/w1/runs/camp1-4.1/contract/locked";
    UniqueFd lock;  // as a neighbour holds it
    REQUIRE_MESSAGE(coordinator.until([&] {
      lock.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      return lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
    }),
                    scene.log());
    put("go");
    REQUIRE_MESSAGE(coordinator.until([&] {
      return scene.log().find("had no more of: an unlocked") != std::string::npos;
    }),
                    scene.log());
    put("right");
    lock.reset();
    const LeftScene::Ended e = scene.ended(coordinator, id(4));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.said == "once\n");
    CHECK(LeftScene::count(e.events, "\"type\":\"agent.start\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"acceptance.again\"") == 1);
    CHECK(LeftScene::count(e.events, "\"type\":\"acceptance\"") == 2);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("a toolchain that goes while the agent works is no failure of the agent") {
    for (const bool comes_back : {true, false}) {
      LeftScene scene;
      scene.settings.infrastructure_retries = comes_back ? 4 : 1;
      REQUIRE(make_dirs(scene.gate()).ok());
      REQUIRE(write_file(scene.gate() / "go", "", Durability::kLazy).ok());
      scene.contract.environment.toolchains.push_back({scene.gate().string(), "/opt/gate"});
      scene.contract.checks = {LeftScene::check("sums", "test $(sh calc.sh 2 3) = 5")};
      const Method fix = scene.method("fix", Method::Kind::kCommand,
                                      "echo once; until [ -s /opt/gate/go ]; do sleep 0.1; done; "
                                      "echo 'echo $(($1 + $2))' > calc.sh");
      FakeCoordinator coordinator(scene.socket, 3);
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      coordinator.assign({scene.assignment(coordinator, fix, 4)}, scene.settings_digest());
      const fs::path said = scene.temp.path() / "root/workers/w1/runs/camp1-4.1/run/agent/stdout";
      REQUIRE_MESSAGE(coordinator.until([&] {
        const Result<std::string> text = read_file(said, 1 << 20);
        return text.ok() && *text == "once\n";
      }),
                      scene.log());
      const fs::path gone = scene.temp.path() / "gone";
      fs::rename(scene.gate(), gone);  // its sandbox has it still
      std::ofstream(gone / "go", std::ios::app) << "go\n" << std::flush;
      REQUIRE_MESSAGE(coordinator.until([&] {
        return scene.log().find(" is judged again: ") != std::string::npos;
      }),
                      scene.log());
      if (comes_back) fs::rename(gone, scene.gate());
      const LeftScene::Ended e = scene.ended(coordinator, id(4));
      CHECK(e.result.outcome == (comes_back ? RunOutcome::kSuccess : RunOutcome::kInvalid));
      CHECK(e.result.termination == Termination::kCompleted);
      CHECK_FALSE(e.result.infrastructure);
      CHECK((e.result.rationale.find(not_judged("")) == std::string::npos) == comes_back);
      CHECK(e.said == "once\n");
      CHECK(LeftScene::count(e.events, "\"type\":\"acceptance.again\"") == 1);
      scene.stop(coordinator, worker);
    }
  }

  TEST_CASE("an attempt that has its result already is not gone on with") {
    LeftScene scene;
    scene.hold_acceptance();
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave(coordinator, scene.method("noop", Method::Kind::kNoop), kAccepting);
    {
      // As if it had been killed right after this was on disk.
      Spool spool = Spool::open(scene.temp.path() / "root/workers/w1/spool").value();
      wire::ResultMessage result;
      result.epoch = Epoch(3);
      result.attempt = id(4);
      result.outcome = RunOutcome::kSuccess;
      result.rationale = "of the first life";
      REQUIRE(spool.put("camp1", result, {}).ok());
    }
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].running.empty());
    CHECK(coordinator.syncs[0].unacked == std::vector<AttemptId>{id(4)});
    REQUIRE(coordinator.has_result(id(4)));
    CHECK(coordinator.results.at(id(4)).rationale == "of the first life");
    CHECK(coordinator.deliveries.size() == 1);
    scene.stop(coordinator, worker);
  }

  TEST_CASE("a checkpoint that is damaged costs the attempt, as none does") {
    LeftScene scene;
    scene.hold_acceptance();
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    FakeCoordinator coordinator(scene.socket, 3);
    scene.leave(coordinator, noop, kAccepting);
    const fs::path file = scene.temp.path() / "root/workers/w1/runs/camp1-4.1/checkpoint";
    std::string bytes = read_file(file, 1 << 20).value();
    bytes[bytes.size() / 2] ^= 1;
    REQUIRE(write_file(file, bytes).ok());
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].running.empty());
    CHECK(coordinator.syncs[0].unacked == std::vector<AttemptId>{id(4)});
    REQUIRE(coordinator.has_result(id(4)));
    CHECK(coordinator.results.at(id(4)).infrastructure);
    scene.stop(coordinator, worker);
  }
}
