#pragma once
// One lifecycle in a world that answers each command with success unless a test says otherwise.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>

#include "worker/core/run_lifecycle.h"

namespace proctor::lifecycle_test {

using End = ExecEnd;

constexpr const char* kCommit = "c0ffee";
constexpr const char* kTree = "7ree";

inline LifecyclePlan plan_of(std::size_t setup, std::size_t checks) {
  LifecyclePlan plan;
  plan.commit = kCommit;
  plan.agent_wall = std::chrono::milliseconds(1000);
  for (std::size_t i = 0; i < setup; ++i)
    plan.setup.push_back({"make deps", std::chrono::seconds(5), false});
  for (std::size_t i = 0; i < checks; ++i) {
    CheckReport check;
    check.id = "c" + std::to_string(i);
    check.kind = "unit";
    check.gate = "functional";
    check.ended = "not_run";
    plan.checks.push_back(check);
  }
  return plan;
}

inline CheckEnded ended(CheckOutcome outcome, const std::string& why) {
  CheckEnded e;
  e.report.outcome = outcome;
  e.report.why = why;
  return e;
}

template <class T>
std::size_t count(const std::vector<LifecycleCommand>& commands) {
  return static_cast<std::size_t>(
      std::count_if(commands.begin(), commands.end(),
                    [](const auto& c) { return std::holds_alternative<T>(c); }));
}

// A world in which every step succeeds, except where a script says otherwise.
struct World {
  explicit World(LifecyclePlan plan) : lifecycle(std::move(plan)) { take(lifecycle.start()); }

  void take(std::vector<LifecycleCommand> commands) {
    for (LifecycleCommand& c : commands) {
      REQUIRE_FALSE(packaged);  // nothing follows Package
      packaged = std::holds_alternative<Package>(c);
      log.push_back(std::move(c));
    }
  }

  template <class C>
  bool pending() const {
    return !log.empty() && std::holds_alternative<C>(log.back());
  }

  LifecycleEvent success() const {
    const LifecycleCommand& c = log.back();
    if (std::holds_alternative<TakeSnapshot>(c)) return SnapshotReady{kCommit, kTree};
    if (std::holds_alternative<RunSetup>(c)) return SetupEnded{};
    if (std::holds_alternative<RunMethodSetup>(c)) return SetupEnded{};
    if (std::holds_alternative<RunAgent>(c)) return AgentEnded{true, {}, 9};
    if (std::holds_alternative<ExtractPatch>(c)) return PatchExtracted{};
    if (std::holds_alternative<RestoreProtected>(c)) return ProtectedRestored{};
    if (std::holds_alternative<RunCheck>(c)) return ended(CheckOutcome::kPass, "");
    return StepDone{};
  }

  template <class C>
  void until() {
    while (!pending<C>() && !packaged) take(lifecycle.on(success()));
    REQUIRE(pending<C>());
  }
  void feed(const LifecycleEvent& event) { take(lifecycle.on(event)); }
  const Verdict& finish() {
    while (!packaged) take(lifecycle.on(success()));
    REQUIRE(lifecycle.finished());
    return lifecycle.verdict();
  }

  RunLifecycle lifecycle;
  std::vector<LifecycleCommand> log;
  bool packaged = false;
};

inline ProgramEnd exec(End end, int code = 0) {
  ProgramEnd facts;
  facts.end = end;
  facts.exit_code = code;
  facts.signal = end == End::kSignalled ? 11 : 0;
  facts.wall = std::chrono::milliseconds(1001);
  return facts;
}

inline Error error(Errc code) {
  return Error{code, "it broke"};
}

}  // namespace proctor::lifecycle_test
