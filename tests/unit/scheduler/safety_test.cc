// When critical failure modes of runs stop a campaign, and what a person's word about it undoes.
#include <doctest/doctest.h>

#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;
using Kind = OperatorActKind;
using Words = std::vector<std::string>;

namespace {
constexpr const char* kOsRisk = "safety.os_risk";
constexpr const char* kEscape = "safety.sandbox_escape";

SchedulerSettings watched() {
  SchedulerSettings s = settings();
  s.stop_after = 2;
  s.critical = {kOsRisk, kEscape};
  return s;
}
// Runs of two tasks in turn, all of them under way.
PlanView two_tasks() {
  return plan_of({0, 1, 0, 1, 0, 1, 0, 1});
}
void begin(Desk& desk) {
  desk.start();
  desk.sync("w", 8, {}, {}, 1, "sandbox:docker");
}
void end(Desk& desk, std::uint32_t run, const std::string& tags, std::uint64_t bytes = 1) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = attempt_of(run);
  r.outcome = RunOutcome::kFailure;
  r.facts.tags = tags;
  r.archive_bytes = bytes;
  desk.feed(ResultReceived{WorkerId("w"), r});
}
// The modes of all pauses that were noted, "" of a person's.
Words stops(const Desk& desk) {
  Words out;
  for (const Note& n : desk.facts<Note>()) {
    if (n.kind != OperatorFact::kNote) continue;
    const OperatorAct act = fact_of<OperatorFact>(n).value().act;
    if (act.kind == Kind::kPause) out.push_back(act.mode);
  }
  return out;
}
std::map<std::string, std::string> safety_of(const Desk& desk) {
  auto out = desk.core.durable();
  std::erase_if(out, [](const auto& entry) { return !entry.first.starts_with("safety "); });
  return out;
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("the same critical mode in runs of two tasks stops the campaign") {
    Desk desk(two_tasks(), watched());
    begin(desk);
    REQUIRE(desk.assigned.size() == 8);
    end(desk, 0, "policy.protected_path,safety.os_risk");
    end(desk, 1, "safety.sandbox_escape,policy.protected_path");
    end(desk, 2, "safety.os_risk");  // the same task again
    CHECK(stops(desk).empty());
    CHECK_FALSE(desk.core.paused());
    end(desk, 3, "safety.os_risk");
    CHECK(stops(desk) == Words{kOsRisk});
    CHECK(desk.core.paused());
    CHECK_FALSE(desk.core.suspended());
    CHECK_FALSE(desk.core.paused_why().empty());
    CHECK(desk.heard.size() == 1);
    end(desk, 5, "safety.os_risk");  // it is stopped already
    CHECK(stops(desk) == Words{kOsRisk});
  }

  TEST_CASE("who goes on has decided on what it was stopped for, and the rest goes on counting") {
    Desk desk(two_tasks(), watched());
    begin(desk);
    end(desk, 0, kOsRisk);
    end(desk, 1, "safety.os_risk,safety.sandbox_escape");
    REQUIRE(stops(desk) == Words{kOsRisk});
    CHECK(desk.act(Kind::kUnpause).verdict == OperatorAnswer::Verdict::kDone);
    CHECK_FALSE(desk.core.paused());
    CHECK(desk.core.paused_why().empty());
    end(desk, 2, kOsRisk);  // counts from the beginning
    CHECK_FALSE(desk.core.paused());
    end(desk, 4, kEscape);  // the second task
    CHECK(stops(desk) == Words{kOsRisk, kEscape});
    desk.act(Kind::kUnpause);
    end(desk, 3, kOsRisk);
    CHECK(stops(desk) == Words{kOsRisk, kEscape, kOsRisk});
  }

  TEST_CASE("a person's pause decides on no mode, and hides none that is due") {
    Desk desk(two_tasks(), watched());
    begin(desk);
    end(desk, 0, kOsRisk);
    desk.act(Kind::kPause);
    CHECK(desk.core.paused_why().empty());
    desk.act(Kind::kUnpause);
    desk.act(Kind::kPause);
    end(desk, 1, "safety.os_risk,safety.sandbox_escape");
    CHECK(stops(desk) == Words{"", "", kOsRisk});
    end(desk, 2, kEscape);
    CHECK(stops(desk) == Words{"", "", kOsRisk, kEscape});
    desk.act(Kind::kUnpause);
    CHECK(safety_of(desk).empty());  // both were told
    CHECK(desk.core.paused_why().empty());
  }

  TEST_CASE("what was seen of safety outlives the coordinator") {
    Desk desk(two_tasks(), watched());
    begin(desk);
    end(desk, 0, kOsRisk);
    end(desk, 1, "safety.os_risk,safety.sandbox_escape");
    Desk next(two_tasks(), watched());
    for (const Note& n : desk.standing()) REQUIRE(next.core.restore_note(n).ok());
    CHECK(next.core.paused());
    CHECK(next.core.paused_why() == desk.core.paused_why());
    CHECK(safety_of(next) == safety_of(desk));
    CHECK(safety_of(next).size() == 2);
    begin(next);
    CHECK(next.assigned.empty());
    next.act(Kind::kUnpause);
    CHECK(next.assigned.size() == 8);
    end(next, 0, kEscape);
    CHECK(stops(next) == Words{kEscape});
  }

  TEST_CASE("a late result of a lost attempt counts too, if its evidence came with it") {
    for (const bool evidence : {true, false}) {
      CAPTURE(evidence);
      Desk desk(two_tasks(), watched());
      begin(desk);
      end(desk, 0, kOsRisk);
      std::vector<AttemptId> others;
      for (std::uint32_t run = 1; run < 8; ++run) others.push_back(attempt_of(run));
      desk.sync("w", 8, others, {}, 1, "sandbox:docker");
      REQUIRE(desk.facts<AttemptLost>().empty());
      desk.feed(WorkerLeft{WorkerId("w"), BootId(1)});
      REQUIRE(desk.facts<AttemptLost>().size() == 7);
      desk.sync("w", 0, {}, {attempt_of(1)}, 2, "sandbox:docker");
      const std::size_t before = desk.facts<AttemptResult>().size();
      end(desk, 1, kOsRisk, evidence ? 1 : 0);
      CHECK(desk.facts<AttemptResult>().size() == before + 1);
      CHECK(stops(desk) == (evidence ? Words{kOsRisk} : Words{}));
      CHECK(desk.core.paused() == evidence);
    }
  }

  TEST_CASE("the name of an operator decides nothing: what runs did is the reason of a stop") {
    for (const bool enough : {true, false}) {
      CAPTURE(enough);
      Desk desk(two_tasks(), watched());
      begin(desk);
      end(desk, 0, kEscape);
      end(desk, 1, enough ? kEscape : kOsRisk);
      CHECK(desk.core.paused() == enough);
      const auto seen = safety_of(desk);
      const std::string why = desk.core.paused_why();
      CHECK(why.empty() != enough);
      OperatorFact pause;
      pause.act.by = "safety monitor";
      pause.act.reason = "safety.stop_after: safety.os_risk in runs of 2 tasks";
      Desk next(two_tasks(), watched());
      for (const Note& n : desk.standing())
        if (n.kind == SafetySeen::kNote) REQUIRE(next.core.restore_note(n).ok());
      CHECK(next.core.paused() == enough);  // the life before may not have noted its act
      REQUIRE(next.core.restore_note(note_of(pause)).ok());
      CHECK(next.core.paused());
      CHECK(next.core.paused_why() == why);
      CHECK(safety_of(next) == seen);
      begin(next);
      next.act(Kind::kUnpause);
      CHECK(next.core.paused_why().empty());
      CHECK(safety_of(next).size() == (enough ? 0 : 2));  // a person decided on what stopped it
    }
  }

  TEST_CASE("without a rule modes are neither counted nor noted") {
    Desk desk(two_tasks());
    begin(desk);
    for (std::uint32_t run = 0; run < 8; ++run) end(desk, run, kOsRisk);
    CHECK_FALSE(desk.core.paused());
    CHECK(safety_of(desk).empty());
    for (const Note& n : desk.facts<Note>()) CHECK(n.kind != SafetySeen::kNote);
  }
}
