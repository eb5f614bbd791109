// The same random operations to the rules and to the script: every answer and, at the end of each
// batch, every balance must be the same.  The auditor of the unit tests watches both.
#include "tests/integration/ledger/support.h"
#include "tests/unit/ledger/auditor.h"

using namespace proctor;
using namespace proctor::test;

namespace {

void compare_balances(RedisLedger& redis, const Ledger& rules) {
  const auto balances = must(redis.snapshot());
  REQUIRE(balances.size() == rules.scopes().size());
  for (std::uint32_t s = 0; s < balances.size(); ++s) {
    CAPTURE(s);
    REQUIRE(text_of(balances[s]) == text_of(rules.balance(ScopeId(s))));
  }
}

int same_operations(RedisLedger& redis, std::uint64_t seed, int operations,
                    const std::vector<ScopeSpec>& scopes, std::int64_t ask_max) {
  CAPTURE(seed);
  REQUIRE(redis.begin_epoch(Epoch(seed), scopes, {}, std::vector<MicroUsd>(scopes.size())).ok());
  Ledger rules(scopes);
  audit::Auditor auditor(scopes);
  audit::OpSource source(seed, static_cast<std::uint32_t>(scopes.size()), ask_max);
  int done = 0;
  while (done < operations) {
    std::vector<LedgerOp> batch;
    const std::uint64_t size = source.below(8) == 0 ? kLedgerBatch : 1 + source.below(90);
    for (std::uint64_t i = 0; i < size; ++i) batch.push_back(source.next());
    const auto answers = must(redis.apply(Epoch(seed), batch));
    REQUIRE(answers.size() == batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const LedgerAnswer expected = rules.apply(batch[i]);
      REQUIRE(text_of(answers[i]) == text_of(expected));
      REQUIRE(auditor.saw(batch[i], answers[i]) == "");
    }
    compare_balances(redis, rules);
    done += static_cast<int>(size);
  }
  for (const char* what : {"granted", "denied", "settled", "voided", "forgotten", "overrun",
                           "reserve replayed", "settle replayed", "other contents"}) {
    CAPTURE(what);
    CHECK(0 < auditor.seen[what]);
  }
  return done;
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("the script and the rules give the same answers to the same operations") {
    const Home home;
    RedisLedger redis = home.ledger();
    int done = 0;
    std::vector<ScopeSpec> scopes{{"global", micro(60'000)}};
    for (int i = 1; i < 12; ++i) {
      scopes.push_back({"task:" + std::to_string(i), micro(2'000 * i)});
    }
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      done += same_operations(redis, seed, 4'000, scopes, 300);
    }
    // Envelopes and asks at the edge of what a double holds exactly.
    const std::vector<ScopeSpec> huge{
        {"global", kLedgerMax}, {"a", kLedgerMax}, {"b", kLedgerMax - micro(1)}, {"c", micro(1)}};
    for (std::uint64_t seed = 10; seed <= 12; ++seed) {
      done += same_operations(redis, seed, 2'000, huge, kLedgerMax.micros() / 5);
    }
    CHECK(20'000 <= done);
  }
}
