// Reserve and settle pairs per second against a private redis-server, three scopes each (global,
// stage, one of 100 tasks), one blocking client: the coordinator's ledger thread.  Every batch
// settles and forgets what the one before reserved, as the coordinator does.
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
  return 0;
}
