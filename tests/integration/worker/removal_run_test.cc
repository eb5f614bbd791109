// What a run's removal takes is the run's: by a real worker, read from its evidence.
#include "tests/integration/worker/travelled.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("worker") {
  TEST_CASE("what it takes to remove what an agent left is in the usage of its run") {
    Scene scene;
    scene.contract.policy.wall = std::chrono::seconds(150);
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    // In the workspace and in the home, which are removed at two moments.
    const Method method = scene.method(
        "litterer", Method::Kind::kCommand,
        "for d in . \"$HOME\"; do (cd \"$d\" && seq -f 'empty%.0f' 3000 | xargs touch); done");
    const Method tidy = scene.method("tidy", Method::Kind::kCommand, "echo x > one");
    coordinator.assign({scene.assignment(coordinator, method, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    coordinator.assign({scene.assignment(coordinator, tidy, 1)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());

    const wire::ResultMessage& result = coordinator.results.at(id(0));
    const fs::path dir = unpacked(scene, coordinator, id(0));
    const RunReport report = report_of(dir, result.report);
    CHECK(report.usage.acceptance_ms == result.usage.acceptance_ms);
    std::uint64_t apart = 0, cpu = 0;
    for (const TraceEvent& e : events_of(dir, report)) {
      if (e.type != "removed") continue;
      if (e.payload.contains("memory_peak")) ++apart;
      cpu += e.payload.at("cpu_ms").get<std::uint64_t>();
    }
    CHECK(2 <= apart);
    CHECK(cpu <= report.usage.cpu_ms);
    const fs::path other = unpacked(scene, coordinator, id(1));
    for (const TraceEvent& e :
         events_of(other, report_of(other, coordinator.results.at(id(1)).report)))
      if (e.type == "removed") CHECK_FALSE(e.payload.contains("memory_peak"));
    std::error_code ec;
    CHECK_FALSE(fs::exists(scene.temp.path() / "root/workers/w1/runs/camp1-0.1", ec));
  }
}
