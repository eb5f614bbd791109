// The same random operations to the rules, to the script and to the ledger without a Redis: every
// answer and, at the end of each batch, every balance must be the same; also after each of the two
// was filled again from what a journal would hold.  The auditor of the unit tests watches.
#include <map>

#include "common/ledger/ledger_store.h"
#include "tests/integration/ledger/support.h"
#include "tests/unit/ledger/auditor.h"

using namespace proctor;
using namespace proctor::test;

namespace {

void compare_balances(LedgerStore& store, const Ledger& rules) {
  const auto balances = must(store.snapshot());
  REQUIRE(balances.size() == rules.scopes().size());
  for (std::uint32_t s = 0; s < balances.size(); ++s) {
    CAPTURE(s);
    REQUIRE(text_of(balances[s]) == text_of(rules.balance(ScopeId(s))));
  }
}

int same_operations(RedisLedger& redis, std::uint64_t seed, int operations,
                    const std::vector<ScopeSpec>& scopes, std::int64_t ask_max) {
  CAPTURE(seed);
  JournalLedger memory;
  for (LedgerStore* store : {static_cast<LedgerStore*>(&redis), static_cast<LedgerStore*>(&memory)})
    must(store->begin_epoch(Epoch(seed), scopes, {}, std::vector<MicroUsd>(scopes.size())));
  Ledger rules(scopes);
  audit::Auditor auditor(scopes);
  audit::OpSource source(seed, static_cast<std::uint32_t>(scopes.size()), ask_max);
  int done = 0;
  while (done < operations) {
    std::vector<LedgerOp> batch;
    const std::uint64_t size = source.below(8) == 0 ? kLedgerBatch : 1 + source.below(90);
    for (std::uint64_t i = 0; i < size; ++i) batch.push_back(source.next());
    const auto answers = must(redis.apply(Epoch(seed), batch));
    const auto in_memory = must(memory.apply(Epoch(seed), batch));
    REQUIRE(answers.size() == batch.size());
    REQUIRE(in_memory.size() == batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const LedgerAnswer expected = rules.apply(batch[i]);
      REQUIRE(text_of(answers[i]) == text_of(expected));
      REQUIRE(text_of(in_memory[i]) == text_of(expected));
      REQUIRE(auditor.saw(batch[i], answers[i]) == "");
    }
    compare_balances(redis, rules);
    compare_balances(memory, rules);
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
  TEST_CASE("filled from a journal the script and the ledger without a Redis go on alike") {
    const Home home;
    RedisLedger redis = home.ledger();
    JournalLedger memory;
    const std::vector<LedgerStore*> both{&redis, &memory};
    std::vector<ScopeSpec> scopes{{"global", micro(60'000)}, {"a", micro(30'000)}};
    for (int i = 2; i < 8; ++i) scopes.push_back({"task:" + std::to_string(i), micro(4'000 * i)});
    audit::OpSource source(77, static_cast<std::uint32_t>(scopes.size()), 300);
    std::map<AskId, ReserveOp> pending;  // as the coordinator's ledger thread remembers it
    std::vector<MicroUsd> spent(scopes.size());
    for (std::uint64_t life = 1; life <= 12; ++life) {
      CAPTURE(life);
      std::vector<ReserveOp> open;
      for (const auto& [id, op] : pending) open.push_back(op);
      for (LedgerStore* store : both)
        CHECK(must(store->begin_epoch(Epoch(life), scopes, open, spent)).empty());
      for (int round = 0; round < 20; ++round) {
        std::vector<LedgerOp> batch;
        for (int i = 0; i < 25; ++i) batch.push_back(source.next());
        const auto one = must(redis.apply(Epoch(life), batch));
        const auto other = must(memory.apply(Epoch(life), batch));
        for (std::size_t i = 0; i < batch.size(); ++i) {
          REQUIRE(text_of(one[i]) == text_of(other[i]));
          const auto* granted = std::get_if<ReserveAnswer>(&other[i]);
          const auto* settled = std::get_if<SettleAnswer>(&other[i]);
          if (granted != nullptr && granted->kind == ReserveAnswer::Kind::kGranted &&
              !granted->replayed) {
            const auto& op = std::get<ReserveOp>(batch[i]);
            pending.emplace(op.id, op);
          } else if (settled != nullptr && !settled->replayed) {
            const auto it = pending.find(std::get<SettleOp>(batch[i]).id);
            REQUIRE(it != pending.end());
            for (const ScopeId s : it->second.scopes)
              spent[s.raw()] = spent[s.raw()] + settled->charged;
            pending.erase(it);
          } else if (const auto* v = std::get_if<VoidOp>(&batch[i]);
                     v != nullptr && std::holds_alternative<Unit>(other[i])) {
            pending.erase(v->id);
          }
        }
        const auto a = must(redis.snapshot());
        const auto b = must(memory.snapshot());
        REQUIRE(a.size() == b.size());
        for (std::size_t s = 0; s < a.size(); ++s) REQUIRE(text_of(a[s]) == text_of(b[s]));
      }
    }
    CHECK(MicroUsd::zero() < spent[0]);
    CHECK_FALSE(pending.empty());
  }

  TEST_CASE("both ledgers refuse the same epochs and the same journals") {
    const Home home;
    const std::vector<ScopeSpec> scopes{{"global", micro(100)}};
    const ReserveOp ask{ask_id(1), micro(60), {ScopeId(0)}};
    const ReserveOp more{ask_id(2), micro(60), {ScopeId(0)}};
    RedisLedger redis = home.ledger();
    JournalLedger memory;
    for (LedgerStore* store :
         {static_cast<LedgerStore*>(&redis), static_cast<LedgerStore*>(&memory)}) {
      const auto begin = [&](std::uint64_t epoch, const std::vector<ReserveOp>& open,
                             std::int64_t spent) {
        return store->begin_epoch(Epoch(epoch), scopes, open, {micro(spent)});
      };
      const auto apply = [&](std::uint64_t epoch) { return store->apply(Epoch(epoch), {ask}); };
      REQUIRE(store->connect().ok());
      CHECK(code_of(store->snapshot()) == Errc::kNotFound);
      CHECK(code_of(apply(1)) == Errc::kNotFound);
      CHECK(code_of(begin(1, {ask, more}, 0)) == Errc::kCorrupt);
      CHECK(code_of(begin(1, {ask, ask}, 0)) == Errc::kCorrupt);
      CHECK(code_of(begin(1, {}, 101)) == Errc::kCorrupt);
      CHECK(code_of(begin(1, {ask}, 41)) == Errc::kCorrupt);
      CHECK(code_of(apply(1)) == Errc::kNotFound);
      REQUIRE(begin(5, {ask}, 40).ok());
      CHECK(code_of(apply(4)) == Errc::kConflict);
      CHECK(code_of(apply(6)) == Errc::kNotFound);
      CHECK(text_of(must(apply(5))[0]) == "granted 0 0 replayed");
      CHECK(code_of(begin(4, {}, 0)) == Errc::kConflict);
      REQUIRE(begin(5, {ask}, 40).ok());
      CHECK(text_of(must(store->snapshot())[0]) == "100 40 60");
      CHECK_FALSE(store->describe().empty());
    }
  }

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
