// A campaign that shares an envelope: it waits for what others may give back, and is parked for
// what they have spent.
#include <doctest/doctest.h>

#include "coordinator/core/notes.h"
#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

namespace {

const ScopeId kShared(4);

// Each run asks for 10.
PlanView shared_plan(std::size_t runs, std::int64_t cap) {
  PlanView plan = plan_of(std::vector<std::uint32_t>(runs, 0));
  plan.scopes.push_back({"shared:x", micro(cap)});
  plan.shared = kShared;
  return plan;
}

// As the ledger's thread tells of it.
void others_hold(Desk& desk, std::int64_t held, bool may_return) {
  desk.ledger.set_elsewhere(kShared, {micro(held), may_return});
  desk.feed(ElsewhereHeld{{micro(held), may_return}});
}

}  // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("a shared envelope is around every run") {
    const PlanView plan = shared_plan(1, 100);
    CHECK(plan.path(RunId(0)) == std::vector<ScopeId>{kGlobal, kShared, ScopeId(1), ScopeId(2)});
    CHECK(plan.holds_all(kShared, RunId(0)));
  }

  TEST_CASE("what others have reserved is waited for, and nobody is asked meanwhile") {
    Desk desk(shared_plan(1, 100));
    desk.start();
    others_hold(desk, 95, true);
    desk.sync("w", 1);
    CHECK(desk.asks.empty());
    CHECK(desk.core.explain(RunId(0)).find("shared:x") != std::string::npos);
    CHECK(desk.core.explain(RunId(0)).find("other campaigns hold 0.000095 of it") !=
          std::string::npos);
    others_hold(desk, 91, true);
    CHECK(desk.asks.empty());
    others_hold(desk, 90, true);
    CHECK(desk.assigned.size() == 1);
  }

  TEST_CASE("a denial for now is asked again when others gave something back, not before") {
    Desk desk(shared_plan(1, 100));
    desk.start();
    desk.ledger.set_elsewhere(kShared, {micro(95), true});  // of which the core has not heard yet
    desk.sync("w", 1);
    CHECK(desk.asks.size() == 1);
    CHECK(desk.facts<RunParked>().empty());
    desk.feed(TimerFired{});
    CHECK(desk.asks.size() == 1);
    others_hold(desk, 95, true);
    CHECK(desk.asks.size() == 1);
    others_hold(desk, 50, false);
    CHECK(desk.asks.size() == 2);
    CHECK(desk.assigned.size() == 1);
    CHECK_FALSE(desk.ended);
  }

  TEST_CASE("what others have spent parks") {
    Desk desk(shared_plan(2, 100));
    desk.start();
    others_hold(desk, 95, false);
    desk.sync("w", 2);
    const auto parked = desk.facts<RunParked>();
    REQUIRE(parked.size() == 2);
    CHECK(parked[0].scope == kShared);
    CHECK(parked[0].short_by == micro(5));
  }

  TEST_CASE("a shared envelope is raised above the campaign's own: it is around that") {
    Desk desk(shared_plan(2, 100));
    desk.start();
    others_hold(desk, 90, false);
    desk.sync("w", 2);
    CHECK(desk.assigned.size() == 1);
    OperatorAct act;
    act.kind = OperatorActKind::kRaise;
    act.scope = kShared;
    act.to = micro(5000);  // global holds 1000
    CHECK(desk.act(act).verdict == OperatorAnswer::Verdict::kDone);
    CHECK(desk.assigned.size() == 2);
  }

  TEST_CASE("what a journal says of a shared envelope makes the book that the living one has") {
    SharedMember a, b;
    a.id = "a";
    a.name = "a on one \"host\"";
    a.state = SharedMember::State::kHeard;
    a.ceiling = micro(70);
    b.id = "b";
    b.ceiling = micro(50);
    SharedMember gone = b;
    gone.state = SharedMember::State::kLeft;
    gone.spent = gone.ceiling = micro(8);
    SharedBook living("me");
    std::vector<Note> notes;
    const auto same = [&] {
      const Result<SharedBook> next = shared_book_of("me", notes);
      REQUIRE(next.ok());
      CHECK(next->limit() == living.limit());
      REQUIRE(next->known().size() == living.known().size());
      for (const auto& [id, m] : living.known()) {
        const SharedMember& n = next->known().at(id);
        CHECK(n.name == m.name);
        CHECK(n.ceiling == m.ceiling);
        CHECK((n.state == SharedMember::State::kLeft) == (m.state == SharedMember::State::kLeft));
        CHECK((m.state != SharedMember::State::kLeft || n.spent == m.spent));
      }
    };
    for (const SharedFact& fact : {SharedFact(a), SharedFact(b), SharedFact(SharedLimit{micro(60)}),
                                   SharedFact(gone), SharedFact(SharedLimit{})}) {
      living.apply(fact);
      notes.push_back(note_of(fact, WallTime(1)));
      same();
    }
    CHECK(notes.back().kind == kNoteShared);
    notes.back().detail = R"({"limit":-1})";
    CHECK(shared_book_of("me", notes).error().code == Errc::kCorrupt);
  }

  TEST_CASE("no review is booked where only runs are charged") {
    Desk desk(shared_plan(2, 100));
    desk.start();
    desk.sync("w", 1);
    REQUIRE(desk.assigned.size() == 1);
    desk.result("w", desk.assigned[0], 1);
    OperatorAct act;
    act.kind = OperatorActKind::kReview;
    act.runs = {RunId(0)};
    act.milli_minutes = 1000;
    const OperatorAnswer answer = desk.act(act);
    CHECK(answer.verdict == OperatorAnswer::Verdict::kRefused);
    CHECK(answer.text.find("shares shared:x with others") != std::string::npos);
  }
}
