#include "common/ledger/redis_ledger.h"

#include <hiredis/hiredis.h>
#include <signal.h>

#include <array>

#include "tests/integration/ledger/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

const std::vector<ScopeSpec> kScopes{{"global", micro(1000)}, {"task:a", micro(400)}};
const std::vector<ScopeId> kBoth{ScopeId(0), ScopeId(1)};
const std::vector<MicroUsd> kNothing(2);

std::vector<std::string> texts(Result<std::vector<LedgerAnswer>> answers) {
  std::vector<std::string> out;
  for (const auto& a : must(std::move(answers))) out.push_back(text_of(a));
  return out;
}

std::vector<std::string> balances(RedisLedger& ledger) {
  std::vector<std::string> out;
  for (const auto& b : must(ledger.snapshot())) out.push_back(text_of(b));
  return out;
}

void command(const Home& home, std::vector<std::string_view> args) {
  RedisConnection c = home.connection();
  must(c.call(args));
}

std::int64_t number(RedisConnection& c, std::vector<std::string_view> args) {
  const RedisReply reply = must(c.call(args));
  REQUIRE(reply->type == REDIS_REPLY_INTEGER);
  return reply->integer;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("one batch may carry the whole life of a reservation") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    CHECK(texts(ledger.apply(
              Epoch(1),
              {ReserveOp{ask_id(1), micro(300), kBoth}, ReserveOp{ask_id(2), micro(300), kBoth},
               SettleOp{ask_id(1), micro(50)}, ReserveOp{ask_id(2, 1, 1), micro(300), kBoth},
               VoidOp{ask_id(2, 1, 1)}, ForgetOp{ask_id(1)}, SettleOp{ask_id(1), micro(50)}})) ==
          Texts{"granted 0 0", "denied 1 200", "settled 50 0", "granted 0 0", "done", "done",
                std::string(to_string(Errc::kNotFound)) + " no reservation 1.1.0"});
    CHECK(balances(ledger) == Texts{"1000 50 0", "400 50 0"});
  }

  TEST_CASE("a batch that leaves no row behind moves the money all the same") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    CHECK(texts(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(300), kBoth},
                                        SettleOp{ask_id(1), micro(301)}, ForgetOp{ask_id(1)}})) ==
          Texts{"granted 0 0", "settled 300 1", "done"});
    CHECK(balances(ledger) == Texts{"1000 300 0", "400 300 0"});
  }

  TEST_CASE("the script refuses a batch that no ledger of ours would send and moves nothing") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    RedisConnection c = home.connection();
    const std::string token = ledger.lease().token;
    const auto send = [&](const std::string& lua_batch) -> std::string {
      // The batch is packed by Redis itself: another encoder than ours.
      const std::string pack = "return cmsgpack.pack(" + lua_batch + ")";
      const RedisReply packed = must(c.call(std::array<std::string_view, 3>{"EVAL", pack, "0"}));
      const auto reply = c.call(std::array<std::string_view, 9>{"EVAL",
                                                                kLedgerScript,
                                                                "3",
                                                                "proctor:{c1}:head",
                                                                "proctor:{c1}:scopes",
                                                                "proctor:{c1}:rows",
                                                                "1",
                                                                token,
                                                                {packed->str, packed->len}});
      return reply.ok() ? std::string((*reply)->str, (*reply)->len) : "refused";
    };
    CHECK(send("'r', {'1.1.0'}, {5.5}, {'0,1'}").starts_with("i the ask is not"));
    CHECK(send("'r', {'1.1.0'}, {9007199254740992}, {'0,1'}").starts_with("i the ask is not"));
    CHECK(send("'r', {'1.1.0'}, {-1}, {'0,1'}").starts_with("i the ask is not"));
    CHECK(send("'r', {'1.1.0'}, {0/0}, {'0,1'}").starts_with("i the ask is not"));
    CHECK(send("'r', {'1.1.0'}, {5}, {'0,2'}") == "i unknown scope");
    CHECK(send("'r', {'1.1.0'}, {5}, {'0,1,0'}") == "i a scope stands twice");
    CHECK(send("'r', {'1.1.0'}, {5}, {','}") == "i no scope");
    CHECK(send("'x', {'1.1.0'}, {5}, {'0'}") == "i unknown operation");
    for (const char* batch :
         {"'rr', {'1.1.0', 11}, {5, 5}, {'0', '0'}", "'rr', {'1.1.0'}, {5, 5}, {'0', '0'}",
          "'r', {'1.1.0'}, {'5'}, {'0'}", "'r', {'1.1.0'}, {}, {'0'}", "'r', {'1.1.0'}, {5}, {{}}",
          "'r', {'1.1.0'}, {5}, {}", "{}", "'r', {}, {}"}) {
      CAPTURE(batch);
      CHECK(send(batch) == "refused");
    }
    CHECK(number(c, {"EXISTS", "proctor:{c1}:rows"}) == 0);
    CHECK(balances(ledger) == Texts{"1000 0 0", "400 0 0"});
    CHECK(send("'rs', {'1.1.0', '1.1.0'}, {5, 3}, {'0,1', ''}") == "g\ns");
    CHECK(balances(ledger) == Texts{"1000 3 0", "400 3 0"});
  }

  TEST_CASE("nothing is answered before an epoch has begun") {
    const Home home;
    RedisLedger ledger = home.ledger();
    CHECK(code_of(ledger.apply(Epoch(1), {VoidOp{ask_id(1)}})) == Errc::kNotFound);
    CHECK(code_of(ledger.snapshot()) == Errc::kNotFound);
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    CHECK(code_of(ledger.apply(Epoch(2), {VoidOp{ask_id(1)}})) == Errc::kNotFound);
    CHECK(ledger.apply(Epoch(1), {}).ok());
  }

  TEST_CASE("an older coordinator is fenced and changes nothing") {
    const Home home;
    RedisLedger old_one = home.ledger();
    RedisLedger new_one = home.ledger();
    REQUIRE(old_one.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(old_one.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    REQUIRE(new_one.begin_epoch(Epoch(2), kScopes, {{ask_id(1), micro(10), kBoth}}, kNothing).ok());
    const Texts before = balances(new_one);
    for (const LedgerOp& op :
         {LedgerOp(SettleOp{ask_id(1), micro(5)}), LedgerOp(VoidOp{ask_id(1)}),
          LedgerOp(ReserveOp{ask_id(2), micro(1), kBoth}), LedgerOp(ForgetOp{ask_id(1)})}) {
      const auto answer = old_one.apply(Epoch(1), {op});
      REQUIRE(code_of(answer) == Errc::kConflict);
      CHECK(answer.error().detail.find("fenced") != std::string::npos);
    }
    CHECK(code_of(old_one.begin_epoch(Epoch(1), kScopes, {}, kNothing)) == Errc::kConflict);
    CHECK(balances(new_one) == before);
    CHECK(new_one.apply(Epoch(2), {SettleOp{ask_id(1), micro(5)}}).ok());
  }

  TEST_CASE("two coordinators that took the same epoch cannot both go on") {
    const Home home;
    RedisLedger first = home.ledger();
    RedisLedger copy = home.ledger();
    REQUIRE(first.begin_epoch(Epoch(7), kScopes, {}, kNothing).ok());
    CHECK(code_of(copy.begin_epoch(Epoch(7), kScopes, {}, kNothing)) == Errc::kConflict);
    // The first one may repeat its own, as it does when an answer was lost.
    CHECK(first.begin_epoch(Epoch(7), kScopes, {}, kNothing).ok());
  }

  TEST_CASE("campaigns on one server do not see each other") {
    const Home home;
    RedisLedger one = home.ledger("c1");
    RedisLedger two = home.ledger("c2");
    REQUIRE(one.begin_epoch(Epoch(5), kScopes, {}, kNothing).ok());
    REQUIRE(two.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(one.apply(Epoch(5), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    CHECK(balances(two) == Texts{"1000 0 0", "400 0 0"});
    CHECK(balances(one) == Texts{"1000 0 10", "400 0 10"});
  }

  TEST_CASE("an epoch begins with what the journal holds and nothing else") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(ledger.apply(Epoch(1), {ReserveOp{ask_id(9), micro(99), kBoth}}).ok());
    std::vector<ReserveOp> pending;
    for (std::uint32_t i = 0; i < 5000; ++i) pending.push_back({ask_id(i), micro(0), kBoth});
    pending[3].ask = micro(100);
    pending[4].ask = micro(200);
    REQUIRE(ledger.begin_epoch(Epoch(2), kScopes, pending, {micro(150), micro(50)}).ok());
    CHECK(balances(ledger) == Texts{"1000 150 300", "400 50 300"});
    CHECK(texts(ledger.apply(
              Epoch(2), {ReserveOp{ask_id(4), micro(200), kBoth}, SettleOp{ask_id(3), micro(80)},
                         ReserveOp{ask_id(6000), micro(71), kBoth}})) ==
          Texts{"granted 0 0 replayed", "settled 80 0", "denied 1 1"});
  }

  TEST_CASE("what redis held otherwise than the journal says is told and not adopted") {
    const Home home;
    RedisLedger ledger = home.ledger();
    CHECK(must(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing)).empty());
    const ReserveOp kept{ask_id(1), micro(10), kBoth};
    REQUIRE(
        ledger
            .apply(Epoch(1), {kept, ReserveOp{ask_id(2), micro(20), kBoth},
                              ReserveOp{ask_id(3), micro(5), kBoth}, SettleOp{ask_id(3), micro(5)}})
            .ok());
    const Texts same = must(ledger.begin_epoch(
        Epoch(1), kScopes, {kept, {ask_id(2), micro(20), kBoth}}, {micro(5), micro(5)}));
    CHECK(same.empty());
    CHECK(must(ledger.begin_epoch(Epoch(2), kScopes, {kept, {ask_id(4), micro(1), kBoth}},
                                  kNothing)) ==
          Texts{"global (cap spent reserved): Redis held 1000 5 30, the journal says 1000 0 11",
                "task:a (cap spent reserved): Redis held 400 5 30, the journal says 400 0 11",
                "reservation 2.1.0: Redis held p 20 0,1, the journal says that it is not pending",
                "reservation 4.1.0: Redis held nothing, the journal says p 1 0,1"});
    CHECK(balances(ledger) == Texts{"1000 0 11", "400 0 11"});
    command(home, {"SET", "proctor:{c1}:scopes", "text"});
    CHECK(must(ledger.begin_epoch(Epoch(3), kScopes, {}, kNothing)).size() == 1);
    CHECK(balances(ledger) == Texts{"1000 0 0", "400 0 0"});
  }

  TEST_CASE("a client with the lease works beside the coordinator and is fenced with it") {
    const Home home;
    RedisLedger ledger = home.ledger();
    RedisLedger client = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(4), kScopes, {}, kNothing).ok());
    CHECK(code_of(client.apply(Epoch(4), {VoidOp{ask_id(1)}})) == Errc::kNotFound);
    client.join(ledger.lease());
    CHECK(texts(client.apply(Epoch(4), {ReserveOp{ask_id(1), micro(10), kBoth}})) ==
          Texts{"granted 0 0"});
    CHECK(balances(ledger) == Texts{"1000 0 10", "400 0 10"});
    RedisLedger next = home.ledger();
    REQUIRE(next.begin_epoch(Epoch(5), kScopes, {}, kNothing).ok());
    CHECK(code_of(client.apply(Epoch(4), {SettleOp{ask_id(1), micro(1)}})) == Errc::kConflict);
  }

  TEST_CASE("the script itself refuses another token of its epoch and a ledger half rebuilt") {
    const Home home;
    RedisLedger ledger = home.ledger();
    RedisLedger copy = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(4), kScopes, {}, kNothing).ok());
    LedgerLease stolen = ledger.lease();
    stolen.token = "another";
    LedgerLease earlier = ledger.lease();
    earlier.server = "the one before it restarted with an older file";
    copy.join(earlier);
    CHECK(code_of(copy.apply(Epoch(4), {VoidOp{ask_id(1)}})) == Errc::kNotFound);
    copy.join(stolen);
    CHECK(code_of(copy.apply(Epoch(4), {ReserveOp{ask_id(1), micro(10), kBoth}})) ==
          Errc::kConflict);
    command(home, {"HSET", "proctor:{c1}:head", "state", "building"});
    CHECK(code_of(ledger.apply(Epoch(4), {ReserveOp{ask_id(1), micro(10), kBoth}})) ==
          Errc::kNotFound);
    command(home, {"HSET", "proctor:{c1}:head", "state", "open"});
    CHECK(balances(ledger) == Texts{"1000 0 0", "400 0 0"});
  }

  TEST_CASE("no key of the ledger ever expires") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    RedisConnection c = home.connection();
    for (const char* key : {"proctor:{c1}:head", "proctor:{c1}:scopes", "proctor:{c1}:rows"})
      CHECK(number(c, {"TTL", key}) == -1);
  }

  TEST_CASE("the server is told: version user keys and persistence") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.connect().ok());
    const std::string told = ledger.describe();
    CAPTURE(told);
    for (const char* part : {"redis 7", "user default", "keys proctor:{c1}:*", "persistence none"})
      CHECK(told.find(part) != told.npos);
  }

  TEST_CASE("a journal whose numbers pass a cap is refused before redis is asked") {
    const Home home;
    RedisLedger ledger = home.ledger();
    const ReserveOp a{ask_id(1), micro(200), kBoth};
    const ReserveOp b{ask_id(2), micro(201), kBoth};
    CHECK(code_of(ledger.begin_epoch(Epoch(1), kScopes, {a, b}, kNothing)) == Errc::kCorrupt);
    CHECK(code_of(ledger.begin_epoch(Epoch(1), kScopes, {a, a}, kNothing)) == Errc::kCorrupt);
    CHECK(code_of(ledger.begin_epoch(Epoch(1), kScopes, {}, {micro(1), micro(401)})) ==
          Errc::kCorrupt);
    CHECK(code_of(ledger.begin_epoch(Epoch(1), kScopes, {a}, {micro(300), micro(300)})) ==
          Errc::kCorrupt);
    CHECK(code_of(ledger.begin_epoch(Epoch(1), kScopes, {}, {micro(1)})) == Errc::kInvalid);
  }

  TEST_CASE("a killed redis is unavailable and its successor must be rebuilt") {
    Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    ::kill(home.redis.pid(), SIGKILL);
    CHECK(code_of(ledger.apply(Epoch(1), {SettleOp{ask_id(1), micro(5)}})) == Errc::kUnavailable);
    CHECK(code_of(ledger.apply(Epoch(1), {SettleOp{ask_id(1), micro(5)}})) == Errc::kUnavailable);
    CHECK(code_of(ledger.begin_epoch(Epoch(2), kScopes, {}, kNothing)) == Errc::kUnavailable);
    home.redis.stop();
    // Another server on the same socket, as an operator's restart would leave it.
    const std::string path = home.redis.address().substr(5);
    CommandSpec spec;
    spec.argv = {"redis-server", "--port", "0", "--unixsocket", path, "--save", ""};
    Child again =
        must(Child::start(spec, home.dir.path() / "again.log", Child::Lifetime::kDiesWithParent));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    Errc code = Errc::kUnavailable;
    while (code == Errc::kUnavailable && std::chrono::steady_clock::now() < deadline) {
      code = code_of(ledger.apply(Epoch(1), {SettleOp{ask_id(1), micro(5)}}));
    }
    CHECK(code == Errc::kNotFound);
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {{ask_id(1), micro(10), kBoth}}, kNothing).ok());
    CHECK(texts(ledger.apply(Epoch(1), {SettleOp{ask_id(1), micro(5)}})) == Texts{"settled 5 0"});
  }

  TEST_CASE("a connection cut by the server heals at the next call") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    const std::vector<LedgerOp> batch{ReserveOp{ask_id(1), micro(10), kBoth}};
    REQUIRE(ledger.apply(Epoch(1), batch).ok());
    command(home, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    CHECK(code_of(ledger.apply(Epoch(1), batch)) == Errc::kUnavailable);
    CHECK(texts(ledger.apply(Epoch(1), batch)) == Texts{"granted 0 0 replayed"});
  }

  TEST_CASE("a flushed script cache goes unnoticed") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    command(home, {"SCRIPT", "FLUSH"});
    CHECK(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    command(home, {"SCRIPT", "FLUSH"});
    CHECK(balances(ledger) == Texts{"1000 0 10", "400 0 10"});
  }

  TEST_CASE("emptied keys are noticed and not taken for an empty budget") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    command(home, {"FLUSHALL"});
    CHECK(code_of(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}})) ==
          Errc::kNotFound);
  }

  TEST_CASE("a full or read-only redis is unavailable and changes nothing") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    REQUIRE(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth}}).ok());
    const std::vector<LedgerOp> batch{SettleOp{ask_id(1), micro(10)},
                                      ReserveOp{ask_id(2), micro(10), kBoth}};
    command(home, {"CONFIG", "SET", "maxmemory", "1"});
    auto answer = ledger.apply(Epoch(1), batch);
    CHECK(code_of(answer) == Errc::kUnavailable);
    CHECK(answer.error().detail.find("OOM") != std::string::npos);
    command(home, {"CONFIG", "SET", "maxmemory", "0"});
    CHECK(balances(ledger) == Texts{"1000 0 10", "400 0 10"});

    command(home, {"REPLICAOF", "127.0.0.1", "1"});
    answer = ledger.apply(Epoch(1), batch);
    CHECK(code_of(answer) == Errc::kUnavailable);
    command(home, {"REPLICAOF", "NO", "ONE"});
    CHECK(texts(ledger.apply(Epoch(1), batch)) == Texts{"settled 10 0", "granted 0 0"});
  }

  TEST_CASE("rows that are not ours stop the batch before it writes") {
    const Home home;
    RedisLedger ledger = home.ledger();
    REQUIRE(ledger.begin_epoch(Epoch(1), kScopes, {}, kNothing).ok());
    command(home, {"HSET", "proctor:{c1}:rows", "5.1.0", "nonsense"});
    CHECK(code_of(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(10), kBoth},
                                          VoidOp{ask_id(5)}})) == Errc::kCorrupt);
    CHECK(balances(ledger) == Texts{"1000 0 0", "400 0 0"});
    command(home, {"HSET", "proctor:{c1}:scopes", "1", "400 399 2"});
    CHECK(code_of(ledger.apply(Epoch(1), {ReserveOp{ask_id(1), micro(0), {ScopeId(0)}},
                                          ReserveOp{ask_id(2), micro(0), kBoth}})) ==
          Errc::kCorrupt);
    command(home, {"DEL", "proctor:{c1}:rows"});
    command(home, {"SET", "proctor:{c1}:rows", "text"});
    CHECK(code_of(ledger.apply(Epoch(1), {VoidOp{ask_id(5)}})) == Errc::kCorrupt);
  }

  TEST_CASE("an open reservation takes at most 200 bytes and a forgotten one none") {
    const Home home;
    RedisLedger ledger = home.ledger();
    const std::vector<ScopeSpec> scopes{
        {"global", kLedgerMax}, {"stage:one", kLedgerMax}, {"task:a", kLedgerMax}};
    REQUIRE(ledger.begin_epoch(Epoch(1), scopes, {}, std::vector<MicroUsd>(3)).ok());
    RedisConnection c = home.connection();
    const std::vector<std::string_view> usage{"MEMORY", "USAGE", "proctor:{c1}:rows", "SAMPLES",
                                              "0"};
    constexpr std::uint32_t kRows = 20'000;
    const auto all = [&](auto make) {
      std::vector<LedgerOp> batch;
      for (std::uint32_t i = 0; i < kRows; ++i) {
        batch.push_back(make(ask_id(100'000 + i)));
        if (batch.size() < kLedgerBatch && i + 1 < kRows) continue;
        must(ledger.apply(Epoch(1), batch));
        batch.clear();
      }
    };
    all([](AskId id) {
      return LedgerOp(ReserveOp{id, micro(5'000'000), {ScopeId(0), ScopeId(1), ScopeId(2)}});
    });
    const std::int64_t each = number(c, usage) / kRows;
    MESSAGE("bytes of an open reservation: " << each);
    CHECK(each <= 200);
    all([](AskId id) { return LedgerOp(SettleOp{id, micro(1'000'000)}); });
    CHECK(number(c, {"HLEN", "proctor:{c1}:rows"}) == kRows);
    all([](AskId id) { return LedgerOp(ForgetOp{id}); });
    CHECK(number(c, {"EXISTS", "proctor:{c1}:rows"}) == 0);
    CHECK(number(c, {"TTL", "proctor:{c1}:scopes"}) == -1);
  }
}
