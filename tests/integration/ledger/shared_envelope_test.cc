// An envelope that campaigns share: who may bring it back, what is refused and in which words.
#include <hiredis/hiredis.h>

#include <array>

#include "tests/integration/ledger/shared_world.h"

namespace proctor::test::shared_envelope {
namespace {

using Kind = ReserveAnswer::Kind;

void flush(const Home& home) {
  RedisConnection c = home.connection();
  must(c.call(std::array<std::string_view, 1>{"FLUSHALL"}));
}

void found(const Home& home, std::int64_t cap, const std::vector<SharedMember>& known = {}) {
  SharedCampaign anybody(home, "anybody", 1, cap);
  REQUIRE(anybody.fresh().found(micro(cap), known).ok());
}

// Until everybody knows everybody.
void settle_down(std::initializer_list<SharedCampaign*> all) {
  for (int i = 0; i < 8; ++i)
    for (SharedCampaign* c : all) {
      c->tend();
      c->commit();
    }
}

bool granted(const std::optional<ReserveAnswer>& answer) {
  return answer && answer->kind == Kind::kGranted;
}

bool says(const Status& status, std::string_view words) {
  return !status.ok() && status.error().detail.find(words) != std::string::npos;
}

}  // namespace

TEST_SUITE("shared envelope") {
  TEST_CASE("a campaign does not begin on a Redis that does not have it, and says what to type") {
    const Home home;
    SharedCampaign a(home, "a", 500, 1000);
    const Status status = a.start();
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Errc::kNotFound);
    CHECK(says(status, "shared envelope x: Redis at unix:"));
    CHECK(says(status, "proctor budget share CAMPAIGN"));
    found(home, 1000);
    CHECK(a.start().ok());
  }

