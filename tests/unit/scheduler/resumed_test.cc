// A life that is restored from the facts so far holds the same state as the one that wrote them.
#include <doctest/doctest.h>

#include <array>
#include <memory>

#include "tests/support/memory_journal.h"
#include "tests/unit/scheduler/desk.h"

namespace proctor {
namespace {

using namespace scheduler_test;
using Kind = OperatorActKind;

std::unique_ptr<Scheduler> resumed(const Desk& desk, const PlanView& plan) {
  testing::MemoryJournal journal;
  for (const JournalWrite& w : desk.journal) journal.write(w);
  auto next = std::make_unique<Scheduler>(plan, desk.core.settings(), Epoch(3));
  REQUIRE(next->restore(journal.state()).ok());
  next->start(desk.now);
  return next;
}

// A desk's ledger answers at once, so what the scheduler holds to be reserved is so by facts alone.
void same_after_a_resume(const Desk& desk, const PlanView& plan) {
  const std::unique_ptr<Scheduler> next = resumed(desk, plan);
  CHECK(next->durable() == desk.core.durable());
  for (std::size_t s = 0; s < plan.scopes.size(); ++s) {
    CAPTURE(plan.scopes[s].name);
    CHECK(next->balances()[s].reserved == desk.core.balances()[s].reserved);
    CHECK(next->balances()[s].spent == desk.core.balances()[s].spent);
  }
}

void end_with(Desk& desk, AttemptId id, bool infrastructure, bool overload = false) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.outcome = RunOutcome::kInvalid;
  r.termination = Termination::kInfrastructure;
  r.infrastructure = infrastructure;
  r.overload = overload;
  r.archive_bytes = infrastructure ? 0 : 1;
  desk.feed(ResultReceived{WorkerId("w"), r});
}

OperatorAct again() {
  OperatorAct a;
  a.kind = Kind::kRequeue;
  a.runs = {RunId(0)};
  a.invalid = true;
  return a;
}

}  // namespace

