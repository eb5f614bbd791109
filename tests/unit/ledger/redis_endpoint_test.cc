#include <doctest/doctest.h>

#include "common/ledger/redis_connection.h"
#include "common/ledger/redis_ledger.h"

using namespace proctor;

TEST_SUITE("ledger") {
  TEST_CASE("a redis address is read and written back") {
    for (const char* text : {"unix:/run/redis.sock", "tcp://localhost:6379", "tcp://[::1]:7000/3",
                             "tcp://10.0.0.7:1/15", "tls://cache.lab:6380/2", "tls://[::1]:1"}) {
      CAPTURE(text);
      const auto endpoint = parse_redis_endpoint(text);
      REQUIRE(endpoint.ok());
      CHECK(describe(*endpoint) == text);
    }
    CHECK(parse_redis_endpoint("tcp://[::1]:7000/3")->host == "::1");
    CHECK(parse_redis_endpoint("tcp://[::1]:7000/3")->db == 3);
    CHECK_FALSE(parse_redis_endpoint("tcp://[::1]:7000/3")->tls);
    CHECK(parse_redis_endpoint("tls://[::1]:7000/3")->tls);
  }

  TEST_CASE("a wrong redis address is refused with what was expected") {
    const std::string long_path = "unix:/" + std::string(107, 'x');
    for (const std::string& text :
         {std::string(""), std::string("localhost:6379"), std::string("unix:relative"),
          std::string("unix:"), std::string("tcp://host"), std::string("tcp://:6379"),
          std::string("tcp://host:0"), std::string("tcp://host:65536"), std::string("tcp://host:x"),
          std::string("tcp://host:1/x"), std::string("tcp://host:1/"), std::string("redis://h:1"),
          std::string("tls://host"), std::string("tls:host:1"), std::string("unix:/a\0b", 9),
          long_path}) {
      CAPTURE(text);
      const auto endpoint = parse_redis_endpoint(text);
      REQUIRE_FALSE(endpoint.ok());
      CHECK(endpoint.error().code == Errc::kInvalid);
      CHECK(endpoint.error().detail.find("expected unix:/path") != std::string::npos);
    }
  }

  TEST_CASE("credentials in a redis address are refused and not repeated") {
    const auto endpoint = parse_redis_endpoint("tcp://user:hunter2@host:6379");
    REQUIRE_FALSE(endpoint.ok());
    CHECK(endpoint.error().detail.find("hunter2") == std::string::npos);
  }

  TEST_CASE("a campaign id that would break out of its key is refused") {
    for (const std::string& id : {std::string(""), std::string("a{b"), std::string("a}b"),
                                  std::string("a b"), std::string("a\n"), std::string(101, 'a')}) {
      CAPTURE(id);
      RedisLedger::Options options;
      options.campaign = id;
      CHECK(RedisLedger::open(std::move(options)).error().code == Errc::kInvalid);
    }
  }
}
