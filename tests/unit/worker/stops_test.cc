// Which address of a coordinator is tried, and when one that sent the worker away is asked again.
#include "worker/shell/coordinators.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
constexpr Instant kBegin{Millis(1'000'000)};
}

TEST_SUITE("stops") {
  TEST_CASE("addresses are tried in turn and one alone stays") {
    Addresses one({"tcp://a:1"});
    CHECK_FALSE(one.has_choice());
    CHECK_FALSE(one.next());
    CHECK(one.at() == "tcp://a:1");
    Addresses two({"tcp://a:1", "tcp://b:1"});
    CHECK(two.next());
    CHECK(two.at() == "tcp://b:1");
    CHECK(two.next());
    CHECK(two.at() == "tcp://a:1");
  }

  TEST_CASE("a worker begins where an earlier life of it was") {
    Addresses two({"tcp://a:1", "tcp://b:1"});
    two.begin_at("tcp://c:1");
    CHECK(two.at() == "tcp://a:1");
    two.begin_at("tcp://b:1");
    CHECK(two.at() == "tcp://b:1");
  }

  TEST_CASE("who was sent away rests and comes back, or never does") {
    Addresses file({"tcp://a:1"}), line({"tcp://a:1"});
    file.sent_away(kBegin, true);
    CHECK(file.rests(kBegin + Addresses::kRest - Millis(1)));
    CHECK_FALSE(file.rests(kBegin + Addresses::kRest));
    CHECK_FALSE(file.is_over());
    line.sent_away(kBegin, false);
    CHECK(line.rests(kBegin + 10 * Addresses::kRest));
    CHECK(line.is_over());
  }

  TEST_CASE("one that is named anew is asked at once, where it is now") {
    Addresses a({"tcp://a:1", "tcp://b:1"});
    a.next();
    a.sent_away(kBegin, true);
    a.next();
    a.replace({"tcp://c:1", "tcp://b:1"});
    CHECK_FALSE(a.rests(kBegin));
    CHECK(a.at() == "tcp://b:1");
    a.replace({"tcp://d:1"});
    CHECK(a.at() == "tcp://d:1");
  }
}
