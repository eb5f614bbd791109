#pragma once
// A redis-server of the test's own on a unix socket, which can be killed, stopped and started anew
// (empty) at the same place.
#include <csignal>
#include <optional>

#include "tests/support/programs.h"

namespace proctor::testing {

class RedisServer {
 public:
  RedisServer() : dir_(must(TempDir::create("redis"))) { start(); }
  std::string address() const { return "unix:" + socket().string(); }
  void start() {
    CommandSpec spec;
    spec.argv = {"redis-server",
                 "--port",
                 "0",
                 "--unixsocket",
                 socket().string(),
                 "--dir",
                 dir_.path().string(),
                 "--save",
                 "",
                 "--appendonly",
                 "no"};
    child_.emplace(must(Child::start(spec, dir_.path() / "log", Child::Lifetime::kDiesWithParent)));
    CommandSpec ping;
    ping.argv = {"redis-cli", "-s", socket().string(), "ping"};
    REQUIRE(eventually([&] { return contains(must(run_command(ping)).out, "PONG"); }));
  }
  void kill() {
    child_->signal(SIGKILL);
    REQUIRE(child_->wait(std::chrono::seconds(180)).has_value());
  }
  // One command of redis-cli.
  void tell(std::vector<std::string> words) const {
    CommandSpec spec;
    spec.argv = {"redis-cli", "-s", socket().string()};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    REQUIRE(contains(must(run_command(spec)).out, "OK"));
  }
  void freeze() { child_->signal(SIGSTOP); }
  void thaw() { child_->signal(SIGCONT); }

 private:
  fs::path socket() const { return dir_.path() / "redis.sock"; }
  TempDir dir_;
  std::optional<Child> child_;
};

}  // namespace proctor::testing
