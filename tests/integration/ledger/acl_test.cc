// A Redis user with exactly the rights that docs/ledger.md promises to be enough, and with less.
#include <array>
#include <iterator>
#include <sstream>

#include "tests/integration/ledger/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

const std::vector<ScopeSpec> kTwoEnvelopes{{"global", micro(1000)}, {"task:a", micro(400)}};
const std::vector<ScopeId> kInBoth{ScopeId(0), ScopeId(1)};
const std::vector<MicroUsd> kUnspent(2);

std::vector<std::string> grants() {
  std::istringstream words{std::string(kRedisGrants)};
  return {std::istream_iterator<std::string>(words), {}};
}

// A server with a user "proctor" that has these rights.
struct Restricted : Home {
  explicit Restricted(const std::vector<std::string>& rights) { give(rights); }
  void give(const std::vector<std::string>& rights) {
    std::vector<std::string_view> words{"ACL", "SETUSER", "proctor", "reset", "on", ">sesame"};
    words.insert(words.end(), rights.begin(), rights.end());
    must(connection().call(words));
  }
  RedisLedger mine(const std::string& campaign = "c1") const {
    RedisLedger::Options options;
    options.endpoint = must(parse_redis_endpoint(redis.address()));
    options.endpoint.user = "proctor";
    options.endpoint.password = Secret("sesame");
    options.campaign = campaign;
    return must(RedisLedger::open(std::move(options)));
  }
};

// Everything that a campaign and `proctor verify` ask of a ledger: the first error, or "".
std::string whole_life(RedisLedger ledger) {
  const ReserveOp held{ask_id(2), micro(10), kInBoth};
  if (const auto begun = ledger.begin_epoch(Epoch(1), kTwoEnvelopes, {held}, kUnspent); !begun.ok())
    return begun.error().detail;
  const auto answers = ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(300), kInBoth},
                                               SettleOp{ask_id(1), micro(50)}, VoidOp{ask_id(2)}});
  if (!answers.ok()) return answers.error().detail;
  const auto forgotten = ledger.apply(Epoch(1), {ForgetOp{ask_id(1)}});
  if (!forgotten.ok()) return forgotten.error().detail;
  if (const auto balances = ledger.snapshot(); !balances.ok()) return balances.error().detail;
  // Another life compares what is there first.
  const auto again = ledger.begin_epoch(Epoch(2), kTwoEnvelopes, {}, {micro(50), micro(50)});
  if (!again.ok() || !again->empty()) return again.ok() ? again->front() : again.error().detail;
  const auto all = ledger.read_all();  // HGETALL of all three keys
  if (!all.ok()) return all.error().detail;
  return all->scopes.size() == 2 ? "" : "not both envelopes were read";
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("the rights that the manual lists are enough") {
    const Restricted home(grants());
    CHECK(whole_life(home.mine()) == "");
  }

  TEST_CASE("each right that is missing is an error that names what is needed") {
    Restricted home(grants());
    const std::vector<std::string> all = grants();
    REQUIRE(all.size() == 11);
    for (std::size_t missing = 0; missing < all.size(); ++missing) {
      CAPTURE(all[missing]);
      if (all[missing] == "+select" || all[missing] == "+eval") continue;  // used by few: below
      std::vector<std::string> rights = all;
      rights.erase(rights.begin() + static_cast<std::ptrdiff_t>(missing));
      home.give(rights);
      must(home.connection().call(std::array<std::string_view, 1>{"FLUSHALL"}));
      const std::string why = whole_life(home.mine());
      CHECK(why.find("; this user needs ~proctor:* +info ") != std::string::npos);
    }
  }

  TEST_CASE("another database and a flushed script cache need a right each") {
    std::vector<std::string> rights = grants();
    std::erase(rights, "+select");
    std::erase(rights, "+eval");
    Restricted home(rights);
    RedisLedger ledger = home.mine();
    REQUIRE(ledger.begin_epoch(Epoch(1), kTwoEnvelopes, {}, kUnspent).ok());
    must(home.connection().call(std::array<std::string_view, 2>{"SCRIPT", "FLUSH"}));
    const auto refused = ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(1), kInBoth}});
    CHECK(code_of(refused) == Errc::kInvalid);
    CHECK(refused.error().detail.find("'eval'") != std::string::npos);
    RedisEndpoint endpoint = must(parse_redis_endpoint(home.redis.address()));
    endpoint.user = "proctor";
    endpoint.password = Secret("sesame");
    endpoint.db = 3;
    const auto other = RedisConnection::open(endpoint, std::chrono::seconds(60));
    CHECK(code_of(other) == Errc::kInvalid);
    CHECK(other.error().detail.find("'select'") != std::string::npos);
  }

  TEST_CASE("a user of one campaign cannot touch another") {
    std::vector<std::string> rights = grants();
    rights.front() = "~proctor:{c1}:*";
    const Restricted home(rights);
    CHECK(whole_life(home.mine("c1")) == "");
    CHECK(whole_life(home.mine("c2")).find("NOPERM") != std::string::npos);
  }
}
