// Reserve and settle pairs per second against a private redis-server, three scopes each (global,
// stage, one of 100 tasks), one blocking client: the coordinator's ledger thread.  Every batch
// settles and forgets what the one before reserved, as the coordinator does.  Redis' own processor
// time a pair is told beside it: that is what another load on the machine does not change.
#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
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
constexpr auto kFor = std::chrono::milliseconds(400);
constexpr std::size_t kRounds = 5;  // the median of them is told

// One ask per task, another amount each time.
MicroUsd ask_of(std::uint32_t run) {
  return MicroUsd::from_micros(5'000'000 + run % kTasks * 1'000);
}
MicroUsd actual_of(const AskId& id) {
  return MicroUsd::from_micros(1'000'000 + id.attempt.run.raw() * std::int64_t{7'919} % 3'000'000);
}

struct Pace {
  double pairs_per_s = 0;
  double redis_us = 0;  // user and system time of the server, a pair
};

double server_cpu_us(RedisConnection& redis) {
  const RedisReply reply = must(redis.call(std::array<std::string_view, 2>{"INFO", "cpu"}));
  const std::string info(reply->str, reply->len);
  const auto field = [&](const std::string& name) {
    const std::size_t at = info.find("\n" + name + ":");
    return at == info.npos ? 0 : std::strtod(info.c_str() + at + name.size() + 2, nullptr);
  };
  return 1e6 * (field("used_cpu_user") + field("used_cpu_sys"));
}

Pace measure(RedisLedger& ledger, RedisConnection& watch, Epoch epoch, std::uint32_t batch_size) {
  std::uint32_t run = 0;
  std::uint64_t pairs = 0;
  const double cpu = server_cpu_us(watch);
  std::vector<LedgerOp> batch;
  std::vector<AskId> open;
  std::vector<AskId> ended;
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  while (now - begin < kFor) {
    batch.clear();
    for (const AskId& id : ended) batch.emplace_back(ForgetOp{id});
    for (const AskId& id : open) batch.emplace_back(SettleOp{id, actual_of(id)});
    ended = std::move(open);
    open.clear();
    for (std::uint32_t i = 0; i < batch_size; ++i, ++run) {
      open.push_back({{RunId(run), AttemptNo(1)}, 0});
      batch.emplace_back(
          ReserveOp{open.back(), ask_of(run), {ScopeId(0), ScopeId(1), ScopeId(2 + run % kTasks)}});
    }
    for (const LedgerAnswer& answer : must(ledger.apply(epoch, batch))) {
      if (std::holds_alternative<Error>(answer)) std::exit(1);
    }
    pairs += ended.size();
    now = std::chrono::steady_clock::now();
  }
  const auto done = static_cast<double>(pairs);
  return {done / std::chrono::duration<double>(now - begin).count(),
          (server_cpu_us(watch) - cpu) / done};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
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
  const MicroUsd cap = MicroUsd::from_micros(1'000'000'000'000);  // never short
  std::vector<ScopeSpec> scopes{{"global", cap}, {"stage:all", cap}};
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    scopes.push_back({"task:" + std::to_string(i), cap});
  }
  struct Row {
    std::uint32_t batch;
    const char* pace;
    const char* cost;
  };
  RedisConnection watch = must(
      RedisConnection::open(must(parse_redis_endpoint(redis.address())), std::chrono::seconds(5)));
  std::uint64_t epoch = 0;
  for (const Row& row : {Row{64, "ledger.pairs_per_s", "ledger.redis_us_per_pair"},
                         Row{1, "ledger.pairs_per_s_1", "ledger.redis_us_per_pair_1"},
                         Row{16, "ledger.pairs_per_s_16", "ledger.redis_us_per_pair_16"}}) {
    std::vector<double> pace, cost;
    for (std::size_t i = 0; i < kRounds; ++i) {
      ++epoch;
      must(ledger.begin_epoch(Epoch(epoch), scopes, {}, std::vector<MicroUsd>(scopes.size())));
      const Pace p = measure(ledger, watch, Epoch(epoch), row.batch);
      pace.push_back(p.pairs_per_s);
      cost.push_back(p.redis_us);
    }
    std::printf("figure %s %.0f 1/s\n", row.pace, median(pace));
    std::printf("figure %s %.1f us\n", row.cost, median(cost));
    std::fflush(stdout);
  }
  ++epoch;
  must(ledger.begin_epoch(Epoch(epoch), scopes, {}, std::vector<MicroUsd>(scopes.size())));
  memory(ledger, watch, Epoch(epoch));
  return 0;
}
