#pragma once
// A contract whose checks see no meter, an agent that talks to it, and what came back.
#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "tests/integration/worker/scene.h"
#include "tests/support/paths.h"

namespace proctor::testing {

struct MeterScene : Scene {
  MeterScene() {
    const std::string hidden = "test ! -e /proctor/meter && test -z \"$PROCTOR_METER\"";
    // What is kept for acceptance is their time at most, and caps here are of cents.
    constexpr std::chrono::seconds kLimit{20};
    contract.setup.push_back({hidden, kLimit});
    contract.checks.push_back(check("no-meter", hidden));
    for (Check& c : contract.checks) c.timeout = kLimit;
  }
  // Repairs the program first: what it leaves behind when it is stopped is a success.
  Method client(const std::string& arguments) {
    Method m = method("metered", Method::Kind::kCommand,
                      "echo 'echo $(($1 + $2))' > calc.sh; "
                      "ls /proctor/meter; \"$PROCTOR_METHOD/client\" " +
                          arguments);
    const auto bytes = read_file(build_dir() / "meter_client", std::size_t{64} << 20);
    REQUIRE(bytes.ok());
    m.files = {{"client", 0755, *bytes}};
    m.digest = digest_of(m);
    return m;
  }
  struct Ended {
    wire::ResultMessage result;
    RunReport report;
    std::string said;    // by the agent
    std::string events;  // the trace
    Usage live;          // the last that a Sync told while it ran
  };
  Ended run(const Method& m) {
    FakeCoordinator coordinator(socket, 3);
    Child worker = start_worker();
    REQUIRE_MESSAGE(coordinator.connected(), log());
    coordinator.assign({assignment(coordinator, m, 0)}, settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), log());
    Ended out;
    out.result = coordinator.results.at(id(0));
    CAPTURE(out.result.rationale);
    const fs::path file = temp.path() / "got.tar.zst", dir = temp.path() / "got";
    REQUIRE(write_file(file, coordinator.archives.at(id(0))).ok());
    REQUIRE(unpack_archive(file, dir).ok());
    const auto report = parse_report(read_file(dir / kReportFile, kReportBytes).value());
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().detail));
    out.report = *report;
    if (auto said = read_file(dir / "agent/stdout", 1 << 20); said.ok()) out.said = *said;
    out.events = read_file(dir / kEventsFile, 1 << 24).value();
    // Totals only grow, and end in the result's.
    for (const wire::Sync& sync : coordinator.syncs) {
      for (const wire::RunningAttempt& r : sync.running) {
        CHECK(out.live.agent_ms <= r.usage.agent_ms);
        CHECK(out.live.priced_micros <= r.usage.priced_micros);
        out.live = r.usage;
      }
    }
    CHECK(out.live.agent_ms <= out.result.usage.agent_ms);
    worker.signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker.wait(std::chrono::seconds(180)));
    return out;
  }
};

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// An agent that stays after it is denied: stopped, and its run scored.
inline void check_stopped_and_scored(MeterScene& scene) {
  scene.contract.caps.tokens = 1000;
  const MeterScene::Ended e = scene.run(scene.client("stay"));
  CAPTURE(e.said);
  CHECK(e.result.outcome == RunOutcome::kSuccess);
  CHECK(e.result.termination == Termination::kBudgetExceeded);
  CHECK(e.result.rationale == "budget_exceeded: tokens: 990 of 1000 used, the next call needs 100");
  CHECK(e.said.starts_with("socket\n"));  // nothing else of the host
  CHECK(has(e.said, "run: this is the meter of add/metered/r1"));
  CHECK(has(e.said, "not JSON"));
  CHECK(has(e.said, "{\"cap\":\"tokens\",\"event\":\"stop\",\"grace_ms\":5000,"));
  const Usage& u = e.result.usage;
  CHECK(u.model_calls == 11);
  CHECK(u.input_tokens == 440);
  CHECK(u.output_tokens == 550);
  CHECK(u.priced_micros == 11 * (1000 + 40 * 3 + 50 * 15));  // fallback-1
  CHECK(u.reported_micros == u.priced_micros);
  CHECK(u.reported_tokens == 990);
  CHECK(u.tool_calls == 1);
  CHECK(5000 <= u.agent_ms);
  CHECK(u.agent_ms < 40'000);
  CHECK(0 < u.memory_peak + 1);
  CHECK(e.live.priced_micros == u.priced_micros);
  CHECK(0 < e.live.agent_ms);
  CHECK(e.report.usage == u);
  CHECK(e.report.cost.model == MicroUsd::from_micros(static_cast<std::int64_t>(u.priced_micros)));
  CHECK(e.report.cost == price(scene.settings.cost_model, u));
  for (const CheckReport& check : e.report.checks) CHECK(check.outcome == CheckOutcome::kPass);
  CHECK(has(e.events, "\"denied\":\"tokens\""));
  CHECK(has(e.events, "\"type\":\"agent.stop\""));
  CHECK(has(e.events, "\"type\":\"meter.closed\""));
}

}  // namespace proctor::testing