  TEST_CASE("two caps for one name are refused with both figures and what to type") {
    const Home home;
    found(home, 1'000'000);
    SharedCampaign same(home, "a", 500, 1'000'000);
    CHECK(same.start().ok());
    SharedCampaign less(home, "b", 500, 990'000);
    const Status low = less.start();
    CHECK(says(low, "a cap of 0.99, the others one of 1.00"));
    CHECK(says(low, "proctor budget raise CAMPAIGN shared:x 1.00 --reason"));
    CHECK(low.error().code == Errc::kInvalid);
    SharedCampaign more(home, "c", 500, 1'010'000);
    const Status high = more.start();
    CHECK(says(high, "a cap of 1.01, the others one of 1.00"));
    CHECK(says(high, "proctor budget raise CAMPAIGN shared:x 1.01 --reason"));
    // With a raise in its journal it is not refused for being ahead of the others.
    CHECK_FALSE(less.start(SharedCap::kNotLower).ok());
    SharedCampaign raised(home, "d", 500, 1'010'000);
    CHECK(raised.start(SharedCap::kNotLower).ok());
    CHECK(says(same.start(), "a cap of 1.00, the others one of 1.01"));
    RedisLedger looks = raised.fresh();
    CHECK(must(looks.shared()).members.size() == 2);  // whoever was refused is no member
  }

  TEST_CASE("it is founded once") {
    const Home home;
    found(home, 1000);
    SharedCampaign a(home, "a", 500, 1000);
    const Status again = a.fresh().found(micro(2000), {});
    CHECK(says(again, "has it already"));
    RedisLedger looks = a.fresh();
    CHECK(must(looks.shared()).cap == micro(1000));
  }

  TEST_CASE("the cap holds for all together, and a denial says whether waiting helps") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 100, 100);
    SharedCampaign b(home, "b", 100, 100);
    REQUIRE(a.start().ok());
    REQUIRE(b.start().ok());
    settle_down({&a, &b});
    REQUIRE(granted(a.ask(70)));
    a.commit();
    auto answer = b.ask(31);
    REQUIRE(answer);
    CHECK(answer->kind == Kind::kDenied);
    CHECK(answer->short_scope == ScopeId(1));
    CHECK(answer->short_by == micro(1));
    CHECK(answer->later);  // 70 are only reserved
    REQUIRE(granted(b.ask(30)));
    b.commit();
    a.settle(0, 60, false);
    a.commit();
    b.settle(0, 30, false);
    b.commit();
    answer = b.ask(11);
    REQUIRE(answer);
    CHECK(answer->kind == Kind::kDenied);
    CHECK_FALSE(answer->later);  // all of it is spent
    CHECK(granted(b.ask(10)));
  }

  TEST_CASE("one that others do not know of yet may not spend") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 100, 100);
    REQUIRE(a.start().ok());
    settle_down({&a});
    CHECK(granted(a.ask(10)));
    a.commit();
    a.kill();
    SharedCampaign b(home, "b", 100, 100);
    REQUIRE(b.start().ok());
    settle_down({&b});
    const auto answer = b.ask(1);
    REQUIRE(answer);
    CHECK(answer->kind == Kind::kDenied);
    CHECK(answer->later);
    REQUIRE(a.start().ok());
    settle_down({&a, &b});
    CHECK(granted(b.ask(90)));
  }

  TEST_CASE("what Redis lost comes back from a member, and who is not heard of counts in full") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 40, 100);
    SharedCampaign b(home, "b", 50, 100);
    REQUIRE(a.start().ok());
    REQUIRE(b.start().ok());
    settle_down({&a, &b});
    REQUIRE(granted(b.ask(5)));
    b.commit();
    b.kill();
    flush(home);
    SharedCampaign stranger(home, "c", 50, 100);
    CHECK_FALSE(stranger.start().ok());
    a.tend();  // brings it back
    RedisLedger looks = a.fresh();
    SharedView view = must(looks.shared());
    REQUIRE(view.find("b") != nullptr);
    CHECK(view.find("b")->state == SharedMember::State::kUnheard);
    CHECK(view.elsewhere_of("a") == Elsewhere{micro(50), true});
    CHECK(granted(a.ask(40)));
    REQUIRE(b.start().ok());
    view = must(looks.shared());
    CHECK(view.find("b")->state == SharedMember::State::kHeard);
    CHECK(view.elsewhere_of("a") == Elsewhere{micro(5), true});
  }

  TEST_CASE("a copy that an older Redis left behind is not believed") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 40, 100);
    REQUIRE(a.start().ok());
    settle_down({&a});
    RedisConnection c = home.connection();
    must(
        c.call(std::array<std::string_view, 4>{"HSET", "proctor:{shared:x}", "server", "another"}));
    SharedCampaign b(home, "b", 40, 100);
    CHECK(says(b.start(), "does not have it"));
    a.kill();
    REQUIRE(a.start().ok());  // as a member
    CHECK(b.start().ok());
  }

  TEST_CASE("one that was killed for good leaves by a person's word, with its journal as witness") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 100, 100);
    SharedCampaign b(home, "b", 100, 100);
    REQUIRE(a.start().ok());
    REQUIRE(b.start().ok());
    settle_down({&a, &b});
    REQUIRE(granted(a.ask(30)));
    a.commit();
    a.kill();
    flush(home);
    CHECK(a.give_up().error().code == Errc::kNotFound);  // Redis does not have the envelope
    b.tend();  // brings it back, with all that "a" may hold
    auto answer = b.ask(1);
    REQUIRE(answer);
    CHECK(answer->later);
    REQUIRE(a.give_up().ok());
    REQUIRE(a.give_up().ok());  // says the same
    RedisLedger looks = b.fresh();
    CHECK(must(looks.shared()).elsewhere_of("b") == Elsewhere{micro(30), false});
    answer = b.ask(71);
    REQUIRE(answer);
    CHECK_FALSE(answer->later);
    settle_down({&b});
    flush(home);
    b.tend();  // its journal knows by now that "a" has left
    CHECK(must(looks.shared()).elsewhere_of("b") == Elsewhere{micro(30), false});
    SharedCampaign c(home, "c", 100, 100);
    REQUIRE(c.start().ok());
    settle_down({&b, &c});
    CHECK(granted(c.ask(70)));
    c.commit();
    REQUIRE(a.start().ok());  // joins anew, and what it had open is its own still
    settle_down({&a, &b, &c});
    a.settle(0, 25, false);
    a.commit();
    CHECK(granted(a.ask(5)));
  }

  TEST_CASE("who ends leaves, and others need not wait for it") {
    const Home home;
    found(home, 100);
    SharedCampaign a(home, "a", 60, 100);
    REQUIRE(a.start().ok());
    settle_down({&a});
    REQUIRE(granted(a.ask(25)));
    a.commit();
    CHECK(a.fresh().leave(Epoch(1)).error().code == Errc::kConflict);  // not its token: fenced
    a.leave();
    CHECK(a.alive());  // money is out: it stays
    a.settle(0, 25, false);
    a.leave();
    CHECK_FALSE(a.alive());
    SharedCampaign b(home, "b", 100, 100);
    REQUIRE(b.start().ok());
    settle_down({&b});
    CHECK_FALSE(granted(b.ask(76)));
    CHECK(granted(b.ask(75)));
    b.commit();
    flush(home);
    CHECK_FALSE(a.start().ok());  // it left: it cannot know who came after it
    b.tend();
    settle_down({&b});
    RedisLedger looks = b.fresh();
    CHECK(must(looks.shared()).elsewhere_of("b") == Elsewhere{micro(25), false});
  }
}

}  // namespace proctor::test::shared_envelope
