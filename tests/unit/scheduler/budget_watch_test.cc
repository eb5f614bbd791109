#include "coordinator/core/budget_watch.h"

#include <doctest/doctest.h>

#include "coordinator/core/run_queue.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {

using Attempts = std::vector<AttemptId>;
using Action = BudgetWatch::Dominance::Action;

ScopeBalance balance(std::int64_t cap, std::int64_t spent) {
  return {micro(cap), micro(spent), MicroUsd::zero()};
}
std::vector<std::uint32_t> percents(const std::vector<BudgetAlert>& alerts) {
  std::vector<std::uint32_t> out;
  for (const BudgetAlert& a : alerts) out.push_back(a.percent);
  return out;
}
using Levels = std::vector<std::uint32_t>;

// Runs alternate between two methods of task 0; the second has an envelope for two runs.
PlanView two_methods(std::uint32_t runs) {
  PlanView plan = plan_of(std::vector<std::uint32_t>(runs, 0));
  plan.scopes.push_back({"method:dear", micro(25)});
  plan.method_scopes = {ScopeId(0), ScopeId(4)};
  for (std::uint32_t r = 0; r < runs; ++r) plan.runs[r].method = static_cast<std::uint16_t>(r % 2);
  return plan;
}

std::vector<Note> notes_of_kind(const Desk& desk, const std::string& kind) {
  std::vector<Note> out;
  for (const Note& n : desk.facts<Note>())
    if (n.kind == kind) out.push_back(n);
  return out;
}

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a level is reached by what is spent and exactly then") {
    CHECK_FALSE(has_reached(micro(0), micro(0), 50));
    CHECK_FALSE(has_reached(micro(0), micro(10), 1));
    CHECK_FALSE(has_reached(micro(499'999), micro(1'000'000), 50));
    CHECK(has_reached(micro(500'000), micro(1'000'000), 50));
    CHECK(has_reached(kLedgerMax, kLedgerMax, 100));
    CHECK_FALSE(has_reached(kLedgerMax - micro(1), kLedgerMax, 100));
  }

  TEST_CASE("each level is told once and again only after a raise put it out of reach") {
    BudgetAlerts alerts({50, 80, 95});
    const auto tell = [](BudgetAlerts& of, ScopeId scope, const ScopeBalance& balance) {
      const std::vector<BudgetAlert> told = of.reached(scope, "task:a", balance, WallTime(1));
      for (const BudgetAlert& a : told) of.take(a);
      return percents(told);
    };
    const ScopeId s(3);
    CHECK(tell(alerts, s, balance(100, 49)).empty());
    CHECK(tell(alerts, s, balance(100, 85)) == Levels{50, 80});
    CHECK(tell(alerts, s, balance(100, 90)).empty());
    CHECK(tell(alerts, ScopeId(4), balance(100, 50)) == Levels{50});
    CHECK(percents(alerts.told()) == Levels{50, 80, 50});
    BudgetAlerts again({50, 80, 95});
    for (const BudgetAlert& a : alerts.told()) again.take(a);
    again.rearm(s, balance(150, 90));  // 60 %
    CHECK(tell(again, s, balance(150, 90)).empty());
    CHECK(tell(again, s, balance(150, 120)) == Levels{80});
    CHECK(tell(again, s, balance(150, 150)) == Levels{95});
  }

  TEST_CASE("an alert and a dominant run stand in the notes and are read back") {
    const BudgetAlert alert{ScopeId(5), "stratum:language=c\"", 80, micro(8), micro(10),
                            WallTime(7)};
    const Note note = note_of(alert);
    const auto back = fact_of<BudgetAlert>(note);
    REQUIRE(back.ok());
    CHECK(note_of(*back).detail == note.detail);
    CHECK(describe(*back, "USD") ==
          "envelope stratum:language=c\": 0.000008 of 0.00001 USD are spent, 80 % or more");
    const RunDominates fact{attempt_of(3, 2), micro(9), micro(10), 0, true, WallTime(8)};
    const auto read = fact_of<RunDominates>(note_of(fact));
    REQUIRE(read.ok());
    CHECK(read->attempt == fact.attempt);
    CHECK(note_of(*read).detail == note_of(fact).detail);
    CHECK(
        describe(*read, "units") ==
        "attempt 2 has used 0.000009 of its 0.00001 units with 0 milestones; its agent is stopped");
    for (const char* detail :
         {"", "[]", "{}", "{\"cap\":1,\"name\":\"x\",\"percent\":0,\"scope\":1,\"spent\":1}",
          "{\"cap\":-1,\"name\":\"x\",\"percent\":5,\"scope\":1,\"spent\":1}",
          "{\"cap\":1,\"name\":7,\"percent\":5,\"scope\":1,\"spent\":1}",
          "{\"cap\":1,\"name\":\"x\",\"percent\":101,\"scope\":1,\"spent\":1}",
          "{\"cap\":1e300,\"name\":\"x\",\"percent\":5,\"scope\":1,\"spent\":1}"}) {
      CAPTURE(detail);
      Note broken = note;
      broken.detail = detail;
      const auto refused = fact_of<BudgetAlert>(broken);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == Errc::kCorrupt);
    }
  }

  TEST_CASE("a run dominates at its share of the money unless it has milestones") {
    const BudgetWatch::Dominance rule{Action::kNote, 80, 2};
    CHECK_FALSE(dominates(rule, micro(7), micro(10), 0));
    CHECK(dominates(rule, micro(8), micro(10), 1));
    CHECK(dominates(rule, micro(80), micro(10), 0));
    CHECK_FALSE(dominates(rule, micro(8), micro(10), 2));
    CHECK_FALSE(dominates({Action::kOff, 1, 1}, micro(10), micro(10), 0));
  }

  TEST_CASE("a method's envelope parks the last runs of that method and of no other") {
    Desk desk(two_methods(12));
    desk.start();
    desk.sync("w", 3);
    // The third run of the dear method waits; the others pass it.
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1), attempt_of(2)});
    std::size_t done = 0;
    while (done < desk.assigned.size()) {
      const AttemptId id = desk.assigned[done++];
      desk.result("w", id, 9);
    }
    CHECK(desk.ended == true);
    CHECK(desk.core.counts().parked == 4);
    for (const RunParked& p : desk.facts<RunParked>()) {
      CHECK(p.run.raw() % 2 == 1);
      CHECK(p.scope == ScopeId(4));
      CHECK(p.short_by == micro(3));  // 18 of 25 are spent
    }
    CHECK(desk.ledger.balance(ScopeId(4)).spent == micro(18));
    const std::vector<Note> told = notes_of_kind(desk, BudgetAlert::kNote);
    REQUIRE(told.size() == 1);
    CHECK(told[0].detail == R"({"cap":25,"name":"method:dear","percent":50,"scope":4,"spent":18})");
  }

  TEST_CASE("an alert of an earlier life is not told again and a missing one is") {
    PlanView plan = plan_of({0, 0}, 20);
    plan.follows = {false, true, false, false};
    Desk desk(plan);
    desk.core.restore_fact(
        BudgetAlert{ScopeId(0), "global", 50, micro(10), micro(20), WallTime(1)});
    desk.core.restore_fact(AttemptSettled{attempt_of(0), micro(16), {}, {}, WallTime(1)});
    desk.start();
    const std::vector<Note> told = notes_of_kind(desk, BudgetAlert::kNote);
    REQUIRE(told.size() == 1);
    CHECK(told[0].detail == R"({"cap":20,"name":"global","percent":80,"scope":0,"spent":16})");
    CHECK(percents(desk.core.alerts()) == Levels{50, 80});
  }

  TEST_CASE("a dominant run is told once however often its worker says what it used") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("w", 2);
    const auto progress = [&](AttemptId id, std::uint64_t used, wire::Stage stage) {
      Usage usage;
      usage.tool_calls = used;
      desk.feed(ProgressReceived{WorkerId("w"), {Epoch(2), {{id, stage, true, usage}}}});
    };
    progress(attempt_of(0), 7, wire::Stage::kAgent);
    progress(attempt_of(1), 9, wire::Stage::kAcceptance);  // its agent is done
    CHECK(notes_of_kind(desk, RunDominates::kNote).empty());
    for (int i = 0; i < 3; ++i) progress(attempt_of(0), 8, wire::Stage::kAgent);
    const std::vector<Note> told = notes_of_kind(desk, RunDominates::kNote);
    REQUIRE(told.size() == 1);
    CHECK(told[0].run == RunId(0));
    CHECK(told[0].detail == R"({"ask":10,"cost":8,"milestones":0,"stop":false})");
    CHECK(desk.core.dominant().size() == 1);
  }

  TEST_CASE("a dominant run is told to stop at every Sync until its agent is gone") {
    SchedulerSettings stop = settings();
    stop.watch.dominance = {Action::kStop, 50, 1};
    Desk desk(plan_of({0, 0}), stop);
    desk.start();
    desk.sync("w", 2);
    const auto say = [&](wire::Stage stage, std::uint64_t milestones) {
      wire::Sync s;
      s.worker = WorkerId("w");
      s.boot = BootId(1);
      s.epoch_seen = Epoch(2);
      s.slots = 2;
      s.features = {"sandbox:null"};
      Usage usage;
      usage.tool_calls = 6;
      s.running = {{attempt_of(0), stage, true, usage, milestones},
                   {attempt_of(1), wire::Stage::kAgent, true, {}, 0}};
      desk.feed(WorkerSynced{s});
    };
    say(wire::Stage::kAgent, 1);
    CHECK(desk.reply.stop.empty());
    CHECK(desk.core.dominant().empty());
    for (int i = 0; i < 2; ++i) {
      say(wire::Stage::kAgent, 0);
      CHECK(desk.reply.stop == Attempts{attempt_of(0)});
    }
    say(wire::Stage::kAcceptance, 0);
    CHECK(desk.reply.stop.empty());
    CHECK(notes_of_kind(desk, RunDominates::kNote).size() == 1);
    CHECK(desk.core.dominant().front().stop);
    CHECK(desk.reply.cancel.empty());
  }
}

