// Caps of a run, from a real agent in a real sandbox to the result its coordinator gets.
#include "tests/integration/worker/meter_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("worker") {
  TEST_CASE("an agent that reaches its cap is stopped and its run is scored") {
    MeterScene scene;
    check_stopped_and_scored(scene);
  }

  TEST_CASE("an agent that goes by itself when it is denied has used up its money") {
    MeterScene scene;
    scene.settings.run_cap = MicroUsd::from_micros(200'000);
    scene.settings.caps.usd = MicroUsd::from_micros(60'000);
    const MeterScene::Ended e = scene.run(scene.client("go add/metered/r1"));
    CAPTURE(e.said);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(e.result.rationale.starts_with("budget_exceeded: usd: 0."));
    CHECK(0 < e.result.usage.model_calls);
    CHECK(e.report.cost.total() <= MicroUsd::from_micros(60'000));
  }

  TEST_CASE("a cap of zero tool calls starts no agent and the untouched tree is scored") {
    MeterScene scene;
    scene.settings.task_caps["add"].tool_calls = 0;
    const MeterScene::Ended e = scene.run(scene.client("go"));
    CHECK(e.result.outcome == RunOutcome::kFailure);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(e.result.rationale == "budget_exceeded: tool_calls: 0 of 0 used, the next call needs 1");
    CHECK(e.result.usage.tool_calls == 0);
    CHECK(e.result.usage.agent_ms == 0);
    CHECK(e.report.checks.at(2).outcome == CheckOutcome::kPass);
  }

  TEST_CASE("the cap on wall is a budget and the policy's wall is not") {
    MeterScene scene;
    scene.settings.caps.wall = std::chrono::seconds(1);
    const Method slow = scene.method("slow", Method::Kind::kCommand, "sleep 60");
    const MeterScene::Ended e = scene.run(slow);
    CHECK(e.result.outcome == RunOutcome::kFailure);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(e.result.rationale == "budget_exceeded: wall: the agent was stopped after its 1s");
  }

  TEST_CASE("the example client in Python asks before it spends") {
    MeterScene scene;
    scene.contract.caps.tokens = 1000;
    Method m = scene.method("python", Method::Kind::kCommand, "python3 $PROCTOR_METHOD/meter.py");
    const auto bytes = read_file(source_dir() / "examples/metering/meter.py", 1 << 20);
    REQUIRE(bytes.ok());
    m.files = {{"meter.py", 0644, *bytes}};
    m.digest = digest_of(m);
    const MeterScene::Ended e = scene.run(m);
    CAPTURE(e.said);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(e.result.usage.input_tokens == 300);
    CHECK(e.result.usage.output_tokens == 450);
    CHECK(has(e.said, "'answer': 'charged'"));
  }

  TEST_CASE("the example client in shell asks before it runs") {
    if (!fs::exists("/usr/bin/socat") && !fs::exists("/usr/bin/nc")) {
      MESSAGE("not tried: this machine has neither socat nor nc");
      return;
    }
    MeterScene scene;
    scene.contract.caps.tool_calls = 2;  // the program itself is the first
    Method m = scene.method("shell", Method::Kind::kCommand,
                            "sh $PROCTOR_METHOD/meter.sh echo one; "
                            "sh $PROCTOR_METHOD/meter.sh echo two; echo end");
    const auto bytes = read_file(source_dir() / "examples/metering/meter.sh", 1 << 20);
    REQUIRE(bytes.ok());
    m.files = {{"meter.sh", 0755, *bytes}};
    m.digest = digest_of(m);
    const MeterScene::Ended e = scene.run(m);
    CAPTURE(e.said);
    CHECK(e.said.starts_with("one\n{\"answer\":\"charged\""));
    CHECK_FALSE(has(e.said, "two"));
    CHECK(e.result.rationale == "budget_exceeded: tool_calls: 2 of 2 used, the next call needs 1");
    CHECK(e.result.usage.tool_calls == 2);
    CHECK(e.result.usage.reported_calls == 1);
  }
}
