// Failures that are not the agent's: waits, poison, workers that stand back.
#include <doctest/doctest.h>

#include "common/wire/messages.h"
#include "coordinator/core/roster.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;
using Attempts = std::vector<AttemptId>;

namespace {
SchedulerSettings patient() {
  SchedulerSettings s = settings();
  s.infrastructure_retries = 100;
  s.retries.quarantine_after = 1000;
  return s;
}
// The worker dies under what it says it runs, and is back in another life.
void die(Desk& desk, const char* worker, std::uint32_t slots, const Attempts& running,
         std::uint64_t boot) {
  desk.sync(worker, slots, running, {}, boot);
  desk.sync(worker, slots, {}, {}, boot + 1);
}
std::size_t losses(const Desk& desk, LossJudged::Verdict verdict) {
  std::size_t n = 0;
  for (const Note& note : desk.facts<Note>())
    if (note.kind == LossJudged::kNote && fact_of<LossJudged>(note).value().verdict == verdict) ++n;
  return n;
}
void overloaded(Desk& desk, const char* worker, AttemptId id) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = id;
  r.termination = Termination::kInfrastructure;
  r.infrastructure = r.overload = true;
  desk.feed(ResultReceived{WorkerId(worker), r});
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a failed attempt is made again after a wait that the run tells") {
    SchedulerSettings s = settings();
    s.retries.backoff = Millis(4'000);
    Desk desk(plan_of({0}), s);
    desk.start();
    desk.sync("w", 1);
    desk.result("w", attempt_of(0), 1, Termination::kInfrastructure);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kBackoff);
    CHECK(desk.core.counts().queued == 1);
    CHECK(desk.core.why(RunId(0)).code == "backoff");
    CHECK_FALSE(desk.ended.has_value());
    desk.now.mono += Millis(1'999);
    desk.feed(TimerFired{});
    CHECK(desk.assigned.size() == 1);
    desk.now.mono += Millis(2'002);
    desk.feed(TimerFired{});
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(0, 2)});
  }

  TEST_CASE("overload has a limit of its own and is no mark against the worker") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    s.retries.overload = 4;
    s.retries.quarantine_after = 2;
    Desk desk(plan_of({0}), s);
    desk.start();
    desk.sync("w", 1);
    for (std::uint32_t no = 1; no <= 4; ++no) overloaded(desk, "w", attempt_of(0, no));
    CHECK(desk.assigned.back() == attempt_of(0, 5));
    CHECK(desk.core.roster().at(0).failures == 0);
    overloaded(desk, "w", attempt_of(0, 5));
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a run that kills its worker three times is convicted and its neighbour is not") {
    Desk desk(plan_of({0, 0}), patient());
    desk.start();
    desk.sync("w", 2);
    die(desk, "w", 2, {attempt_of(0), attempt_of(1)}, 1);
    die(desk, "w", 2, {attempt_of(0, 2), attempt_of(1, 2)}, 2);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 4);
    // Both are suspects: one has the worker, the other waits until it is alone there.
    CHECK(desk.assigned.back() == attempt_of(0, 3));
    CHECK(desk.core.why(RunId(1)).code == "alone");
    die(desk, "w", 2, {attempt_of(0, 3)}, 3);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    CHECK(desk.facts<RunEnded>().back().outcome == RunOutcome::kInvalid);
    CHECK(desk.facts<AttemptLost>().back().reason ==
          "worker w was restarted; poison: its worker died 3 times under it (w, w, w), the last "
          "time with nothing else there");
    CHECK(desk.assigned.back() == attempt_of(1, 3));
    desk.result("w", attempt_of(1, 3), 4);
    CHECK(desk.core.counts().ended[0] == 1);
    CHECK(desk.ended == true);
  }

  TEST_CASE("a convicted run that is asked for again has a worker to itself, in a later life too") {
    Desk desk(plan_of({0, 1}), patient());  // the other one waits for Docker
    desk.start();
    desk.sync("w", 1);
    for (std::uint64_t no = 1; no <= 3; ++no)
      die(desk, "w", 1, {attempt_of(0, static_cast<std::uint32_t>(no))}, no);
    REQUIRE(desk.core.phase(RunId(0)) == RunPhase::kEnded);
    Desk next(plan_of({0, 1}), patient());
    next.core.restore_fact(RunEnded{RunId(0), attempt_of(0, 3), RunOutcome::kInvalid});
    for (const Note& n : desk.standing()) REQUIRE(next.core.restore_note(n).ok());
    for (std::uint32_t no = 1; no <= 3; ++no) {
      RestoredAttempt lost;
      lost.attempt = attempt_of(0, no);
      lost.state = AttemptState::kLost;
      lost.settled = true;
      next.restore(lost, false);
    }
    next.start();
    for (Desk* d : {&desk, &next}) {
      OperatorAct again;
      again.kind = OperatorActKind::kRequeue;
      again.invalid = true;
      again.runs = {RunId(0)};
      REQUIRE(d->act(again).verdict == OperatorAnswer::Verdict::kDone);
      d->sync("w", 2, {}, {}, 4);
      REQUIRE(d->assigned.back() == attempt_of(0, 4));
      CHECK(d->core.roster().at(0).kept);
      die(*d, "w", 2, {attempt_of(0, 4)}, 4);
      CHECK(d->core.phase(RunId(0)) == RunPhase::kEnded);  // one more death is enough
    }
  }

  TEST_CASE("many workers Sync less often, and none is a suspect for keeping to that") {
    CHECK(sync_interval_of(0) == limits::kSyncInterval);
    CHECK(sync_interval_of(400) == limits::kSyncInterval);
    CHECK(sync_interval_of(1'000) == Millis(5'000));
    CHECK(sync_interval_of(5'000) == Millis(5'000));
    CHECK(sync_interval_of(10'000) == Millis(10'000));
    CHECK(sync_interval_of(1'000'000) == Millis(30'000));
    constexpr int kWorkers = 7'000;
    Desk desk(plan_of({0}), patient());
    desk.start();
    for (int w = 0; w < kWorkers; ++w) desk.sync(("w" + std::to_string(w)).c_str(), 1);
    const auto suspects = [&] {
      std::size_t n = 0;
      for (WorkerIndex w = 0; w < desk.core.roster().size(); ++w)
        n += desk.core.roster().at(w).suspect ? 1 : 0;
      return n;
    };
    desk.now.mono += 3 * sync_interval_of(kWorkers) - Millis(1);
    desk.feed(TimerFired{});
    CHECK(suspects() == 0);
    desk.now.mono += Millis(1);
    desk.feed(TimerFired{});
    CHECK(suspects() == kWorkers);
  }

  TEST_CASE("what a killed worker had not begun costs nothing where its books are whole") {
    const std::string told = wire::books_feature(BootId(1));
    for (const bool whole : {true, false}) {
      CAPTURE(whole);
      Desk desk(plan_of({0, 0}), patient());
      desk.start();
      desk.sync("w", 2, {}, {}, 1);
      REQUIRE(desk.assigned.size() == 2);
      desk.sync("w", 2, {attempt_of(0)}, {}, 1);  // the other one's Assign is on its way
      desk.sync("w", 2, {}, {attempt_of(0)}, 2, whole ? told.c_str() : "sandbox:null");
      CHECK(desk.reply.resend == Attempts{attempt_of(0)});
      REQUIRE(desk.facts<AttemptVoided>().size() == (whole ? 1 : 0));
      CHECK(desk.facts<AttemptLost>().size() == (whole ? 0 : 1));
      if (!whole) continue;
      CHECK(desk.facts<AttemptVoided>()[0].attempt == attempt_of(1));
      CHECK(desk.facts<AttemptVoided>()[0].reason == "worker w was killed before it began");
      CHECK(desk.core.roster().at(0).failures == 1);  // else for ever, where it is what kills it
      CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 0);
    }
  }

  TEST_CASE("what had begun and is in no book is charged at its ceiling whatever a worker says") {
    const std::string told = wire::books_feature(BootId(1));
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1, {}, {}, 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 1);
    desk.sync("w", 1, {}, {}, 2, told.c_str());
    CHECK(desk.facts<AttemptVoided>().empty());
    CHECK(desk.facts<AttemptLost>().size() == 1);
    // Of another life than the one that it was given to: says nothing.
    Desk other(plan_of({0}), patient());
    other.start();
    other.sync("w", 1, {}, {}, 3);
    other.sync("w", 1, {}, {}, 2, told.c_str());
    CHECK(other.facts<AttemptVoided>().empty());
    CHECK(other.facts<AttemptLost>().size() == 1);
  }

  TEST_CASE("a run goes on with its worker's next life once, and that is held against it") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1, {}, {}, 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 1);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 0);
    desk.sync("w", 1, {attempt_of(0)}, {}, 2);
    desk.sync("w", 1, {attempt_of(0)}, {}, 2);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 1);
    CHECK(desk.facts<AttemptLost>().empty());
    CHECK(desk.reply.cancel.empty());
    desk.sync("w", 1, {attempt_of(0)}, {}, 3);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 2);
    REQUIRE(desk.facts<AttemptLost>().size() == 1);
    CHECK(desk.facts<AttemptLost>()[0].reason == "worker w was restarted");
    CHECK(desk.reply.cancel == Attempts{attempt_of(0)});
    CHECK(desk.assigned == Attempts{attempt_of(0), attempt_of(0, 2)});
    CHECK(desk.core.roster().at(0).kept);  // a suspect has the worker for itself
  }

  TEST_CASE("a run that ends well after it outlived its worker is cleared") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1, {}, {}, 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 1);
    desk.sync("w", 1, {attempt_of(0)}, {}, 2);
    overloaded(desk, "w", attempt_of(0));
    REQUIRE(desk.assigned.back() == attempt_of(0, 2));
    desk.sync("w", 1, {attempt_of(0, 2)}, {}, 2);
    desk.sync("w", 1, {attempt_of(0, 2)}, {}, 3);  // as if it were the first time
    CHECK(desk.facts<AttemptLost>().empty());
  }

  TEST_CASE("nobody joins a suspect and it waits for a worker to be empty") {
    Desk desk(plan_of({0, 0}), patient());
    desk.start();
    desk.sync("w", 2);
    die(desk, "w", 2, {attempt_of(0)}, 1);  // nothing had started of the other
    die(desk, "w", 2, {attempt_of(0, 2)}, 2);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 2);
    CHECK(desk.assigned.back() == attempt_of(0, 3));
    CHECK(desk.core.roster().at(0).free() == 0);
    desk.result("w", attempt_of(0, 3), 4);
    CHECK(desk.assigned.back() == attempt_of(1, 3));
  }

  TEST_CASE("counters of worker losses outlive the coordinator") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1);
    die(desk, "w", 1, {attempt_of(0)}, 1);
    die(desk, "w", 1, {attempt_of(0, 2)}, 2);
    Desk next(plan_of({0}), patient());
    for (const Note& n : desk.standing()) REQUIRE(next.core.restore_note(n).ok());
    for (std::uint32_t no = 1; no <= 2; ++no) {
      RestoredAttempt lost;
      lost.attempt = attempt_of(0, no);
      lost.state = AttemptState::kLost;
      lost.settled = true;
      next.restore(lost, false);
    }
    next.start();
    next.sync("w", 2, {}, {}, 3);
    CHECK(next.assigned == Attempts{attempt_of(0, 3)});
    die(next, "w", 2, {attempt_of(0, 3)}, 3);
    CHECK(next.core.phase(RunId(0)) == RunPhase::kEnded);
  }

  TEST_CASE("silence is no proof: who is heard of again withdraws the blame") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 1, {attempt_of(0)});
    desk.now.mono += limits::kLease;
    desk.feed(TimerFired{});
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 1);
    desk.sync("w", 1, {attempt_of(0)});
    CHECK(losses(desk, LossJudged::Verdict::kWithdrawn) == 1);
    CHECK(desk.core.phase(RunId(0)) == RunPhase::kActive);
  }

  TEST_CASE("what had not begun and what a worker left behind is not blamed") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1);
    desk.sync("w", 1, {}, {}, 2);  // it never said that it runs
    desk.sync("w", 1, {attempt_of(0, 2)}, {}, 2);
    desk.sync("w", 1, {}, {}, 2);  // the same life no longer has it
    CHECK(desk.facts<AttemptLost>().size() == 2);
    CHECK(losses(desk, LossJudged::Verdict::kBlamed) == 0);
  }

  TEST_CASE("the late word of a worker's earlier life changes nothing") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1, {}, {}, 1);
    desk.sync("w", 1, {}, {}, 2);
    const std::size_t lost = desk.facts<AttemptLost>().size();
    desk.sync("w", 1, {}, {}, 1);
    CHECK(desk.facts<AttemptLost>().size() == lost);
    CHECK(desk.core.roster().at(0).boot == BootId(2));
  }

  TEST_CASE("a late word that comes first shuts the living worker out for no longer than a lease") {
    Desk desk(plan_of({0}), patient());
    desk.start();
    desk.sync("w", 1, {}, {}, 2);
    desk.sync("w", 1, {}, {}, 1);  // late: a life of ours that has just begun cannot know
    desk.sync("w", 1, {}, {}, 2);
    CHECK(desk.core.roster().at(0).boot == BootId(1));
    desk.now.mono += patient().lease;
    desk.feed(TimerFired{});
    CHECK(!desk.core.roster().at(0).present);
    desk.sync("w", 1, {}, {}, 2);
    CHECK(desk.core.roster().at(0).boot == BootId(2));
    CHECK(desk.core.roster().at(0).takes_new());
  }

  TEST_CASE("a worker with three failures in a row stands back and is tried again") {
    SchedulerSettings s = patient();
    s.retries.quarantine_after = 3;
    s.retries.quarantine = Millis(10'000);
    s.retries.quarantine_max = Millis(15'000);
    Desk desk(plan_of({0}), s);
    desk.start();
    desk.sync("w", 1);
    for (std::uint32_t no = 1; no <= 3; ++no)
      desk.result("w", attempt_of(0, no), 1, Termination::kInfrastructure);
    CHECK(desk.assigned.size() == 3);
    CHECK(standing(desk.core.roster().at(0)) == "quarantined: 3 infrastructure failures in a row");
    desk.now.mono += Millis(9'999);
    desk.feed(TimerFired{});
    CHECK(desk.assigned.size() == 3);
    desk.now.mono += Millis(1);
    desk.sync("w", 1);
    desk.feed(TimerFired{});
    CHECK(desk.assigned.back() == attempt_of(0, 4));
    desk.result("w", attempt_of(0, 4), 1, Termination::kInfrastructure);  // one is enough now
    CHECK(desk.core.roster().at(0).back_at == desk.now.mono + Millis(15'000));
    OperatorAct release;
    release.kind = OperatorActKind::kRelease;
    release.worker = WorkerId("w");
    CHECK(desk.act(release).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.assigned.back() == attempt_of(0, 5));
    desk.result("w", attempt_of(0, 5), 1);
    CHECK(desk.core.roster().at(0).quarantines == 0);
  }

  TEST_CASE("a loss that was excused stays excused in the next life when its late result comes") {
    SchedulerSettings s = settings();
    s.infrastructure_retries = 0;
    Desk next(plan_of({0}), s);
    RestoredAttempt lost;
    lost.attempt = attempt_of(0);
    lost.state = AttemptState::kLost;
    lost.worker = WorkerId("w");
    lost.has_result = lost.settled = true;
    for (const auto verdict : {LossJudged::Verdict::kBlamed, LossJudged::Verdict::kExcused,
                               LossJudged::Verdict::kWithdrawn})
      REQUIRE(next.core
                  .restore_note(note_of(
                      LossJudged{attempt_of(0), verdict, WorkerId("w"), BootId(1), WallTime(1)}))
                  .ok());
    next.restore(lost, false);
    next.start();
    next.sync("w", 1);
    REQUIRE(next.assigned == Attempts{attempt_of(0, 2)});
    next.result("w", attempt_of(0, 2), 1);
    CHECK(next.core.counts().ended[0] == 1);
  }

  TEST_CASE("what a worker was killed under before it said so is not held against its next life") {
    SchedulerSettings s = patient();
    s.retries.quarantine_after = 3;
    Desk desk(plan_of({0, 0, 0}), s);
    desk.start();
    desk.sync("w", 3);
    const Attempts begun = desk.assigned;
    REQUIRE(begun.size() == 3);
    desk.sync("w", 3, {}, begun, 2);
    for (const AttemptId& id : begun) desk.result("w", id, 1, Termination::kInfrastructure);
    CHECK(desk.core.roster().at(0).failures == 0);
    CHECK(desk.core.roster().at(0).quarantine == WorkerState::Quarantine::kNone);
  }
}
