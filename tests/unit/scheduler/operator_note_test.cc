#include "coordinator/core/notes.h"

#include <doctest/doctest.h>

#include "coordinator/core/failures.h"

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
      CHECK(back->act.by == "ada");
      CHECK(back->act.reason == fact.act.reason);
      CHECK(back->act.scope == fact.act.scope);
      CHECK(back->act.to == fact.act.to);
      CHECK(back->forgiven == fact.forgiven);
      CHECK(back->boot == fact.boot);
    }
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
