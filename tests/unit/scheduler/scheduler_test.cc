#include "coordinator/core/scheduler.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {
using Attempts = std::vector<AttemptId>;

std::size_t allocated() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

RestoredAttempt earlier(AttemptState state, std::uint64_t boot = 1) {
  RestoredAttempt a;
  a.attempt = attempt_of(0);
  a.state = state;
  a.ask = micro(10);
  a.worker = WorkerId("w");
  a.boot = BootId(boot);
  a.usage.tool_calls = 4;
  return a;
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("runs are assigned in plan order as far as slots go and end with the campaign") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.sync("w", 2);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
    desk.result("w", attempt_of(1), 4);
    CHECK(desk.acked == Attempts{attempt_of(1)});
    CHECK(desk.assigned.back() == attempt_of(2));
    desk.result("w", attempt_of(0), 4);
    CHECK_FALSE(desk.ended.has_value());
    desk.result("w", attempt_of(2), 4);
    CHECK(desk.ended == true);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(12));
    CHECK(desk.core.counts().ended_total() == 3);
  }

  TEST_CASE("a result sent again is acknowledged again and counts once") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 4);
    desk.result("w", attempt_of(0), 4);
    CHECK(desk.acked == Attempts{attempt_of(0), attempt_of(0)});
    CHECK(desk.facts<AttemptResult>().size() == 1);
  }

  TEST_CASE("a wait at a task's envelope lets the next task start") {
    PlanView plan = plan_of({0, 0, 1}, 1000, 10);
    plan.tasks[1].needs = 0;
    Desk desk(plan);
    desk.start();
    desk.sync("w", 3);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(2)});
    CHECK(desk.core.explain(RunId(1)).find("it waits for money in task:0") == 0);
    desk.result("w", attempt_of(0), 0);  // it cost nothing: all of it comes back
    CHECK(desk.assigned.back() == attempt_of(1));
  }

  TEST_CASE("runs behind an exhausted envelope are parked after one question") {
    Desk desk(plan_of(std::vector<std::uint32_t>(50, 0), 15));
    desk.start();
    desk.sync("w", 4);
    REQUIRE(desk.assigned == Attempts{attempt_of(0)});
    desk.result("w", attempt_of(0), 10);
    CHECK(desk.asks.size() == 2);
    CHECK(desk.facts<AttemptDenied>().size() == 1);
    CHECK(desk.facts<RunParked>().size() == 49);
    CHECK(desk.facts<RunParked>().back().short_by == micro(5));
    CHECK(desk.core.counts().parked == 49);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a run refused while money is out waits for it and is not parked") {
    Desk desk(plan_of({0, 0}, 25));
    // Something the scheduler has not heard of: 25 are too little for two runs beside it.
    REQUIRE(desk.ledger.reserve({{attempt_of(7), 0}, micro(10), {kGlobal}}).ok());
    desk.start();
    desk.sync("w", 2);
    CHECK(desk.assigned == Attempts{attempt_of(0)});
    CHECK(desk.asks.size() == 2);
    CHECK(desk.facts<RunParked>().empty());
    CHECK(desk.core.explain(RunId(1)).find("it waits for money in global") == 0);
    desk.result("w", attempt_of(0), 0);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(1)});
    desk.result("w", attempt_of(1), 4);
    CHECK(desk.ended == true);
    CHECK(desk.facts<AttemptDenied>().size() == 1);
  }

  TEST_CASE("a drain starts nothing more and lets what runs end") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("w", 1);
    desk.feed(DrainAsked{});
    CHECK(desk.cancelled.empty());
    desk.result("w", attempt_of(0), 4);
    CHECK(desk.assigned.size() == 1);
    CHECK(desk.ended == false);
    desk.sync("w", 1);
    CHECK(desk.reply.drain);
    CHECK(desk.core.explain(RunId(1)) == "the campaign is stopping: nothing more is started");
  }

  TEST_CASE("a cancel stops what runs and leaves its run without an outcome") {
    Desk desk(plan_of({0, 0}));
    desk.start();
    desk.sync("w", 1);
    desk.feed(CancelAsked{});
    CHECK(desk.cancelled == Attempts{attempt_of(0)});
    desk.sync("w", 1, {attempt_of(0)});
    CHECK(desk.reply.cancel == Attempts{attempt_of(0)});  // until it obeys
    desk.result("w", attempt_of(0), 4, Termination::kOperatorCancel);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kQueued);
    CHECK(desk.ended == false);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(4));
  }

  TEST_CASE("a restored attempt goes on from its state") {
    using S = AttemptState;
    struct Row {
      const char* what;
      S state;
      bool settled, pending;
      std::int64_t spent;  // after one Sync of its worker, which does not mention it
      Attempts assigned;
    };
    const Row rows[] = {
        {"asked, answer unknown", S::kReserving, false, false, 0, {attempt_of(0)}},
        {"denied: the same attempt asks again", S::kDenied, false, false, 0, {attempt_of(0)}},
        {"granted and never arrived", S::kGranted, false, true, 0, {attempt_of(0, 2)}},
        {"voided", S::kVoided, false, false, 0, {attempt_of(0, 2)}},
        {"finished and not settled", S::kFinished, false, true, 4, {attempt_of(0, 2)}},
        {"cancelled and not settled", S::kCancelled, false, true, 4, {attempt_of(0, 2)}},
        {"cancelled and settled", S::kCancelled, true, false, 0, {attempt_of(0, 2)}},
        {"lost and not settled", S::kLost, false, true, 10, {attempt_of(0, 2)}},
        {"lost and settled", S::kLost, true, false, 0, {attempt_of(0, 2)}}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      Desk desk(plan_of({0}));
      RestoredAttempt a = earlier(row.state);
      a.settled = row.settled;
      a.has_result = row.state == S::kFinished || row.state == S::kCancelled;
      if (row.state == S::kCancelled) a.termination = Termination::kOperatorCancel;
      desk.restore(a, row.pending);
      // An answer that is not known is given to a free worker only: it must have joined.
      if (row.state == S::kReserving) {
        const std::vector<Command> first = desk.core.start(desk.now);
        desk.sync("w", 1);
        const auto answer =
            desk.ledger.reserve({{a.attempt, 0}, a.ask, desk.core.plan().path(a.attempt.run)});
        desk.feed(Reserved{{{{a.attempt, 0}, answer.value()}}});
        CHECK(std::holds_alternative<ArmTimer>(first.front()));
      } else {
        desk.start();
        desk.sync("w", 1);
      }
      CHECK(desk.ledger.balance(kGlobal).spent == micro(row.spent));
      CHECK(desk.assigned == row.assigned);
      CHECK(desk.ledger.open_reservations() == 1);
    }
  }

  TEST_CASE("a granted attempt of a worker's earlier life is lost and not voided") {
    Desk desk(plan_of({0}));
    desk.restore(earlier(AttemptState::kGranted, 7), true);
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.facts<AttemptLost>().size() == 1);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(10));
  }

  TEST_CASE("a granted attempt that its worker runs is adopted") {
    Desk desk(plan_of({0, 0}));
    desk.restore(earlier(AttemptState::kGranted), true);
    desk.start();
    desk.sync("w", 1, {attempt_of(0)});
    CHECK(desk.assigned.empty());  // its slot is taken
    CHECK(desk.core.explain(RunId(0)) == "attempt 1 is under way on worker w");
    desk.result("w", attempt_of(0), 4);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
  }

  TEST_CASE("a granted attempt nobody claims is lost after the lease") {
    Desk desk(plan_of({0}));
    desk.restore(earlier(AttemptState::kGranted), true);
    desk.start();
    desk.now.mono += limits::kLease - Millis(1);
    desk.feed(TimerFired{});
    CHECK(desk.facts<AttemptLost>().empty());
    desk.now.mono += Millis(1);
    desk.feed(TimerFired{});
    REQUIRE(desk.facts<AttemptLost>().size() == 1);
    CHECK(desk.ledger.balance(kGlobal).spent == micro(10));
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kQueued);
  }

  TEST_CASE("losses of an earlier life count against the limit of retries") {
    Desk desk(plan_of({0}));
    for (std::uint32_t no = 1; no <= 3; ++no) {
      RestoredAttempt a = earlier(AttemptState::kLost);
      a.attempt = attempt_of(0, no);
      a.settled = true;
      desk.restore(a, false);
    }
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.assigned == Attempts{attempt_of(0, 4)});
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    CHECK(desk.facts<RunEnded>().size() == 1);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a removed run never starts and is explained") {
    Desk desk(plan_of({0, 0}));
    desk.core.restore_fact(RunRemoved{RunId(0)});
    desk.start();
    desk.sync("w", 2);
    CHECK(desk.assigned == Attempts{attempt_of(1)});
    CHECK(desk.core.explain(RunId(0)) == "its task was removed from the campaign");
  }

  TEST_CASE("a run that has not ended is removed wherever it waits") {
    Desk desk(plan_of({0, 0, 0, 0}));
    desk.core.restore_fact(RunParked{RunId(0), ScopeId(0), MicroUsd::from_micros(1), WallTime(0)});
    desk.core.restore_fact(RunEscalated{RunId(1), "no attempt is left", WallTime(7)});
    OperatorFact cancel;
    cancel.act.kind = OperatorActKind::kCancel;
    cancel.act.runs = {RunId(2)};
    desk.core.restore_fact(cancel);
    for (const RunId run : {RunId(0), RunId(1), RunId(2)}) desk.core.restore_fact(RunRemoved{run});
    desk.start();
    const Scheduler::Counts counts = desk.core.counts();
    CHECK(counts.removed == 3);
    CHECK(counts.parked + counts.held + counts.cancelled == 0);
    CHECK(counts.queued == 1);
    desk.act(OperatorActKind::kRequeue, {RunId(0), RunId(1), RunId(2)});
    desk.sync("w", 4);
    CHECK(desk.assigned == Attempts{attempt_of(3)});
  }

  TEST_CASE("a run that has begun is seen to its end, though its task was removed") {
    Desk desk(plan_of({0}));
    desk.restore(earlier(AttemptState::kGranted), true);
    desk.core.restore_fact(RunRemoved{RunId(0)});
    desk.start();
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kActive);
    CHECK(desk.core.counts().removed == 0);
    CHECK(desk.core.counts().ended_removed[0] == 0);
  }

  TEST_CASE("a run that had ended when its task was removed is counted apart") {
    Desk desk(plan_of({0, 0}));
    desk.core.restore_fact(RunEnded{RunId(0), {RunId(0), AttemptNo(1)}, RunOutcome::kFailure});
    desk.core.restore_fact(RunRemoved{RunId(0), RunOutcome::kFailure});
    CHECK(desk.core.counts().ended[1] == 1);
    CHECK(desk.core.counts().ended_removed[1] == 1);
  }

  TEST_CASE("each place of a run has its sentence") {
    Desk desk(plan_of({0, 0, 1}, 25));
    desk.start();
    CHECK(desk.core.explain(RunId(2)).starts_with(
        "it waits for a free worker with Docker: none is here, and none has ever joined; this "
        "coordinator has run since "));
    desk.sync("w", 1);
    CHECK(desk.core.explain(RunId(0)) == "attempt 1 is under way on worker w");
    CHECK(desk.core.explain(RunId(1)) == "it waits for a free worker with nothing special");
    desk.result("w", attempt_of(0), 10);
    CHECK(desk.core.explain(RunId(0)) == "it has ended");
  }

  TEST_CASE("who waits for a kind that does not isolate where a worker is is told so") {
    Desk desk(plan_of({0, 1}));
    desk.start();
    desk.sync("w1", 2, {}, {}, 1, "unfit:docker");
    desk.sync("w2", 2, {}, {}, 1, "unfit:bubblewrap");  // which the task does not need
    const std::string told = desk.core.explain(RunId(1));
    CHECK_MESSAGE(
        told.starts_with("it waits for a free worker with Docker: of 2 here none has that; w1 does "
                         "not offer Docker, which does not isolate there (proctor-worker selftest "
                         "says what to do); start one"),
        told);
  }

  TEST_CASE("who waits for a worker whose disk is full is told whose") {
    Desk desk(plan_of({0, 1}));
    desk.start();
    desk.sync("w1", 2, {}, {}, 1, "full:disk");
    const std::string told = desk.core.explain(RunId(1));
    CHECK_MESSAGE(
        told.starts_with("it waits for a free worker with Docker: of 1 here it has none; the disk "
                         "of w1 is full: free space there, and it goes on; start one"),
        told);
    CHECK(desk.core.waiting_for_workers().ends_with(
        "for a worker with Docker, for the disk of w1 is full: free space there"));
  }

  TEST_CASE("who waits for a worker is told which one, since when and until when") {
    SchedulerSettings s = settings();
    s.retries.quarantine_after = 1;
    s.retries.quarantine = Millis(60'000);
    s.lease = Millis(30'000);
    Desk desk(plan_of({0, 0}), s);
    desk.now.wall = WallTime(1'000'000);
    desk.start();
    const auto told = [&] { return desk.core.explain(RunId(1)); };
    const auto holds = [&](std::string_view part) {
      return told().find(part) != std::string::npos;
    };
    CHECK_MESSAGE(holds("none is here, and none has ever joined"), told());
    CHECK_MESSAGE(holds("since 1970-01-01T00:16:40"), told());
    CHECK_MESSAGE(holds("proctor resume --workers"), told());

    desk.now.wall = WallTime(1'060'000);
    desk.sync("w", 1);
    CHECK(told() == "it waits for a free worker with nothing special");  // it is busy
    desk.feed(WorkerDisconnected{WorkerId("w"), BootId(1)});
    CHECK_MESSAGE(holds("the only one, w is suspect since 1970-01-01T00:17:40"), told());
    CHECK_MESSAGE(holds("given up at 1970-01-01T00:18:10"), told());
    CHECK(desk.core.stands_until(0) == WallTime(1'090'000));

    desk.sync("w", 1, {attempt_of(0)});
    desk.result("w", attempt_of(0), 1, Termination::kInfrastructure);
    CHECK_MESSAGE(holds("the only one, w is quarantined since 1970-01-01T00:17:40"), told());
    CHECK_MESSAGE(holds("until 1970-01-01T00:18:40"), told());
    CHECK_MESSAGE(holds("proctor release CAMPAIGN w"), told());
    CHECK(desk.core.stands_until(0) == WallTime(1'120'000));

    desk.feed(WorkerLeft{WorkerId("w"), BootId(1), {}});
    CHECK_MESSAGE(holds("none is here, and w is gone since 1970-01-01T00:17:40"), told());
  }

  TEST_CASE("runs that nobody here can do are counted until somebody can") {
    Desk desk(plan_of({1, 1, 1}));
    desk.start();
    CHECK(desk.core.waiting_for_workers().empty());  // nobody is here: the lack of workers is told
    desk.sync("w", 2);
    CHECK(desk.core.waiting_for_workers() == "3 runs wait for a worker with Docker");
    desk.sync("d", 1, {}, {}, 1, "sandbox:docker");
    CHECK(desk.assigned == Attempts{attempt_of(0)});
    CHECK(desk.core.waiting_for_workers().empty());
    desk.sync("d", 1, {attempt_of(0)});  // its engine went away
    CHECK(desk.core.waiting_for_workers() == "2 runs wait for a worker with Docker");
    desk.result("d", attempt_of(0), 10, Termination::kInfrastructure);
    CHECK(desk.core.waiting_for_workers() == "3 runs wait for a worker with Docker");
    CHECK(desk.assigned.size() == 1);  // and it is not tried where it cannot be done
    desk.sync("d", 2, {}, {}, 1, "sandbox:docker");
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(0, 2), attempt_of(1)});
  }

  TEST_CASE("what a worker gives back costs nothing and is tried elsewhere") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.assigned == Attempts{attempt_of(0)});
    desk.decline("other", attempt_of(0), 0);  // it is not the one that has it
    CHECK(desk.facts<AttemptVoided>().empty());
    desk.decline("w", attempt_of(0), 0);
    REQUIRE(desk.facts<AttemptVoided>().size() == 1);
    CHECK(desk.facts<AttemptVoided>()[0].reason == "worker w gave it back");
    CHECK(desk.facts<AttemptLost>().empty());
    CHECK(desk.core.balances()[0].spent == micro(0));
    CHECK(desk.core.balances()[0].reserved == micro(0));
    CHECK(desk.core.roster().at(0).failures == 0);  // it is leaving: that says nothing of its host
    desk.sync("v", 1);
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(0, 2)});
  }

  TEST_CASE("what is granted for a slot that was given to another campaign is voided") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    wire::Sync fewer;
    fewer.worker = WorkerId("w1");
    fewer.boot = BootId(1);
    fewer.epoch_seen = Epoch(2);
    fewer.slots = 1;
    fewer.features = {"sandbox:null"};
    desk.while_granting = {WorkerSynced{fewer}};
    desk.sync("w1", 2);
    CHECK(desk.assigned.size() == 1);
    REQUIRE(desk.facts<AttemptVoided>().size() == 1);
    CHECK(desk.facts<AttemptVoided>()[0].reason == "its worker has no slot for it any more");
    CHECK(desk.core.balances()[0].reserved == micro(10));
    desk.sync("w1", 3, desk.assigned);  // and it is tried again
    CHECK(desk.assigned.size() == 3);
  }

  TEST_CASE("a worker is told how many runs it could have besides") {
    Desk desk(plan_of({0, 0, 0, 0}));
    desk.start();
    desk.sync("w1", 1);
    REQUIRE(desk.assigned.size() == 1);
    desk.sync("w1", 1, desk.assigned);
    CHECK(desk.reply.demand == 3);
    CHECK(desk.act(OperatorActKind::kPause).verdict == OperatorAnswer::Verdict::kDone);
    desk.sync("w1", 1, desk.assigned);
    CHECK(desk.reply.demand == 0);
  }

  TEST_CASE("what has begun cannot be given back") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 1, {attempt_of(0)});  // its sandbox has started
    desk.decline("w", attempt_of(0), 1);
    CHECK(desk.facts<AttemptVoided>().empty());
    REQUIRE(desk.facts<AttemptLost>().size() == 1);  // it no longer has it: charged
    CHECK(desk.core.balances()[0].spent == micro(10));
  }

  TEST_CASE("a worker that says what it lacks is not set aside and is offered no such run again") {
    PlanView plan = plan_of({0, 0, 0, 0});
    plan.things = {"secret:KEY"};
    plan.methods = {{capability::thing_bit(0)}, {}};
    plan.runs[3].method = 1;
    Desk desk(plan);
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.assigned == std::vector<AttemptId>{attempt_of(0)});
    desk.decline("w", attempt_of(0), 1, "lacks:secret:KEY");
    CHECK(desk.core.roster().at(0).failures == 0);
    CHECK(desk.assigned.back() == attempt_of(3));  // the one that needs no secret
    CHECK(desk.core.why(RunId(0)).text.find("secret KEY") != std::string::npos);
    desk.sync("other", 1);
    CHECK(desk.assigned.back() == attempt_of(0, 2));
    CHECK(desk.ledger.balance(kGlobal).reserved == micro(20));
  }

  TEST_CASE("a worker that has room and gives back what it is given is set aside after a while") {
    Desk desk(plan_of({0}));
    desk.start();
    desk.sync("w", 1);
    for (std::uint32_t no = 1; desk.core.roster().at(0).takes_new(); ++no) {
      REQUIRE(no < 20);
      REQUIRE(desk.assigned.back() == attempt_of(0, no));
      desk.decline("w", attempt_of(0, no), 1);
    }
    CHECK(desk.core.roster().at(0).failures == settings().retries.quarantine_after);
    CHECK(desk.core.balances()[0].spent == micro(0));
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kQueued);
  }

  TEST_CASE("a goodbye loses what had begun and nothing else") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.sync("w", 3);
    REQUIRE(desk.assigned.size() == 3);
    desk.sync("w", 0, {attempt_of(0)});
    // The first ran and is nowhere, the second never came, the third's result is in the spool.
    desk.feed(WorkerLeft{WorkerId("w"), BootId(1), std::set<AttemptId>{attempt_of(2)}});
    REQUIRE(desk.facts<AttemptVoided>().size() == 1);
    CHECK(desk.facts<AttemptVoided>()[0].attempt == attempt_of(1));
    CHECK(desk.facts<AttemptLost>().size() == 2);
    CHECK(desk.core.balances()[0].spent == micro(20));
  }

  TEST_CASE("a queued run costs at most 64 bytes of the plan and the scheduler together") {
    constexpr std::size_t kRuns = 100'000;
    static_assert(sizeof(PlanView::Run) == 8);
    static_assert(sizeof(RunPhase) == 1);
    const std::size_t before = allocated();
    PlanView plan = plan_of({});
    plan.runs.reserve(kRuns);
    for (std::size_t i = 0; i < kRuns; ++i) plan.runs.push_back({1, 0});
    Scheduler core(std::move(plan), settings(), Epoch(1));
    static_cast<void>(core.start({}));
    const std::size_t bytes = allocated() - before;
    if (bytes == 0) {
      MESSAGE("not measured: this build's allocator (a sanitizer's) has no mallinfo2");
      return;
    }
    MESSAGE("bytes per queued run: " << bytes / kRuns);
    CHECK(8 * kRuns < bytes);
    CHECK(bytes <= 64 * kRuns);
  }

  TEST_CASE("a worker whose connection is closed gets nothing new and keeps what it runs") {
    Desk desk(plan_of({0, 0, 0}));
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 2, {attempt_of(0)});
    REQUIRE(desk.assigned == std::vector{attempt_of(0), attempt_of(1)});
    desk.feed(WorkerDisconnected{WorkerId("w"), BootId(9)});  // another life's connection
    CHECK_FALSE(desk.core.roster().at(0).suspect);
    desk.feed(WorkerDisconnected{WorkerId("w"), BootId(1)});
    CHECK(standing(desk.core.roster().at(0)) == "suspect");
    desk.result("w", attempt_of(0), 1);
    CHECK(desk.assigned.size() == 2);
    CHECK(desk.core.phase(RunId(1)) == RunPhase::kActive);
    desk.sync("w", 2, {attempt_of(1)});
    CHECK(desk.assigned.size() == 3);
    CHECK(desk.facts<AttemptLost>().empty());
  }

  TEST_CASE("what a worker loses is its own however many others there are") {
    Desk desk(plan_of({0, 0, 0, 0}));
    desk.start();
    desk.sync("a", 2);
    desk.sync("b", 2);
    desk.sync("a", 2, {attempt_of(0), attempt_of(1)});
    desk.sync("b", 2, {attempt_of(2), attempt_of(3)});
    desk.feed(WorkerLeft{WorkerId("a"), BootId(1)});
    std::vector<AttemptId> lost;
    for (const AttemptLost& f : desk.facts<AttemptLost>()) lost.push_back(f.attempt);
    CHECK(lost == std::vector{attempt_of(0), attempt_of(1)});
  }
}
