#pragma once
// A private redis-server and a ledger on it, for one test.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"

namespace proctor::test {

inline MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}
inline AskId ask_id(std::uint32_t run, std::uint32_t attempt = 1, std::uint32_t seq = 0) {
  return {{RunId(run), AttemptNo(attempt)}, seq};
}

// The value, or a failed test that shows the error's text.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(result.error().detail);
  return std::move(result).value();
}
template <class T>
Errc code_of(const Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().code;
}

struct Home {
  TempDir dir = must(TempDir::create("ledger"));
  PrivateRedis redis = must(PrivateRedis::start(dir.path()));

  RedisLedger ledger(const std::string& campaign = "c1") const {
    RedisLedger::Options options;
    options.endpoint = must(parse_redis_endpoint(redis.address()));
    options.campaign = campaign;
    return must(RedisLedger::open(std::move(options)));
  }
  RedisConnection connection() const {
    return must(RedisConnection::open(must(parse_redis_endpoint(redis.address())),
                                      std::chrono::milliseconds(60'000)));
  }
};

inline std::string text_of(const LedgerAnswer& answer) {
  if (const auto* r = std::get_if<ReserveAnswer>(&answer)) {
    return std::string(r->kind == ReserveAnswer::Kind::kGranted ? "granted" : "denied") + " " +
           std::to_string(r->short_scope.raw()) + " " + std::to_string(r->short_by.micros()) +
           (r->replayed ? " replayed" : "");
  }
  if (const auto* s = std::get_if<SettleAnswer>(&answer)) {
    return "settled " + std::to_string(s->charged.micros()) + " " +
           std::to_string(s->overrun.micros()) + (s->replayed ? " replayed" : "");
  }
  if (const auto* e = std::get_if<Error>(&answer)) {
    return std::string(to_string(e->code)) + " " + e->detail;
  }
  return "done";
}

inline std::string text_of(const ScopeBalance& b) {
  return std::to_string(b.cap.micros()) + " " + std::to_string(b.spent.micros()) + " " +
         std::to_string(b.reserved.micros());
}

}  // namespace proctor::test
