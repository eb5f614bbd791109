// What an attempt's worker said of it is held against what it says later, and its times are times.
#include <doctest/doctest.h>

#include <functional>

#include "common/wire/messages.h"
#include "coordinator/core/scheduler.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {
using Attempts = std::vector<AttemptId>;

RestoredAttempt granted_before() {
  RestoredAttempt a;
  a.attempt = attempt_of(0);
  a.state = AttemptState::kGranted;
  a.ask = micro(10);
  a.worker = WorkerId("w");
  a.boot = BootId(1);
  return a;
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("what a worker has spoken of is never given back, in whatever way it is let go") {
    const auto sync = [](std::uint64_t boot) {
      wire::Sync s;
      s.worker = WorkerId("w");
      s.boot = BootId(boot);
      s.epoch_seen = Epoch(2);
      s.slots = 1;
      s.features = {"sandbox:null"};
      return s;
    };
    const auto mention = [](wire::Stage stage, std::uint64_t calls) {
      wire::RunningAttempt r{attempt_of(0), stage, false, {}, 0};
      r.usage.tool_calls = calls;
      return r;
    };
    const std::vector<std::pair<const char*, std::function<void(Desk&)>>> words = {
        {"a piece of its archive",
         [&](Desk& d) {
           d.feed(EvidenceHeard{WorkerId("w"), attempt_of(0)});
         }},
        {"progress of a sandbox that has not started",
         [&](Desk& d) {
           d.feed(ProgressReceived{WorkerId("w"), {Epoch(2), {mention(wire::Stage::kAgent, 0)}}});
         }},
        {"progress that has cost something",
         [&](Desk& d) {
           d.feed(
               ProgressReceived{WorkerId("w"), {Epoch(2), {mention(wire::Stage::kAssigned, 3)}}});
         }},
        {"a mention in a Sync",
         [&](Desk& d) {
           wire::Sync s = sync(1);
           s.running = {mention(wire::Stage::kPreparing, 0)};
           d.feed(WorkerSynced{s});
         }},
    };
    const std::vector<std::pair<const char*, std::function<void(Desk&)>>> ways = {
        {"declined", [&](Desk& d) { d.decline("w", attempt_of(0), 1); }},
        {"not in the books of an earlier life",
         [&](Desk& d) {
           wire::Sync s = sync(2);
           s.features.push_back(wire::books_feature(BootId(1)));
           d.feed(WorkerSynced{s});
         }},
        {"left behind with an empty spool",
         [&](Desk& d) {
           d.feed(WorkerLeft{WorkerId("w"), BootId(1), std::set<AttemptId>{}});
         }},
    };
    for (const auto& [word, say] : words) {
      for (const auto& [way, let_go] : ways) {
        const std::string said = word, then = way;
        CAPTURE(said);
        CAPTURE(then);
        Desk desk(plan_of({0}));
        desk.start();
        desk.sync("w", 1);
        REQUIRE(desk.assigned == Attempts{attempt_of(0)});
        say(desk);
        let_go(desk);
        CHECK(desk.facts<AttemptVoided>().empty());
        REQUIRE(desk.facts<AttemptLost>().size() == 1);
        CHECK(desk.core.balances()[0].spent == micro(10));
      }
    }
  }

  TEST_CASE("what an earlier life of the coordinator had pieces of is not given back either") {
    for (const bool here : {true, false}) {
      CAPTURE(here);
      Desk desk(plan_of({0}));
      desk.restore(granted_before(), true);
      desk.start();
      if (here) desk.feed(EvidenceHeard{WorkerId("w"), attempt_of(0)});
      desk.decline("w", attempt_of(0), 0);
      CHECK(desk.facts<AttemptVoided>().size() == (here ? 0 : 1));
      CHECK(desk.facts<AttemptLost>().size() == (here ? 1 : 0));
      CHECK(desk.core.balances()[0].spent == micro(here ? 10 : 0));
    }
  }

  TEST_CASE("evidence that somebody else sends of an attempt says nothing of it") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    desk.sync("other", 0);
    desk.feed(EvidenceHeard{WorkerId("other"), attempt_of(0)});
    desk.feed(EvidenceHeard{WorkerId("stranger"), attempt_of(0)});
    desk.feed(EvidenceHeard{WorkerId("w"), attempt_of(7)});
    desk.decline("w", attempt_of(0), 0);
    CHECK(desk.facts<AttemptVoided>().size() == 1);
    CHECK(desk.core.balances()[0].spent == micro(0));
  }

  TEST_CASE("times that cannot be an attempt's are not counted with") {
    constexpr std::int64_t kNow = 1'770'000'000'000;
    const std::pair<std::int64_t, std::int64_t> rows[] = {
        {kNow, kNow + 5}, {0, 253'402'300'799'000}, {1, kNow}, {kNow + 5, kNow}};
    for (const auto& [started, finished] : rows) {
      const std::int64_t began = started;
      CAPTURE(began);
      Desk desk(plan_of({0}));
      desk.now.wall = WallTime(kNow);
      desk.start();
      desk.sync("w", 1);
      wire::ResultMessage r;
      r.epoch = Epoch(2);
      r.attempt = attempt_of(0);
      r.infrastructure = true;
      r.termination = Termination::kInfrastructure;
      r.started_ms = started;
      r.finished_ms = finished;
      desk.feed(ResultReceived{WorkerId("w"), r});
      REQUIRE(desk.facts<AttemptResult>().size() == 1);
      const AttemptResult kept = desk.facts<AttemptResult>()[0];
      CHECK(kept.started_ms == (started == kNow ? started : 0));
      CHECK(kept.finished_ms == (started == kNow ? finished : 0));
    }
  }
}
