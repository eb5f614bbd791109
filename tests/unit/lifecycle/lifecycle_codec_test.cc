#include "worker/core/run_lifecycle.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
const ProgramEnd kEnd{ExecEnd::kSignalled, 0, 11, std::chrono::milliseconds(70)};

std::string round_trip(const LifecycleEvent& event) {
  const std::optional<Json> json = event_json(event);
  REQUIRE(json.has_value());
  const Result<LifecycleEvent> back = event_from(*json);
  REQUIRE_MESSAGE(back.ok(), (back.ok() ? "" : back.error().detail));
  CHECK(back->index() == event.index());
  CHECK(event_json(*back) == json);
  return json->dump();
}
std::string refusal(const char* text) {
  const Result<LifecycleEvent> event = event_from(parse_json(text).value());
  REQUIRE_FALSE(event.ok());
  return event.error().detail;
}
}  // namespace

TEST_SUITE("lifecycle") {
  TEST_CASE("what an attempt was told until its patch is kept and read again") {
    round_trip(SnapshotReady{"c0ffee", "7ree"});
    round_trip(StepDone{});
    CHECK(round_trip(SetupEnded{kEnd, 5}).find("\"signal\":11") != std::string::npos);
    round_trip(AgentEnded{true, kEnd, 9});
    for (const ExecEnd end : {ExecEnd::kMemory, ExecEnd::kDisk, ExecEnd::kCpu})
      round_trip(AgentEnded{true, {end, 0, 0, std::chrono::milliseconds(70)}, 9});
    round_trip(AgentEnded{true, kEnd, 9, {"a.org:443 (1 time)"}});
    round_trip(BudgetReached{"usd", 4, "budget_exceeded: usd: all of it"});
    round_trip(PatchExtracted{{"dev/null"}, {"a", "b"}});
  }

  TEST_CASE("paths that are no text are kept as they are") {
    const std::string odd = std::string("a\xff\n\0b", 5);
    const PatchExtracted told{{odd, "plain", "hex:6f"}, {odd}, odd, true, {odd + ":3"}};
    CHECK(round_trip(told).find("hex:61ff0a0062") != std::string::npos);
    const LifecycleEvent back = event_from(*event_json(told)).value();
    const auto& again = std::get<PatchExtracted>(back);
    CHECK(again.refused == told.refused);
    CHECK(again.outside_writable == told.outside_writable);
    CHECK(again.unreadable == odd);
    CHECK(again.conflicts == told.conflicts);
    round_trip(BudgetReached{"usd", 4, odd});
    for (const char* broken : {"hex:6", "hex:zz", "hex:"}) {
      const LifecycleEvent kept =
          event_from(
              Json{{"event", "budget"}, {"cap", "usd"}, {"evidence", 0u}, {"reason", broken}})
              .value();
      CHECK(std::get<BudgetReached>(kept).reason.size() <= std::string(broken).size());
    }
  }

  TEST_CASE("what ends an attempt has no form") {
    CHECK_FALSE(event_json(StepFailed{{Errc::kUnavailable, "gone"}, 0}).has_value());
    CHECK_FALSE(event_json(CheckEnded{}).has_value());
    CHECK_FALSE(event_json(RunCancelAsked{}).has_value());
    CHECK_FALSE(event_json(ProtectedRestored{}).has_value());
  }

  TEST_CASE("an event that is none is refused by name") {
    CHECK(refusal(R"({"event":"party"})") == "event.event: no such event");
    CHECK(refusal(R"({"event":"snapshot","commit":"c"})").find("event.tree") == 0);
    CHECK(refusal(R"({"event":"done","more":1})").find("more") != std::string::npos);
    CHECK(refusal(R"({"event":"setup","evidence":0,
                      "exec":{"end":"gone","exit_code":0,"signal":0,"wall_ms":1}})") ==
          "event.exec.end: expected exited, signalled, timed_out, memory, disk, cpu or cancelled");
  }

  TEST_CASE("a lifecycle that is told the same again is where the first one was") {
    LifecyclePlan plan;
    plan.commit = "c0ffee";
    plan.checks.emplace_back();
    plan.checks[0].id = "unit";
    RunLifecycle first(plan), second(plan);
    first.start();
    second.start();
    std::vector<LifecycleCommand> next, again;
    for (const LifecycleEvent& event :
         std::vector<LifecycleEvent>{SnapshotReady{"c0ffee", "7ree"}, StepDone{}, StepDone{},
                                     StepDone{}, BudgetReached{"usd", 4, "all of it"},
                                     AgentEnded{true, kEnd, 9}, PatchExtracted{{}, {"b"}}}) {
      next = first.on(event);
      again = second.on(event_from(*event_json(event)).value());
    }
    REQUIRE(next.size() == again.size());
    CHECK(std::get<OpenWorkspace>(next.back()).room == Room::kAcceptance);
    CHECK(std::get<OpenWorkspace>(again.back()).room == Room::kAcceptance);
    for (RunLifecycle* l : {&first, &second}) {
      l->on(StepDone{});
      l->on(StepDone{});
      l->on(ProtectedRestored{});
      l->on(StepDone{});
      CheckEnded passed{plan.checks[0]};
      passed.report.outcome = CheckOutcome::kPass;
      l->on(passed);
      REQUIRE(l->finished());
      CHECK(l->verdict().termination == Termination::kBudgetExceeded);
      CHECK(l->verdict().rationale == "all of it; violations: 1 (not writable: b)");
      CHECK(l->verdict().violations == std::vector<std::string>{"not writable: b"});
      CHECK(l->verdict().outcome == RunOutcome::kSuccess);
    }
  }
}