TEST_SUITE("run queue") {
  TEST_CASE("a wait at an envelope across the tree holds back those alone that need it") {
    const PlanView plan = two_methods(8);
    RunQueue queue(plan);
    bool is_short = true;
    const auto judge = [&](RunId run) -> RunQueue::Answer {
      if (is_short && plan.runs[run.raw()].method == 1)
        return {RunQueue::Verdict::kWaitForScope, ScopeId(4), 0};
      return {};
    };
    const auto all = [&] {
      std::vector<std::uint32_t> out;
      while (const auto run = queue.next(judge, 100)) out.push_back(run->raw());
      return out;
    };
    CHECK(all() == std::vector<std::uint32_t>{0, 2, 4, 6});
    CHECK(queue.waiting_for(RunId(5)) == ScopeId(4));
    is_short = false;
    queue.wake_scope(ScopeId(2));
    CHECK(all().empty());
    queue.wake_scope(ScopeId(4));
    CHECK(all() == std::vector<std::uint32_t>{1, 3, 5, 7});
    CHECK(queue.empty());
  }

  TEST_CASE("a run lies in the envelopes of its stage and task and of its method and strata") {
    PlanView plan = two_methods(2);
    plan.scopes.push_back({"stratum:language=c", micro(100)});
    plan.tasks[0].strata = {ScopeId(5)};
    CHECK(plan.path(RunId(0)) ==
          std::vector<ScopeId>{ScopeId(0), ScopeId(1), ScopeId(2), ScopeId(5)});
    CHECK(plan.path(RunId(1)) ==
          std::vector<ScopeId>{ScopeId(0), ScopeId(1), ScopeId(2), ScopeId(4), ScopeId(5)});
  }
}