TEST_SUITE("scheduler, resumed") {
  TEST_CASE("what fails after its run was forgiven counts, in the next life too") {
    const PlanView plan = plan_of({0});
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), true);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    desk.act(Kind::kCancel, {RunId(0)});
    desk.act(Kind::kRequeue, {RunId(0)});  // while its attempt is still to be stopped
    same_after_a_resume(desk, plan);
    end_with(desk, attempt_of(0, 2), true);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("an invalid run is run again, but not of a task that was taken out since") {
    SchedulerSettings with = settings();
    with.infrastructure_retries = 1;
    const PlanView plan = plan_of({0});
    Desk desk(plan, with);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), false);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    testing::MemoryJournal journal;
    for (const JournalWrite& w : desk.journal) journal.write(w);
    for (const bool removed : {false, true}) {
      Scheduler next(plan, with, Epoch(3));
      REQUIRE(next.restore(journal.state()).ok());
      if (removed) next.restore_fact(RunRemoved{RunId(0), RunOutcome::kInvalid});
      OperatorAnswer answer;
      CHECK(next.reopen_after_the_end(again(), answer).empty() == removed);
      CHECK((answer.verdict == OperatorAnswer::Verdict::kUnchanged) == removed);
    }
  }

  TEST_CASE("an attempt that an operator took away is no failure of a run that has ended") {
    const PlanView plan = plan_of({0});
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    desk.act(Kind::kKick, {}, "w");
    desk.sync("w", 1, {}, {}, 2);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    end_with(desk, attempt_of(0, 2), false);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("an attempt that an operator took away uses up no retry, in the next life too") {
    SchedulerSettings with = settings();
    with.infrastructure_retries = 1;
    const PlanView plan = plan_of({0});
    Desk desk(plan, with);
    desk.start();
    desk.sync("w", 1);
    desk.act(Kind::kKick, {}, "w");
    CHECK(resumed(desk, plan)->durable().at("run 0").find(" 0 failures") != std::string::npos);
    desk.sync("w", 1, {}, {}, 2);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    end_with(desk, attempt_of(0, 2), true);
    CHECK(desk.assigned.back() == attempt_of(0, 3));
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("what comes late of a lost attempt is no second failure, in the next life too") {
    const PlanView plan = plan_of({0});
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});
    desk.sync("w", 1, {}, {}, 2);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    end_with(desk, attempt_of(0), true);
    CHECK(desk.core.durable().at("run 0").find(" 1 failures") != std::string::npos);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("a run that was cancelled and is wanted again has no overloads behind it") {
    const PlanView plan = plan_of({0, 1});  // the second waits for Docker: the campaign goes on
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), true, true);
    REQUIRE(desk.core.durable().at("run 0").find("1 overloads") != std::string::npos);
    desk.act(Kind::kCancel, {RunId(0)});
    desk.act(Kind::kRequeue, {RunId(0)});
    CHECK(desk.core.durable().at("run 0").find("overloads") == std::string::npos);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("overloads before a result that was set aside still count") {
    const PlanView plan = plan_of({0, 1});  // the second waits for Docker: the campaign goes on
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), true, true);
    desk.now.mono += Millis(1);
    desk.feed(TimerFired{});
    end_with(desk, attempt_of(0, 2), false);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    same_after_a_resume(desk, plan);
    CHECK(desk.act(again()).verdict == OperatorAnswer::Verdict::kDone);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("a run that was reopened and ended invalid again has ended, in the next life too") {
    const PlanView plan = plan_of({0, 1});  // the second waits for Docker: the campaign goes on
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), false);
    CHECK(desk.act(again()).verdict == OperatorAnswer::Verdict::kDone);
    same_after_a_resume(desk, plan);  // while the next attempt is out
    end_with(desk, attempt_of(0, 2), false);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    same_after_a_resume(desk, plan);
    CHECK(desk.act(again()).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.core.counts().ended_total() == 0);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("a run that was reopened and used up its attempts has ended, in the next life too") {
    SchedulerSettings with = settings();
    with.infrastructure_retries = 1;
    const PlanView plan = plan_of({0, 1});  // the second waits for Docker: the campaign goes on
    Desk desk(plan, with);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), false);
    CHECK(desk.act(again()).verdict == OperatorAnswer::Verdict::kDone);
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});  // no result says that the run has ended
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("a suspect whose result was set aside is a suspect still") {
    const PlanView plan = plan_of({0, 1});  // the second waits for Docker: the campaign goes on
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    for (std::uint32_t no = 1; no <= 2; ++no) {
      desk.sync("w", 1, {attempt_of(0, no)}, {}, no);
      desk.sync("w", 1, {}, {}, no + 1);
    }
    REQUIRE(desk.assigned.back() == attempt_of(0, 3));
    same_after_a_resume(desk, plan);
    desk.sync("w", 1, {attempt_of(0, 3)}, {}, 3);
    desk.sync("w", 1, {}, {}, 4);  // convicted
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    same_after_a_resume(desk, plan);
    CHECK(desk.act(again()).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.core.roster().at(0).kept);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("a worker that works again begins a new row of quarantines, in the next life too") {
    SchedulerSettings with = settings();
    with.retries.quarantine_after = 2;
    with.retries.quarantine = Millis(1'000);
    const PlanView plan = plan_of({0});
    Desk desk(plan, with);
    desk.start();
    desk.sync("w", 1);
    end_with(desk, attempt_of(0), true);
    end_with(desk, desk.assigned.back(), true);
    REQUIRE(desk.core.roster().at(0).quarantines == 1);
    same_after_a_resume(desk, plan);  // and knows why
    desk.now.mono += with.retries.quarantine;
    desk.feed(TimerFired{});
    REQUIRE(desk.assigned.back() == attempt_of(0, 3));
    desk.result("w", desk.assigned.back(), 1);
    REQUIRE(desk.core.roster().at(0).quarantines == 0);
    same_after_a_resume(desk, plan);
    desk.act(Kind::kQuarantine, {}, "w");
    desk.act(Kind::kRelease, {}, "w");
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("who waits for a person waits on when its conviction falls, in the next life too") {
    SchedulerSettings with = settings();
    with.infrastructure_retries = 100;
    with.retries.escalate = true;
    const PlanView plan = plan_of({0});
    Desk desk(plan, with);
    desk.start();
    desk.sync("w", 1);
    for (std::uint32_t no = 1; no <= 2; ++no) {
      desk.sync("w", 1, {attempt_of(0, no)}, {}, no);
      desk.sync("w", 1, {}, {}, no + 1);
    }
    desk.sync("w", 1, {attempt_of(0, 3)}, {}, 3);
    desk.now.mono += limits::kLease * 2;  // who has a suspect is given more time
    desk.feed(TimerFired{});
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kHeld);
    same_after_a_resume(desk, plan);
    desk.sync("w", 1, {attempt_of(0, 3)}, {}, 3);  // it did not die of it
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kHeld);
    same_after_a_resume(desk, plan);
    desk.act(Kind::kApprove, {RunId(0)});
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kActive);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("what is out is reserved, and what is over is not, in the next life too") {
    const PlanView plan = plan_of({0, 0, 0}, 25);  // room for two
    Desk desk(plan);
    desk.start();
    desk.sync("w", 3);
    REQUIRE(desk.core.balances()[0].reserved == micro(20));
    same_after_a_resume(desk, plan);  // two are granted, and the third was not asked for
    desk.result("w", attempt_of(0), 3);
    REQUIRE(desk.core.balances()[0].spent == micro(3));
    same_after_a_resume(desk, plan);  // the third is granted
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});
    REQUIRE(desk.core.balances()[0].spent == micro(23));  // two are lost, at their ceiling
    same_after_a_resume(desk, plan);
    desk.sync("v", 3);  // an ask is denied: there is room for none
    REQUIRE(desk.core.balances()[0].reserved == micro(0));
    REQUIRE(desk.core.counts().parked == 2);
    same_after_a_resume(desk, plan);
  }

  TEST_CASE("without a worker a life ends in which only runs are left that it cannot pay") {
    for (const std::int64_t global : {25, 60}) {
      for (const bool one_is_out : {false, true}) {
        CAPTURE(global);
        CAPTURE(one_is_out);
        Desk desk(plan_of({0, 0, 1}, global));
        RestoredAttempt out;
        out.attempt = attempt_of(0);
        out.ask = micro(10);
        out.worker = WorkerId("w");
        out.boot = BootId(1);
        out.state = AttemptState::kGranted;
        if (one_is_out) {
          desk.spend(ScopeId(0), micro(8));
          desk.core.restore_fact(AttemptSettled{attempt_of(1), micro(8), {}, {}, WallTime(1)});
          desk.restore(out, true);
        } else {
          desk.core.restore_fact(RunEnded{RunId(0), attempt_of(0), RunOutcome::kSuccess});
          desk.core.restore_fact(AttemptSettled{attempt_of(0), micro(18), {}, {}, WallTime(1)});
        }
        for (const std::uint32_t run : {1U, 2U})
          desk.core.restore_fact(RunParked{RunId(run), ScopeId(0), micro(3), WallTime(1)});
        desk.start();
        desk.feed(TimerFired{});
        if (one_is_out) {
          CHECK(desk.core.counts().parked == 0);  // some of its money may come back
          desk.result("w", attempt_of(0), 10);
        }
        const bool pays = global == 60;
        CHECK(desk.core.counts().parked == (pays ? 0 : 2));
        CHECK(desk.core.counts().queued == (pays ? 2 : 0));
        CHECK(desk.ended == (pays ? std::nullopt : std::optional(true)));
        CHECK(desk.asks.empty());
      }
    }
  }

  TEST_CASE("since when an attempt is granted is known, in the next life too") {
    const PlanView plan = plan_of({0});
    Desk desk(plan);
    desk.now.wall = WallTime(5'000);
    desk.start();
    desk.sync("w", 1);
    CHECK(desk.core.granted_at(attempt_of(0)) == WallTime(5'000));
    CHECK(resumed(desk, plan)->granted_at(attempt_of(0)) == WallTime(5'000));
  }

  TEST_CASE(
      "who had a lost attempt, and nobody else, may still bring its result, in the next life") {
    const PlanView plan = plan_of({0});
    Desk desk(plan);
    desk.start();
    desk.sync("liar", 0);
    desk.sync("w", 1);
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});
    const std::unique_ptr<Scheduler> next = resumed(desk, plan);
    const std::array<const Scheduler*, 2> both{&desk.core, next.get()};
    for (const Scheduler* core : both) {
      CHECK(core->awaits(WorkerId("w"), attempt_of(0)));
      CHECK_FALSE(core->awaits(WorkerId("liar"), attempt_of(0)));
    }
  }

  TEST_CASE("facts of runs that the plan does not have are refused") {
    Scheduler core(plan_of({0}), settings(), Epoch(2));
    OperatorFact fact;
    fact.act.kind = Kind::kRequeue;
    fact.act.by = "ada";
    fact.forgiven = {attempt_of(7)};
    CHECK(core.restore_note(note_of(fact)).error().code == Errc::kCorrupt);
    fact.forgiven = {};
    fact.set_aside = {attempt_of(1)};
    CHECK(core.restore_note(note_of(fact)).error().code == Errc::kCorrupt);
    fact.set_aside = {attempt_of(0)};
    CHECK(core.restore_note(note_of(fact)).ok());
    const Note held = note_of(RunEscalated{RunId(1), "no attempt is left", WallTime(7)});
    CHECK(core.restore_note(held).error().code == Errc::kCorrupt);
    CHECK(standing_fact_of({WallTime(7), RunEscalated::kNote, {}, {}, "{}"}).error().code ==
          Errc::kCorrupt);
    CHECK(standing_fact_of({WallTime(7), RunEscalated::kNote, RunId(0), {}, "[]"}).error().code ==
          Errc::kCorrupt);
  }

  TEST_CASE("what was judged of a worker is read back, also from notes that say less") {
    for (const auto verdict :
         {WorkerJudged::Verdict::kQuarantined, WorkerJudged::Verdict::kReleased,
          WorkerJudged::Verdict::kRecovered}) {
      const bool begins = verdict == WorkerJudged::Verdict::kQuarantined;
      const WorkerJudged fact{WorkerId("w"),           verdict,
                              begins ? 2U : 0U,        Millis(begins ? 500 : 0),
                              begins ? "it fell" : "", WallTime(7)};
      const Note note = note_of(fact);
      const auto back = standing_fact_of(note);
      REQUIRE(back.ok());
      CHECK(note_of(std::get<WorkerJudged>(*back)).kind == note.kind);
      CHECK(note_of(std::get<WorkerJudged>(*back)).detail == note.detail);
    }
    const Note old{WallTime(7), kNoteWorkerQuarantined, {}, {}, R"({"worker":"w"})"};
    Scheduler core(plan_of({0}), settings(), Epoch(2));
    REQUIRE(core.restore_note(old).ok());
    REQUIRE(core.restore_note(old).ok());
    CHECK(core.roster().at(0).quarantines == 2);
    CHECK(standing_fact_of({WallTime(7), kNoteWorkerReleased, {}, {}, "{}"}).error().code ==
          Errc::kCorrupt);
    CHECK(standing_fact_of({WallTime(7), "alert", {}, {}, "{}"}).error().code == Errc::kCorrupt);
  }
}

}  // namespace proctor
