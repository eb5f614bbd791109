#include "coordinator/journal/legacy_text.h"

#include <doctest/doctest.h>

#include <string>

#include "coordinator/core/notes.h"

using namespace proctor;

namespace {
AttemptFacts read(const std::string& rationale) {
  return journal::facts_in(RunOutcome::kFailure, Termination::kCompleted, rationale);
}
}  // namespace

// Writers of before schema 6 are there as long as there are workers of before wire version 12.
TEST_SUITE("journal") {
  TEST_CASE("the facts that older rows say in words are read") {
    const std::string base = ended_by_itself("exit 3");
    AttemptFacts facts;
    facts.agent_exit = 3;
    CHECK(read(base) == facts);
    facts.patch = "three_way, conflict_markers";
    facts.violations = 3;
    facts.violated = "protected: a (copy).py";
    CHECK(read(base + patch_words({"three_way", "", {"a:1"}}) +
               violation_words(3, "protected: a (copy).py")) == facts);
    CHECK(read("") == AttemptFacts{});
    CHECK(read(could_not_start("exit 127") + " after 12 ms, without a change").agent_exit == 127);
    for (const std::string& other :
         {ended_by_itself("ended by signal 11"), ended_by_itself("exit 300"),
          ended_by_itself("exit "), std::string("exit 3"),
          std::string("the agent was stopped after 5 ms; its limit is 5 ms")})
      CHECK_MESSAGE(read(other) == AttemptFacts{}, other);
    CHECK(read("budget_exceeded: usd: 0.9 of 1 USD spent").cap == "usd");
    CHECK(read("budget_exceeded: tool_calls").cap == "tool_calls");
    CHECK(read(no_model("its key is refused")).no_model);
    const std::string kept = base + not_judged("its disk is full");
    CHECK_FALSE(read(kept).not_judged);
    CHECK(journal::facts_in(RunOutcome::kInvalid, Termination::kCompleted, kept).not_judged);
    CHECK(journal::facts_in(RunOutcome::kInvalid, Termination::kAgentUnavailable, "").fault ==
          Fault::kAgent);
  }

  TEST_CASE("a worker that came is read from words and from members") {
    for (const std::string& name : {std::string("w1"), std::string("a with b")}) {
      std::string detail = name + " with 4 slots";
      journal::complete_joined(WorkerJoined::kNoteAgain, detail);
      const Note note{WallTime(5), WorkerJoined::kNoteAgain, {}, {}, detail};
      const auto joined = fact_of<WorkerJoined>(note);
      REQUIRE(joined.ok());
      CHECK(joined->worker == WorkerId(name));
      CHECK(joined->slots == 4);
      CHECK(joined->again);
      CHECK(note_of(*joined).detail == detail);
      CHECK(note_of(*joined).kind == note.kind);
      journal::complete_joined(WorkerJoined::kNoteAgain, detail);
      CHECK(detail == note.detail);
    }
    for (const std::string other : {"w1", "w1 with slots", "w1 with 4 slots more", ""}) {
      std::string detail = other;
      journal::complete_joined(WorkerJoined::kNote, detail);
      CHECK(detail == other);
    }
    std::string detail = "w1 with 4 slots";
    journal::complete_joined("worker_suspect", detail);
    CHECK(detail == "w1 with 4 slots");
  }

  TEST_CASE("text of an agent that looks like these words counts against it and never for it") {
    const std::string path = "x; violations: 0 (nothing)";
    CHECK(read("; violations: 2 (not writable: " + path + ")").violations == 2);
    CHECK(read("exit 1 " + path + violation_words(5, "refused: b")).violations == 5);
    CHECK(read("; violations: 0 (none)").violations == 1);
    CHECK(read("; violations: many (none)").violations == 0);
    CHECK(read("; violations: 99999999999999999999999 (none)").violations == 0);
    CHECK(read(patch_words({"exact", "", {"a:1", "b:2"}})).patch == "conflict_markers");
    CHECK(read(patch_words({"", "a; patch: exact: line 3"})).patch == "refused");
    CHECK(read("; patch: <b>").patch.empty());
  }
}
