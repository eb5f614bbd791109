#include "common/ledger/private_redis.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <thread>

#include "tests/integration/ledger/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

fs::path socket_of(const PrivateRedis& redis) {
  return redis.address().substr(5);
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("a private redis listens on a socket of ours alone and leaves nothing behind") {
    const TempDir dir = must(TempDir::create("ledger"));
    fs::path socket;
    pid_t pid = 0;
    {
      PrivateRedis redis = must(PrivateRedis::start(dir.path()));
      CHECK(redis.running());
      socket = socket_of(redis);
      pid = redis.pid();
      struct stat s {};
      REQUIRE(::stat(socket.parent_path().c_str(), &s) == 0);
      CHECK((s.st_mode & 0777) == 0700);
      PrivateRedis moved = std::move(redis);
      CHECK(moved.running());
      moved.stop();
      CHECK_FALSE(moved.running());
      moved.stop();
    }
    CHECK_FALSE(fs::exists(socket.parent_path()));
    CHECK(::kill(pid, 0) != 0);
  }

  TEST_CASE("a server that ends at once is told with the cause, however much it wrote before") {
    const TempDir dir = must(TempDir::create("ledger"));
    const fs::path bin = dir.path() / "bin";
    must(make_dirs(bin));
    must(write_file(
        bin / "redis-server",
        "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do\n  printf 'line\\n\\n\\n\\n\\n\\n\\n'\n"
        "done\nprintf '%0600d\\n' 0 | fold -w 20\necho 'Failed opening: no room left'\nexit 1\n"));
    fs::permissions(bin / "redis-server", fs::perms::owner_all);
    const std::string before = ::getenv("PATH");
    ::setenv("PATH", (bin.string() + ":" + before).c_str(), 1);
    const auto refused = PrivateRedis::start(dir.path() / "state");
    ::setenv("PATH", before.c_str(), 1);
    CHECK(code_of(refused) == Errc::kUnavailable);
    CHECK_MESSAGE(refused.error().detail.ends_with("; Failed opening: no room left"),
                  refused.error().detail);
  }

  TEST_CASE("the address of a server that was killed is not left behind") {
    const TempDir dir = must(TempDir::create("ledger"));
    const fs::path file = PrivateRedis::address_file(dir.path());
    {
      PrivateRedis redis = must(PrivateRedis::start(dir.path()));
      REQUIRE(fs::exists(file));
      REQUIRE(::kill(redis.pid(), SIGKILL) == 0);
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);
      while (redis.running() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      REQUIRE_FALSE(redis.running());
      redis.stop();
      CHECK_FALSE(fs::exists(file));
      REQUIRE(write_file(file, "unix:/of/another\n").ok());
    }
    CHECK(fs::exists(file));  // not ours to remove
  }

  TEST_CASE("a state folder too long for a socket address gets one in tmp") {
    const TempDir dir = must(TempDir::create("ledger"));
    const fs::path deep = dir.path() / std::string(90, 'd') / "state";
    PrivateRedis redis = must(PrivateRedis::start(deep));
    CHECK(redis.address().size() <= 5 + 107);
    CHECK(redis.address().starts_with("unix:/tmp/"));
    CHECK(
        RedisConnection::open(must(parse_redis_endpoint(redis.address())), std::chrono::seconds(60))
            .ok());
  }

  TEST_CASE("two private servers do not meet") {
    const TempDir dir = must(TempDir::create("ledger"));
    PrivateRedis one = must(PrivateRedis::start(dir.path()));
    PrivateRedis two = must(PrivateRedis::start(dir.path()));
    CHECK(one.address() != two.address());
    ::kill(one.pid(), SIGKILL);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (one.running() && std::chrono::steady_clock::now() < deadline) continue;
    CHECK_FALSE(one.running());
    CHECK(two.running());
  }

  TEST_CASE("a server that may evict is refused with the line to change") {
    const Home home;
    RedisConnection c = home.connection();
    must(c.call(
        std::array<std::string_view, 4>{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}));
    RedisLedger ledger = home.ledger();
    const auto refused = ledger.connect();
    CHECK(code_of(refused) == Errc::kInvalid);
    CHECK(refused.error().detail.find("maxmemory-policy noeviction") != std::string::npos);
    must(
        c.call(std::array<std::string_view, 4>{"CONFIG", "SET", "maxmemory-policy", "noeviction"}));
    CHECK(ledger.connect().ok());
  }

  TEST_CASE("a private server that was killed is started again at its address and empty") {
    const TempDir dir = must(TempDir::create());
    PrivateRedis redis = must(PrivateRedis::start(dir.path()));
    const std::string address = redis.address();
    const pid_t first = redis.pid();
    const RedisEndpoint endpoint = must(parse_redis_endpoint(address));
    must(must(RedisConnection::open(endpoint, std::chrono::seconds(60)))
             .call(std::array<std::string_view, 3>{"SET", "k", "v"}));
    redis.tend();
    CHECK(redis.pid() == first);
    REQUIRE(::kill(first, SIGKILL) == 0);
    bool back = false;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (!back && std::chrono::steady_clock::now() < until) {
      redis.tend();
      auto again = RedisConnection::open(endpoint, std::chrono::seconds(1));
      if (!again.ok()) continue;
      const auto size = again.value().call(std::array<std::string_view, 1>{"DBSIZE"});
      back = size.ok() && (*size)->integer == 0;
    }
    CHECK(back);
    CHECK(redis.pid() != first);
    CHECK(redis.address() == address);
  }

  TEST_CASE("a password is asked for and a wrong one is not a matter of waiting") {
    const Home home;
    RedisConnection c = home.connection();
    must(c.call(
        std::array<std::string_view, 6>{"ACL", "SETUSER", "proctor", "on", ">sesame", "~*"}));
    must(c.call(std::array<std::string_view, 4>{"ACL", "SETUSER", "proctor", "+@all"}));
    must(c.call(std::array<std::string_view, 4>{"CONFIG", "SET", "requirepass", "other"}));
    RedisEndpoint endpoint = must(parse_redis_endpoint(home.redis.address()));
    const auto open = [&] { return RedisConnection::open(endpoint, std::chrono::seconds(60)); };
    CHECK(code_of(open()) == Errc::kInvalid);
    endpoint.password = Secret("wrong");
    const auto refused = open();
    CHECK(code_of(refused) == Errc::kInvalid);
    CHECK(refused.error().detail.find("wrong") == std::string::npos);
    endpoint.password = Secret("other");
    CHECK(open().ok());
    endpoint.user = "proctor";
    endpoint.password = Secret("sesame");
    CHECK(open().ok());
    endpoint.db = 3;
    CHECK(open().ok());
    endpoint.db = 99;
    CHECK(code_of(open()) == Errc::kInvalid);
  }

  TEST_CASE("nobody there is unavailable and names the address") {
    RedisEndpoint endpoint = must(parse_redis_endpoint("unix:/nonexistent/redis.sock"));
    const auto refused = RedisConnection::open(endpoint, std::chrono::seconds(1));
    CHECK(code_of(refused) == Errc::kUnavailable);
    CHECK(refused.error().detail.find("unix:/nonexistent/redis.sock") != std::string::npos);
  }
}
