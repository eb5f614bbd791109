#include "common/ledger/ledger.h"

#include <doctest/doctest.h>

namespace proctor::shared_book_test {
namespace {

using State = SharedMember::State;

MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}

SharedMember member(const char* id, State state, std::int64_t ceiling, std::int64_t limit,
                    std::uint64_t since = 1, std::uint64_t noted = 0) {
  SharedMember m;
  m.id = id;
  m.state = state;
  m.ceiling = micro(ceiling);
  m.limit = micro(limit);
  m.since = since;
  m.noted = noted;
  return m;
}

void learn(SharedBook& book, const SharedView& view) {
  for (const SharedFact& fact : book.to_note(view)) book.apply(fact);
}

// "me" has come as change 3; its journal knows who else there is.
struct Table {
  SharedView view{micro(1000), 5, {member("me", State::kHeard, 400, 0, 3)}};
  SharedBook book{"me"};
  void add(SharedMember m) {
    book.apply(m);
    view.members.push_back(std::move(m));
  }
};

}  // namespace

TEST_SUITE("shared book") {
  TEST_CASE("others take what they spent and reserved, or their ceiling while nobody heard them") {
    SharedView view{micro(1000), 1, {}};
    CHECK(view.elsewhere_of("me") == Elsewhere{});
    SharedMember heard = member("a", State::kHeard, 500, 500);
    heard.spent = micro(70);
    view.members = {heard};
    CHECK(view.elsewhere_of("me") == Elsewhere{micro(70), false});
    view.members[0].reserved = micro(30);
    CHECK(view.elsewhere_of("me") == Elsewhere{micro(100), true});
    CHECK(view.elsewhere_of("a") == Elsewhere{});
    view.members.push_back(member("b", State::kUnheard, 300, 0));
    CHECK(view.elsewhere_of("me") == Elsewhere{micro(400), true});
    SharedMember left = member("c", State::kLeft, 11, 0);
    left.spent = micro(11);
    view.members = {left};
    CHECK(view.elsewhere_of("me") == Elsewhere{micro(11), false});
  }

  TEST_CASE("a journal is told what it does not know, once") {
    SharedBook book("me");
    SharedView view{micro(1000), 2, {member("a", State::kHeard, 500, 500)}};
    REQUIRE(book.news(view).size() == 1);
    learn(book, view);
    CHECK(book.news(view).empty());
    view.members[0].spent = micro(5);  // what it spends is its own journal's affair
    CHECK(book.news(view).empty());
    view.members[0].ceiling = micro(600);
    CHECK(book.news(view).size() == 1);
    learn(book, view);
    view.members[0].state = State::kLeft;
    CHECK(book.news(view).size() == 1);
    learn(book, view);
    CHECK(book.news(view).empty());
    view.members.push_back(member("me", State::kHeard, 100, 0));
    CHECK(book.news(view).empty());
  }

  TEST_CASE("a campaign may use an envelope once everybody knows of it") {
    Table alone;
    CHECK(alone.book.may_enter(alone.view));

    struct Row {
      const char* what;
      SharedMember other;
      bool enters;
    };
    const std::vector<Row> rows{
        {"a member that knows", member("a", State::kHeard, 500, 500, 1, 3), true},
        {"a member that does not know yet", member("a", State::kHeard, 500, 500, 1, 2), false},
        {"a member of later that does not know yet", member("a", State::kHeard, 500, 500, 4, 2),
         false},
        {"one that is not heard of", member("a", State::kUnheard, 500, 0, 1, 3), false},
        {"one that has left", member("a", State::kLeft, 0, 0, 4, 0), true},
        {"one that came before, not yet a member", member("a", State::kHeard, 500, 0, 2, 2), false},
        {"one that came later", member("a", State::kHeard, 500, 0, 4, 0), true},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      Table t;
      t.add(row.other);
      CHECK(t.book.may_enter(t.view) == row.enters);
    }
  }

  TEST_CASE("nobody enters who does not know the others, or is not there, or has its ceiling") {
    Table t;
    t.view.members.push_back(member("a", State::kHeard, 500, 500, 1, 5));
    CHECK_FALSE(t.book.may_enter(t.view));
    for (const SharedMember& m : t.book.news(t.view)) t.book.apply(m);
    CHECK(t.book.may_enter(t.view));
    REQUIRE(t.book.to_note(t.view).size() == 1);
    t.book.apply(t.book.to_note(t.view).front());
    CHECK_FALSE(t.book.may_enter(t.view));
    CHECK(t.book.limit() == micro(400));
    t.view.members[0].ceiling = micro(450);  // its own cap was raised
    CHECK(t.book.may_enter(t.view));
    t.view.members[0].state = State::kUnheard;
    CHECK_FALSE(t.book.may_enter(t.view));
    t.view.members.erase(t.view.members.begin());
    CHECK_FALSE(t.book.may_enter(t.view));
  }

  TEST_CASE("who leaves stays until all who are here have noted it") {
    using Step = Farewell::Step;
    SharedView view{micro(1000), 5, {member("me", State::kHeard, 400, 400, 1, 4)}};
    view.members.push_back(member("a", State::kHeard, 500, 500, 2, 4));
    view.members.push_back(member("b", State::kUnheard, 500, 0, 3));
    view.members.push_back(member("c", State::kLeft, 9, 0, 4));
    Farewell farewell("me");
    CHECK(farewell.next(view) == Step::kSay);
    view.members[0] = member("me", State::kLeft, 7, 0, 5);
    view.members[1].seen_ms = 100;
    CHECK(farewell.next(view) == Step::kWait);  // Redis knows it, and nobody else
    view.members[1].noted = 5;
    CHECK(farewell.next(view) == Step::kDone);
  }

  TEST_CASE("a leave that Redis lost before anybody noted it is said again") {
    using Step = Farewell::Step;
    SharedView view{micro(1000), 2, {member("me", State::kLeft, 7, 0, 2)}};
    view.members.push_back(member("a", State::kHeard, 500, 500, 1, 1));
    Farewell farewell("me");
    CHECK(farewell.next(view) == Step::kWait);
    CHECK(farewell.next({}) == Step::kSay);                      // emptied
    view.members[0] = member("me", State::kUnheard, 400, 0, 1);  // as "a" gave it back
    CHECK(farewell.next(view) == Step::kSay);
    view.members[0] = member("me", State::kLeft, 7, 0, 3);
    CHECK(farewell.next(view) == Step::kWait);
    view.members[1].noted = 3;
    CHECK(farewell.next(view) == Step::kDone);
  }

  TEST_CASE("nobody waits for ever for a member that gives no sign") {
    using Step = Farewell::Step;
    SharedView view{micro(1000), 2, {member("me", State::kLeft, 7, 0, 2)}};
    view.members.push_back(member("slow", State::kHeard, 500, 500, 1, 1));
    view.members.push_back(member("dead", State::kHeard, 500, 500, 1, 1));
    Farewell farewell("me");
    for (std::int64_t look = 0; look < 1000; ++look) {
      view.members[1].seen_ms = look / 10;  // works, and its disk does not answer
      REQUIRE(farewell.next(view) == Step::kWait);
    }
    view.members[1].noted = 2;
    CHECK(farewell.next(view) == Step::kDone);
  }
}

}  // namespace proctor::shared_book_test
