// Where a worker goes when a campaign is over or nobody answers.
#include "worker/shell/itinerary.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
constexpr Instant kStart{Millis(1'000'000)};
Stop stop(const std::string& name, std::vector<std::string> addresses, std::uint32_t priority = 5) {
  Stop out;
  out.name = name;
  out.addresses = std::move(addresses);
  out.priority = priority;
  return out;
}
}  // namespace

TEST_SUITE("itinerary") {
  TEST_CASE("who has one address stays there and is done when it is sent away") {
    Itinerary way({stop("a", {"tcp://a:1"})}, false);
    CHECK_FALSE(way.has_choice());
    CHECK_FALSE(way.silent(kStart, false));
    CHECK(way.address() == "tcp://a:1");
    way.sent_away(kStart);
    CHECK(way.is_over());
  }

  TEST_CASE("each coordinator is served until its campaign is over and none is asked twice") {
    Itinerary way({stop("a", {"tcp://a:1"}), stop("b", {"tcp://b:1"}), stop("c", {"tcp://c:1"})},
                  false);
    CHECK(way.has_choice());
    way.sent_away(kStart);
    REQUIRE(way.at() != nullptr);
    CHECK(way.at()->name == "b");
    CHECK(way.silent(kStart, false));  // b is not there yet
    CHECK(way.at()->name == "c");
    way.sent_away(kStart + Itinerary::kRest * 2);
    CHECK(way.at()->name == "b");  // a is over
    CHECK_FALSE(way.is_over());
    way.sent_away(kStart + Itinerary::kRest * 3);
    CHECK(way.is_over());
  }

  TEST_CASE("what runs stays with its campaign's addresses") {
    Itinerary way({stop("a", {"tcp://a:1", "tcp://a:2"}), stop("b", {"tcp://b:1"})}, false);
    CHECK(way.silent(kStart, true));
    CHECK(way.address() == "tcp://a:2");
    CHECK(way.silent(kStart, true));
    CHECK(way.address() == "tcp://a:1");
    CHECK(way.silent(kStart, false));
    CHECK(way.address() == "tcp://a:2");
    CHECK(way.silent(kStart, false));
    CHECK(way.address() == "tcp://b:1");
  }

  TEST_CASE("higher priorities come first and equal ones in their order") {
    Itinerary way({stop("a", {"1"}), stop("b", {"2"}, 7), stop("c", {"3"}, 7)}, false);
    for (const char* name : {"b", "c", "a"}) {
      REQUIRE(way.at() != nullptr);
      CHECK(way.at()->name == name);
      way.sent_away(kStart);
    }
  }

  TEST_CASE("with a file it waits for more and comes back after a rest") {
    Itinerary way({}, true);
    CHECK(way.at() == nullptr);
    CHECK_FALSE(way.is_over());
    CHECK_FALSE(way.look(kStart));
    CHECK(way.replace({stop("a", {"1"})}));
    CHECK(way.look(kStart));
    CHECK(way.address() == "1");
    way.sent_away(kStart);
    CHECK_FALSE(way.look(kStart + Itinerary::kRest - Millis(1)));
    CHECK(way.look(kStart + Itinerary::kRest));
    CHECK(way.replace({stop("b", {"2"}), stop("a", {"1"})}));
    CHECK(way.address() == "1");  // others came, and it stays
    CHECK_FALSE(way.replace({stop("b", {"2"})}));
    CHECK(way.address() == "1");  // until it has delivered
    way.sent_away(kStart + Itinerary::kRest * 2);
    CHECK(way.address() == "2");
    CHECK(way.silent(kStart + Itinerary::kRest * 4, false) == false);  // a is not there any more
  }

  TEST_CASE("a stop with other addresses is left and entered again at once") {
    Itinerary way({stop("a", {"1"})}, true);
    CHECK_FALSE(way.replace({stop("a", {"9"})}));
    CHECK(way.address() == "1");
    way.sent_away(kStart);
    REQUIRE(way.at() != nullptr);
    CHECK(way.address() == "9");
  }

  TEST_CASE("an earlier life's address is where it begins") {
    Itinerary way({stop("a", {"1"}), stop("b", {"2", "3"})}, false);
    way.begin_at("3");
    CHECK(way.address() == "3");
    way.begin_at("unknown");
    CHECK(way.address() == "3");
  }
}
