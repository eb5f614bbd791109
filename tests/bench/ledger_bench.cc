// Reserve and settle pairs per second against a private redis-server, three scopes each (global,
// stage, one of 100 tasks), one blocking client: the coordinator's ledger thread.  Every batch
// settles and forgets what the one before reserved, as the coordinator does.
#include <hiredis/hiredis.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"

using namespace proctor;

namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "ledger_bench: %s\n", result.error().detail.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

constexpr std::uint32_t kTasks = 100;
constexpr auto kFor = std::chrono::milliseconds(1500);

double pairs_per_s(RedisLedger& ledger, Epoch epoch, std::uint32_t batch_size) {
  const MicroUsd ask = MicroUsd::from_micros(5'000'000);
  const MicroUsd actual = MicroUsd::from_micros(1'234'567);
  std::uint32_t run = 0;
  std::uint64_t pairs = 0;
  std::vector<LedgerOp> batch;
  std::vector<AskId> open;
  std::vector<AskId> ended;
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  while (now - begin < kFor) {
    batch.clear();
    for (const AskId& id : ended) batch.emplace_back(ForgetOp{id});
    for (const AskId& id : open) batch.emplace_back(SettleOp{id, actual});
    ended = std::move(open);
    open.clear();
    for (std::uint32_t i = 0; i < batch_size; ++i, ++run) {
      open.push_back({{RunId(run), AttemptNo(1)}, 0});
      batch.emplace_back(
          ReserveOp{open.back(), ask, {ScopeId(0), ScopeId(1), ScopeId(2 + run % kTasks)}});
    }
    for (const LedgerAnswer& answer : must(ledger.apply(epoch, batch))) {
      if (std::holds_alternative<Error>(answer)) std::exit(1);
    }
    pairs += ended.size();
    now = std::chrono::steady_clock::now();
  }
  return static_cast<double>(pairs) / std::chrono::duration<double>(now - begin).count();
}

std::int64_t bytes_of_rows(RedisConnection& redis) {
  const RedisReply reply = must(redis.call(
      std::array<std::string_view, 5>{"MEMORY", "USAGE", "proctor:{bench}:rows", "SAMPLES", "0"}));
  return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;  // nil: no such key
}

// What Redis holds for 10,000 open reservations, each, and what is left of all when they have
// ended.
void memory(RedisLedger& ledger, RedisConnection& redis, Epoch epoch) {
  constexpr std::uint32_t kOpen = 10'000;
  constexpr std::uint32_t kStep = 500;
  const auto each = [&](const auto& make) {
    for (std::uint32_t from = 0; from < kOpen; from += kStep) {
      std::vector<LedgerOp> batch;
      for (std::uint32_t run = from; run < from + kStep; ++run)
        batch.push_back(make(run, AskId{{RunId(run), AttemptNo(1)}, 0}));
      must(ledger.apply(epoch, batch));
    }
  };
  each([](std::uint32_t run, const AskId& id) -> LedgerOp {
    return ReserveOp{
        id, MicroUsd::from_micros(5'000'000), {ScopeId(0), ScopeId(1), ScopeId(2 + run % kTasks)}};
  });
  std::printf("figure ledger.bytes_per_open %.1f bytes\n",
              static_cast<double>(bytes_of_rows(redis)) / kOpen);
  each([](std::uint32_t, const AskId& id) -> LedgerOp {
    return SettleOp{id, MicroUsd::from_micros(1'234'567)};
  });
  each([](std::uint32_t, const AskId& id) -> LedgerOp { return ForgetOp{id}; });
  std::printf("figure ledger.bytes_after_end %lld bytes\n",
              static_cast<long long>(bytes_of_rows(redis)));
}

}  // namespace

int main() {
  const TempDir dir = must(TempDir::create("ledger-bench"));
  const PrivateRedis redis = must(PrivateRedis::start(dir.path()));
  RedisLedger::Options options;
  options.endpoint = must(parse_redis_endpoint(redis.address()));
  options.campaign = "bench";
  RedisLedger ledger = must(RedisLedger::open(std::move(options)));
  std::vector<ScopeSpec> scopes{{"global", kLedgerMax}, {"stage:all", kLedgerMax}};
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    scopes.push_back({"task:" + std::to_string(i), kLedgerMax});
  }
  struct Row {
    std::uint32_t batch;
    const char* name;
  };
  std::uint64_t epoch = 0;
  for (const Row& row : {Row{64, "ledger.pairs_per_s"}, Row{1, "ledger.pairs_per_s_1"},
                         Row{16, "ledger.pairs_per_s_16"}}) {
    ++epoch;
    must(ledger.begin_epoch(Epoch(epoch), scopes, {}, std::vector<MicroUsd>(scopes.size())));
    std::printf("figure %s %.0f 1/s\n", row.name, pairs_per_s(ledger, Epoch(epoch), row.batch));
    std::fflush(stdout);
  }
  ++epoch;
  must(ledger.begin_epoch(Epoch(epoch), scopes, {}, std::vector<MicroUsd>(scopes.size())));
  RedisConnection watch = must(
      RedisConnection::open(must(parse_redis_endpoint(redis.address())), std::chrono::seconds(5)));
  memory(ledger, watch, Epoch(epoch));
  return 0;
}
