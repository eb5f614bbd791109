// A real socket, and clients that behave as badly as they can.
#include "worker/meter/meter_server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/owned.h"
#include "worker/meter/meter_protocol.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kBound{120};

struct EchoMeter final : MeterServer::Meter {
  std::string answer(std::string_view line) override {
    ++lines;
    longest = std::max(longest.load(), line.size());
    return "got " + std::to_string(line.size()) + "\n";
  }
  std::string tick() override {
    ++ticks;
    return tell.exchange(false) ? "news\n" : "";
  }
  std::atomic<std::size_t> lines{0}, longest{0}, ticks{0};
  std::atomic<bool> tell{false};
};

class Peer {
 public:
  explicit Peer(const fs::path& dir) {
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const UniqueFd folder(::open(dir.c_str(), O_PATH | O_CLOEXEC));
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/socket";
    std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
    connected = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0;
  }
  // What the other side would take within the bound; false when it has cut us off.
  bool say(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void hang_up() const { ::shutdown(fd_.get(), SHUT_WR); }
  // One line, or "" at the end of the stream or of our patience.
  std::string hear() {
    const auto until = Clock::now() + kBound;
    for (;;) {
      if (const std::size_t end = in_.find('\n'); end != std::string::npos) {
        std::string line = in_.substr(0, end);
        in_.erase(0, end + 1);
        return line;
      }
      pollfd p{fd_.get(), POLLIN, 0};
      if (until < Clock::now() || ::poll(&p, 1, 1000) < 0) return "";
      char buffer[4096];
      if (p.revents == 0) continue;
      const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (n <= 0) return "";
      in_.append(buffer, static_cast<std::size_t>(n));
    }
  }
  int fd() const { return fd_.get(); }
  bool connected = false;

 private:
  UniqueFd fd_;
  std::string in_;
};

struct Scene {
  EchoMeter meter;
  TempDir temp = TempDir::create("meter").value();
  std::unique_ptr<MeterServer> server = MeterServer::start(temp.path(), meter).value();
  // The one that behaves: served whatever the others do.
  void check_served() {
    Peer good(temp.path());
    REQUIRE(good.say("hello\n"));
    CHECK(good.hear() == "got 5");
  }
};

}  // namespace

TEST_SUITE("meter") {
  TEST_CASE("each line is answered in order and news reach every client") {
    Scene s;
    Peer a(s.temp.path()), b(s.temp.path());
    REQUIRE(a.say("1\n22\n333\n"));
    CHECK(a.hear() == "got 1");
    CHECK(a.hear() == "got 2");
    CHECK(a.hear() == "got 3");
    REQUIRE(b.say("x\n"));
    CHECK(b.hear() == "got 1");
    s.meter.tell = true;
    CHECK(a.hear() == "news");
    CHECK(b.hear() == "news");
  }

  TEST_CASE("a folder of any length has its socket and a second one is refused") {
    EchoMeter meter;
    const TempDir temp = TempDir::create("meter").value();
    const fs::path deep = temp.path() / std::string(120, 'd') / std::string(120, 'e');
    REQUIRE(make_dirs(deep).ok());
    const auto server = MeterServer::start(deep, meter);
    REQUIRE(server.ok());
    Peer p(deep);
    REQUIRE(p.say("a\n"));
    CHECK(p.hear() == "got 1");
    CHECK_FALSE(MeterServer::start(deep, meter).ok());
    CHECK_FALSE(MeterServer::start(temp.path() / "none", meter).ok());
  }

  TEST_CASE("a line without end is cut off at its bound and nobody else notices") {
    Scene s;
    Peer bad(s.temp.path());
    // As much of a gigabyte as it lets us say.
    const std::string block(std::size_t{1} << 20, 'x');
    std::size_t said = 0;
    while (said < 1024 && bad.say(block)) ++said;
    CHECK(said < 8);
    // What was unread when it was cut off may have taken the reason with it.
    const std::string why = bad.hear();
    const bool told = why.empty() || why.find("a line longer than 65536 bytes") != why.npos;
    CHECK(told);
    CHECK(s.meter.lines == 0);
    s.check_served();
  }

  TEST_CASE("the longest line is whole and one byte more is told") {
    Scene s;
    Peer p(s.temp.path());
    REQUIRE(p.say(std::string(kMeterLineBytes, 'x') + "\n"));
    CHECK(p.hear() == "got 65536");
    REQUIRE(p.say(std::string(kMeterLineBytes + 1, 'x')));
    CHECK(p.hear() == "{\"answer\":\"error\",\"reason\":\"a line longer than 65536 bytes\"}");
    CHECK(p.hear() == "");
  }

  TEST_CASE("half a line is told and one that stalls holds nobody up") {
    Scene s;
    Peer stalls(s.temp.path()), half(s.temp.path());
    REQUIRE(stalls.say("{\"op\":"));
    REQUIRE(half.say("whole\n{\"op\""));
    half.hang_up();
    CHECK(half.hear() == "got 5");
    CHECK(half.hear() == "{\"answer\":\"error\",\"reason\":\"the last line has no end\"}");
    CHECK(half.hear() == "");
    s.check_served();
    REQUIRE(stalls.say("\n"));
    CHECK(stalls.hear() == "got 6");
  }

  TEST_CASE("one too many is told and the rest go on") {
    Scene s;
    std::vector<std::unique_ptr<Peer>> peers;
    for (std::size_t i = 0; i < kMeterClientsMax; ++i) {
      peers.push_back(std::make_unique<Peer>(s.temp.path()));
      REQUIRE(peers.back()->say("a\n"));
      REQUIRE(peers.back()->hear() == "got 1");
    }
    Peer extra(s.temp.path());
    CHECK(extra.hear() == "{\"answer\":\"error\",\"reason\":\"16 clients are connected already\"}");
    REQUIRE(peers[3]->say("bb\n"));
    CHECK(peers[3]->hear() == "got 2");
    peers.pop_back();
    const auto until = Clock::now() + kBound;
    bool again = false;
    while (!again && Clock::now() < until) {
      Peer next(s.temp.path());
      again = next.say("a\n") && next.hear() == "got 1";
    }
    CHECK(again);
  }

  TEST_CASE("who floods or does not read waits while others are served") {
    Scene s;
    Peer flood(s.temp.path());
    std::atomic<bool> done{false};
    std::jthread writer([&] {
      const std::string lines(4000, '\n');
      ::fcntl(flood.fd(), F_SETFL, O_NONBLOCK);
      while (!done) {
        pollfd p{flood.fd(), POLLOUT, 0};
        if (::poll(&p, 1, 10) == 1)
          static_cast<void>(::send(flood.fd(), lines.data(), lines.size(), MSG_NOSIGNAL));
      }
    });
    for (int i = 0; i < 3; ++i) s.check_served();
    const std::size_t before = s.meter.lines, ticks = s.meter.ticks;
    const auto began = Clock::now();
    while (s.meter.ticks < ticks + 10 && Clock::now() < began + kBound) std::this_thread::yield();
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(Clock::now() - began).count();
    CHECK(s.meter.lines - before <= kMeterLinesPerSecond * static_cast<std::size_t>(seconds + 2));
    CHECK(ticks + 10 <= s.meter.ticks);  // its clock is not held up
    done = true;
  }

  TEST_CASE("what was said before the end is counted") {
    Scene s;
    {
      Peer p(s.temp.path());
      REQUIRE(p.say("a\nb\nc\n"));
    }
    s.server.reset();
    CHECK(s.meter.lines == 3);
  }
}

}  // namespace proctor
