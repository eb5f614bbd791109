// What survives: a killed worker's results, a coordinator that goes away and comes back.
#include "common/wire/messages.h"
#include "tests/integration/worker/meter_scene.h"
#include "tests/integration/worker/small_disk.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("worker") {
  TEST_CASE("a killed worker delivers what it had finished when it comes back") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    coordinator.acknowledges = false;
    wire::ResultMessage first;
    {
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      const Method reference = scene.method("reference", Method::Kind::kReference);
      coordinator.assign({scene.assignment(coordinator, reference, 4)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
      first = coordinator.results.at(id(4));
      worker.signal(SIGKILL);
      CHECK(worker.wait(std::chrono::seconds(180)) == 128 + SIGKILL);
    }
    const BootId boot = coordinator.syncs.back().boot;
    const std::string archive = coordinator.archives.at(id(4));
    coordinator.buried.insert(boot);
    coordinator.syncs.clear();
    coordinator.results.clear();
    coordinator.archives.clear();
    coordinator.acknowledges = true;
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].boot != boot);
    CHECK(coordinator.syncs[0].unacked == std::vector<AttemptId>{id(4)});  // in the very first Sync
    CHECK(coordinator.syncs[0].running.empty());
    REQUIRE(coordinator.has_result(id(4)));
    CHECK(wire::encode(coordinator.results.at(id(4))) == wire::encode(first));
    CHECK(coordinator.archives.at(id(4)) == archive);
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().unacked.empty(); }));
    CHECK(coordinator.until([&] { return fs::is_empty(scene.spool()); }));
  }

  TEST_CASE("an archive that is damaged on the worker's disk ends its attempt as infrastructure") {
    for (const bool killed : {false, true}) {
      CAPTURE(killed);
      Scene scene;
      FakeCoordinator coordinator(scene.socket, 1);
      coordinator.acknowledges = false;
      auto worker = std::make_unique<Child>(scene.start_worker());
      REQUIRE(coordinator.connected());
      const Method reference = scene.method("reference", Method::Kind::kReference);
      coordinator.assign({scene.assignment(coordinator, reference, 4)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
      const wire::ResultMessage first = coordinator.results.at(id(4));
      REQUIRE(coordinator.until([&] { return coordinator.archives.contains(id(4)); }));
      if (killed) {
        worker->signal(SIGKILL);
        CHECK(worker->wait(std::chrono::seconds(180)) == 128 + SIGKILL);
        coordinator.buried.insert(coordinator.syncs.back().boot);
      }
      const fs::path archive = scene.spool() / (to_string(id(4)) + ".tar.zst");
      std::string bytes = read_file(archive, 1 << 20).value();
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      REQUIRE(write_file(archive, bytes).ok());
      coordinator.syncs.clear();
      coordinator.results.clear();
      coordinator.archives.clear();
      coordinator.acknowledges = true;
      if (killed) worker = std::make_unique<Child>(scene.start_worker());
      REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
      const wire::ResultMessage second = coordinator.results.at(id(4));
      CHECK(second.outcome == RunOutcome::kInvalid);
      CHECK(second.infrastructure);
      CHECK(second.archive_bytes == 0);
      CHECK(second.usage.acceptance_ms == first.usage.acceptance_ms);
      CHECK_FALSE(coordinator.archives.contains(id(4)));
      CHECK(fs::exists(archive.string() + ".corrupt"));
      CHECK(scene.log().find("is set aside") != std::string::npos);
    }
  }

  TEST_CASE("a killed worker reports what it was running as it was metered until then") {
    MeterScene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Usage said;
    {
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      coordinator.assign({scene.assignment(coordinator, scene.client("hold"), 4)},
                         scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.until([&] {
        const auto& running = coordinator.syncs.back().running;
        if (!running.empty()) said = running[0].usage;
        return said.model_calls == 3;
      }),
                      scene.log());
      worker.signal(SIGKILL);
      CHECK(worker.wait(std::chrono::seconds(180)) == 128 + SIGKILL);
    }
    coordinator.buried.insert(coordinator.syncs.back().boot);
    coordinator.syncs.clear();
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    CHECK(coordinator.syncs[0].unacked == std::vector<AttemptId>{id(4)});  // in the very first Sync
    CHECK(coordinator.syncs[0].running.empty());
    REQUIRE_MESSAGE(coordinator.has_result(id(4)), scene.log());
    const wire::ResultMessage& r = coordinator.results.at(id(4));
    CAPTURE(r.rationale);
    CHECK(r.epoch == Epoch(1));
    CHECK(r.infrastructure);
    CHECK(r.termination == Termination::kInfrastructure);
    CHECK(r.outcome == RunOutcome::kInvalid);
    // Three calls were charged; two more were granted and count at their worst case, the agent's
    // time until the worker was back.
    CHECK(said.priced_micros == 3 * (1000 + 40 * 3 + 50 * 15));  // fallback-1
    CHECK(r.usage.model_calls == 5);
    CHECK(r.usage.priced_micros == said.priced_micros + 2 * (1000 + 50 * 3 + 50 * 15));
    CHECK(r.usage.tool_calls == 1);
    CHECK(said.agent_ms <= r.usage.agent_ms);
    CHECK(r.usage.agent_ms <= 60'000);
    CHECK(price(scene.settings.cost_model, r.usage).total() < scene.settings.run_cap);
    CHECK(coordinator.until([&] { return coordinator.syncs.back().unacked.empty(); }));
    CHECK_FALSE(fs::exists(scene.temp.path() / "root/workers/w1/meters/camp1/4.1.meter"));
  }

  TEST_CASE("a killed worker's next life says that what it does not mention never began") {
    MeterScene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    const fs::path meters = scene.temp.path() / "root/workers/w1/meters";
    std::vector<BootId> lives;
    for (const bool whole : {true, false}) {
      CAPTURE(whole);
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      // Of the campaign: only then is it known what the spool holds.
      REQUIRE(coordinator.until(
          [&] { return coordinator.syncs.back().campaign == coordinator.campaign; }));
      const wire::Sync& said = coordinator.syncs.back();
      lives.push_back(said.boot);
      for (const BootId life : lives) CHECK(wire::has_books_of(said, life) == (life != said.boot));
      worker.signal(SIGKILL);
      CHECK(worker.wait(std::chrono::seconds(180)) == 128 + SIGKILL);
      coordinator.buried.insert(said.boot);
      coordinator.syncs.clear();
      if (!whole) {
        REQUIRE(make_dirs(meters / "camp1").ok());
        REQUIRE(write_file(meters / "camp1/4.1.meter", "not a book").ok());
      }
    }
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    for (const BootId life : lives) CHECK_FALSE(wire::has_books_of(coordinator.syncs[0], life));
  }

  TEST_CASE("what ran on a full disk is the host's failure, unless it filled the disk itself") {
    Scene scene;
    const fs::path root = scene.temp.path() / "root";
    const std::optional<SmallDisk> disk = SmallDisk::over(root);
    if (!disk) return;
    FakeCoordinator coordinator(scene.socket, 1);
    {
      Child worker = scene.start_worker();
      REQUIRE(coordinator.connected());
      const Method victim = scene.method("victim", Method::Kind::kCommand, "sleep 4; exit 1");
      coordinator.assign({scene.assignment(coordinator, victim, 1)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.until([&] {
        const auto& running = coordinator.syncs.back().running;
        return running.size() == 1 && running[0].stage == wire::Stage::kAgent &&
               running[0].sandbox_started;
      }),
                      scene.log());
      disk->fill();
      REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
      CAPTURE(coordinator.results.at(id(1)).rationale);
      CHECK(coordinator.results.at(id(1)).infrastructure);
      CHECK(coordinator.results.at(id(1)).outcome == RunOutcome::kInvalid);
      CHECK(coordinator.results.at(id(1)).rationale.find("was full while it ran") !=
            std::string::npos);
      disk->clear();
      const Method glutton =
          scene.method("glutton", Method::Kind::kCommand, "dd if=/dev/zero of=all bs=1M; exit 1");
      coordinator.assign({scene.assignment(coordinator, glutton, 2)}, scene.settings_digest());
      REQUIRE_MESSAGE(coordinator.has_result(id(2)), scene.log());
      const std::string judged = coordinator.results.at(id(2)).rationale;
      CHECK_MESSAGE(judged.find("was full while it ran") == std::string::npos, judged);
      worker.signal(SIGTERM);
      CHECK(coordinator.until([&] { return coordinator.leaves == 1; }));
      CHECK(worker.wait(std::chrono::seconds(180)) == 0);
    }
  }

  TEST_CASE("a worker goes on without its coordinator and delivers when a new life answers") {
    Scene scene;
    auto coordinator = std::make_unique<FakeCoordinator>(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator->connected());
    const Method slow =
        scene.method("slow", Method::Kind::kCommand, "sleep 1; echo 'echo $(($1 + $2))' > calc.sh");
    coordinator->assign({scene.assignment(*coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE(coordinator->until([&] { return !coordinator->syncs.back().running.empty(); }));
    const auto bundles = coordinator->bundles;  // it may still wait for them: so does a new life
    coordinator.reset();
    coordinator = std::make_unique<FakeCoordinator>(scene.socket, 2);
    coordinator->bundles = bundles;
    REQUIRE_MESSAGE(coordinator->has_result(id(0)), scene.log());
    CHECK(coordinator->results.at(id(0)).epoch == Epoch(1));  // the one it was assigned under
    CHECK(coordinator->results.at(id(0)).outcome == RunOutcome::kSuccess);
  }

  TEST_CASE("a lost acknowledgement is healed by the next Sync without another run") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    coordinator.acknowledges = false;
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method noop = scene.method("noop", Method::Kind::kNoop);
    coordinator.assign({scene.assignment(coordinator, noop, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    REQUIRE(coordinator.next_sync());
    CHECK(coordinator.syncs.back().unacked == std::vector<AttemptId>{id(0)});
    coordinator.durable.insert(id(0));  // and the next reply says so
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().unacked.empty(); }));
    CHECK(coordinator.deliveries.size() == 1);
  }

  TEST_CASE("a worker that is told to drain finishes what runs and leaves") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 1");
    coordinator.assign({scene.assignment(coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE(coordinator.until([&] {
      const auto& running = coordinator.syncs.back().running;
      return running.size() == 1 && running[0].stage == wire::Stage::kAgent;
    }));
    coordinator.drain = true;
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    CHECK(coordinator.results.at(id(0)).outcome == RunOutcome::kFailure);
    CHECK(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
    CHECK(coordinator.syncs.back().slots == 0);
  }

  TEST_CASE(
      "an assignment that was under way to a draining worker is given back before it leaves") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 2");
    coordinator.assign({scene.assignment(coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE(coordinator.until([&] {
      const auto& running = coordinator.syncs.back().running;
      return running.size() == 1 && running[0].stage == wire::Stage::kAgent;
    }));
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().slots == 0; }));
    coordinator.assign({scene.assignment(coordinator, slow, 1)}, scene.settings_digest());
    const auto given_back = [&] {
      return coordinator.syncs.back().declined == std::vector<AttemptId>{id(1)};
    };
    REQUIRE_MESSAGE(coordinator.until(given_back), scene.log());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    REQUIRE(coordinator.until([&] { return coordinator.leaves == 1; }));
    CHECK(coordinator.spooled.empty());
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
    CHECK_FALSE(coordinator.results.contains(id(1)));
  }

  TEST_CASE("a worker that leaves brings its results first, however long the coordinator is away") {
    Scene scene;
    auto coordinator = std::make_unique<FakeCoordinator>(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator->connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 1");
    coordinator->assign({scene.assignment(*coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE(coordinator->until([&] {
      const auto& running = coordinator->syncs.back().running;
      return running.size() == 1 && running[0].stage == wire::Stage::kAgent;
    }));
    coordinator.reset();
    worker.signal(SIGTERM);
    REQUIRE_MESSAGE(eventually([&] {
                      return scene.log().find("1 results wait for a coordinator that is away") !=
                             std::string::npos;
                    }),
                    scene.log());
    CHECK(worker.running());
    coordinator = std::make_unique<FakeCoordinator>(scene.socket, 2);
    REQUIRE_MESSAGE(coordinator->has_result(id(0)), scene.log());
    REQUIRE(coordinator->until([&] { return coordinator->leaves == 1; }));
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE("a second interrupt cancels and the run may be tried elsewhere") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 60");
    coordinator.assign({scene.assignment(coordinator, slow, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.until([&] {
      const auto& running = coordinator.syncs.back().running;
      return running.size() == 1 && running[0].stage == wire::Stage::kAgent;
    }),
                    scene.log());
    worker.signal(SIGTERM);
    REQUIRE(coordinator.until([&] { return coordinator.syncs.back().slots == 0; }));
    worker.signal(SIGTERM);
    REQUIRE(coordinator.has_result(id(0)));
    CHECK(coordinator.results.at(id(0)).infrastructure);
    CHECK(worker.wait(std::chrono::seconds(180)) == 0);
  }

  TEST_CASE("a second worker of one name on one host is refused") {
    Scene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    Child second = scene.start_worker();
    CHECK(second.wait(std::chrono::seconds(180)) == 4);
    CHECK(scene.log().find("held by another process") != std::string::npos);
    CHECK(worker.running());
  }
}
