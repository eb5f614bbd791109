#include "tests/fault/ledger/torture_redis.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

#include "common/ledger/redis_connection.h"

namespace proctor::torture {

namespace {

TempDir short_folder() {
  auto made = TempDir::create("torture");
  REQUIRE(made.ok());
  return std::move(made).value();
}

}  // namespace

SufferingRedis::SufferingRedis(fs::path folder)
    : folder_(std::move(folder)), socket_dir_(short_folder()) {
  start(With::kNothing);
}

void SufferingRedis::kill() {
  child_->signal(SIGKILL);
  REQUIRE(child_->wait(std::chrono::seconds(180)).has_value());
}

void SufferingRedis::copy_for_later() {
  old_copy_ = folder_ / "copy";
  fs::remove_all(old_copy_);
  fs::copy(life(), old_copy_, fs::copy_options::recursive);
}

void SufferingRedis::start(With what) {
  if (what == With::kOldCopy && old_copy_.empty()) what = With::kNothing;
  if (what != With::kEverything) {
    ++lives_;
    fs::create_directories(life());
  }
  if (what == With::kOldCopy) {
    fs::copy(old_copy_, life(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  CommandSpec spec;
  spec.argv = {"redis-server",
               "--port",
               "0",
               "--unixsocket",
               socket().string(),
               "--dir",
               life().string(),
               "--save",
               "",
               "--appendonly",
               "yes",
               "--appendfsync",
               "no",
               "--auto-aof-rewrite-percentage",
               "0",
               "--aof-use-rdb-preamble",
               "no",
               "--maxclients",
               "1000"};
  auto started = Child::start(spec, folder_ / "redis.log", Child::Lifetime::kDiesWithParent);
  REQUIRE(started.ok());
  child_.emplace(std::move(started).value());
  const RedisEndpoint endpoint = parse_redis_endpoint(address()).value();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    auto there = RedisConnection::open(endpoint, std::chrono::seconds(60));
    if (there.ok()) return;
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < until, there.error().detail);
    std::this_thread::yield();
  }
}

}  // namespace proctor::torture
