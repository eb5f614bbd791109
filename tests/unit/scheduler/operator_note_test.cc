#include "coordinator/core/notes.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
std::vector<RunId> runs(const std::vector<std::uint32_t>& numbers) {
  std::vector<RunId> out;
  for (const std::uint32_t n : numbers) out.emplace_back(n);
  return out;
}
}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("runs are told as ranges and read back") {
    CHECK(ranges_of({}).empty());
    CHECK(ranges_of(runs({0, 1, 2, 5, 7, 8})) == "0-2 5 7-8");
    CHECK(runs_of("0-2 5 7-8").value() == runs({0, 1, 2, 5, 7, 8}));
    CHECK(runs_of("").value().empty());
    for (const char* wrong : {"x", "1-", "-1", "3-2", "2 1", "1 1", "1,2", " 1", "0-4294967295"})
      CHECK_FALSE(runs_of(wrong).ok());
  }

  TEST_CASE("every act comes back from its note") {
    for (std::uint8_t k = 0; k <= static_cast<std::uint8_t>(OperatorActKind::kRaise); ++k) {
      OperatorFact fact;
      fact.act.kind = static_cast<OperatorActKind>(k);
      fact.act.runs = runs({3, 4});
      fact.act.selected = "method noop";
      fact.act.worker = WorkerId("w1");
      fact.act.now = fact.act.kind == OperatorActKind::kPause;
      if (fact.act.kind == OperatorActKind::kPause) fact.act.mode = "safety.os_risk";
      fact.act.by = "ada";
      fact.act.reason = "a \"reason\"";
      fact.act.at = WallTime(17);
      fact.forgiven = {{RunId(3), AttemptNo(2)}, {RunId(4), AttemptNo(1)}};
      if (fact.act.kind == OperatorActKind::kKick) fact.boot = BootId(UINT64_MAX);
      if (fact.act.kind == OperatorActKind::kRaise) {
        fact.act.scope = ScopeId(2);
        fact.act.to = MicroUsd::from_micros(5);
      }
      const Note note = note_of(fact);
      CAPTURE(note.detail);
      const auto back = fact_of<OperatorFact>(note);
      REQUIRE(back.ok());
      CHECK(back->act.kind == fact.act.kind);
      CHECK(back->act.runs == fact.act.runs);
      CHECK(back->act.worker == fact.act.worker);
      CHECK(back->act.now == fact.act.now);
      CHECK(back->act.mode == fact.act.mode);
      CHECK(back->act.by == "ada");
      CHECK(back->act.reason == fact.act.reason);
      CHECK(back->act.scope == fact.act.scope);
      CHECK(back->act.to == fact.act.to);
      CHECK(back->forgiven == fact.forgiven);
      CHECK(back->boot == fact.boot);
    }
  }

  TEST_CASE("notes are the bytes that older journals have") {
    const AttemptId attempt{RunId(3), AttemptNo(2)};
    const auto usd = [](std::int64_t micros) { return MicroUsd::from_micros(micros); };
    OperatorFact act;
    act.act.by = "ada";
    CHECK(note_of(act).detail == R"({"act":"pause","by":"ada","now":false,"reason":""})");
    act.act.kind = OperatorActKind::kRequeue;
    act.act.runs = runs({0, 1, 2, 7});
    act.act.invalid = true;
    act.forgiven = {attempt, {RunId(4), AttemptNo(1)}};
    CHECK(note_of(act).detail ==
          R"({"act":"requeue","by":"ada","forgiven":"3.2 4.1","invalid":true,"reason":"",)"
          R"("runs":"0-2 7"})");
    act = {};
    act.act.kind = OperatorActKind::kKick;
    act.act.worker = WorkerId("w");
    act.boot = BootId(UINT64_MAX);
    CHECK(note_of(act).detail ==
          R"({"act":"kick","boot":"18446744073709551615","by":"","reason":"","worker":"w"})");
    act = {};
    act.act.kind = OperatorActKind::kRaise;
    act.act.reason = "\xff";
    act.act.scope = ScopeId(2);
    act.act.to = usd(5);
    CHECK(note_of(act).detail ==
          "{\"act\":\"raise\",\"by\":\"\",\"reason\":\"\xef\xbf\xbd\",\"scope\":2,\"to\":5}");
    const BudgetRaised raise{ScopeId(0), "global", usd(1), usd(2), "why", "ada", WallTime(1)};
    CHECK(note_of(raise).detail ==
          R"({"by":"ada","from":1,"name":"global","reason":"why","scope":0,"to":2})");
    const BudgetAlert alert{ScopeId(0), "global", 80, usd(8), usd(10), WallTime(1)};
    CHECK(note_of(alert).detail ==
          R"({"cap":10,"name":"global","percent":80,"scope":0,"spent":8})");
    const RunDominates dominates{attempt, usd(9), usd(10), 0, true, WallTime(1)};
    CHECK(note_of(dominates).detail == R"({"ask":10,"cost":9,"milestones":0,"stop":true})");
    CHECK(note_of(dominates).run == RunId(3));
    CHECK(note_of(dominates).attempt == AttemptNo(2));
    const LossJudged loss{attempt, LossJudged::Verdict::kExcused, WorkerId("w"), BootId(1), {}};
    CHECK(note_of(loss).detail == R"({"boot":"1","verdict":"excused","worker":"w"})");
    FaultFact fault{
        {FaultSubject::Kind::kMethod, 1}, FaultFact::Verdict::kWorked, attempt, WorkerId("w")};
    CHECK(note_of(fault).detail == R"({"index":1,"of":"method","verdict":"worked","worker":"w"})");
    fault.verdict = FaultFact::Verdict::kParked;
    CHECK(note_of(fault).detail ==
          R"({"cause":"","index":1,"of":"method","verdict":"parked","why":"","worker":"w"})");
    WorkerJudged judged{
        WorkerId("w"), WorkerJudged::Verdict::kReleased, 2, Millis(0), "it fell", {}};
    CHECK(note_of(judged).detail == R"({"worker":"w"})");
    judged.verdict = WorkerJudged::Verdict::kQuarantined;
    CHECK(note_of(judged).detail == R"({"for_ms":0,"nth":2,"reason":"it fell","worker":"w"})");
    CHECK(note_of(RunEscalated{RunId(3), "", {}}).detail == R"({"reason":""})");
    CHECK(note_of(StageOpened{"one", Digest(), {"ada"}, {}}).detail ==
          R"({"by":["ada"],"digest":")" + Digest().hex() + R"(","stage":"one"})");
    SharedMember member;
    member.id = "c";
    member.ceiling = member.spent = usd(7);
    CHECK(note_of(member, WallTime(1)).detail ==
          R"({"ceiling":7,"member":"c","name":"","spent":0,"state":"known"})");
    member.state = SharedMember::State::kLeft;
    CHECK(note_of(member, WallTime(1)).detail ==
          R"({"ceiling":7,"member":"c","name":"","spent":7,"state":"left"})");
    CHECK(note_of(SharedLimit{usd(7)}, WallTime(1)).detail == R"({"limit":7})");
  }

  TEST_CASE("a damaged note is refused") {
    for (const char* detail : {"", "[]", "{}", R"({"act":"dance","by":"a","reason":""})",
                               R"({"act":"pause","by":1,"reason":""})",
                               R"({"act":"kick","by":"a","boot":"x","reason":""})",
                               R"({"act":"cancel","by":"a","reason":"","runs":"2-1"})"})
      CHECK_FALSE(fact_of<OperatorFact>(Note{{}, OperatorFact::kNote, {}, {}, detail}).ok());
    for (const char* detail : {"", "{}", R"({"boot":"1","verdict":"guilty","worker":"w"})",
                               R"({"boot":"x","verdict":"blamed","worker":"w"})"})
      CHECK_FALSE(
          fact_of<LossJudged>(Note{{}, LossJudged::kNote, RunId(1), AttemptNo(1), detail}).ok());
  }
}
