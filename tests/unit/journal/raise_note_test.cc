#include "coordinator/core/notes.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

BudgetRaised raised() {
  BudgetRaised r;
  r.scope = ScopeId(3);
  r.name = "task:a \"quoted\"";
  r.from = MicroUsd::from_micros(1);
  r.to = kLedgerMax;
  r.reason = "ein Grund: größer\n";
  r.by = "Ada";
  r.at = WallTime(17);
  return r;
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("a raise is read back from its note as it was") {
    const Note note = note_of(raised());
    CHECK(note.kind == "budget_raised");
    const Result<BudgetRaised> back = fact_of<BudgetRaised>(note);
    REQUIRE(back.ok());
    CHECK(back->scope == ScopeId(3));
    CHECK(back->name == raised().name);
    CHECK(back->from == raised().from);
    CHECK(back->to == kLedgerMax);
    CHECK(back->reason == raised().reason);
    CHECK(back->by == "Ada");
    CHECK(back->at == WallTime(17));
  }

  TEST_CASE("a note that is not quite a raise is refused") {
    const std::string good = note_of(raised()).detail;
    const auto with = [&](const std::string& from, const std::string& to) {
      std::string text = good;
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      return text.replace(at, from.size(), to);
    };
    for (const std::string& bad :
         {std::string(), std::string("{}"), std::string("[]"), good + "x",
          with("\"from\":1", "\"from\":-1"), with("\"from\":1", "\"from\":1.5"),
          with("\"from\":1", "\"from\":\"1\""), with("9007199254740991", "9007199254740992"),
          with("\"scope\":3", "\"scope\":4294967296"), with("\"by\":\"Ada\"", "\"by\":null"),
          with("\"by\":\"Ada\",", ""), with("\"by\"", "\"me\"")}) {
      CAPTURE(bad);
      const Result<BudgetRaised> read =
          fact_of<BudgetRaised>({{}, BudgetRaised::kNote, {}, {}, bad});
      REQUIRE_FALSE(read.ok());
      CHECK(read.error().code == Errc::kCorrupt);
    }
  }
}
