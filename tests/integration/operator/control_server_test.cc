// The control socket among clients that talk too much, too long, or not at all.
#include "coordinator/shell/control_server.h"
#include "common/wire/asio.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "common/base/owned.h"
#include "coordinator/shell/control_protocol.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Answers "say X" with X, keeps the answer of "later" to itself, and counts.
class Desk {
 public:
  explicit Desk(ControlServer::Times times = {}, const fs::path& below = {}) {
    const fs::path folder = dir_.path() / below;
    REQUIRE(make_dirs(folder).ok());
    path_ = folder / "control.sock";
    server_ = must(ControlServer::open(
        io_, path_,
        [this](const std::string& line, ControlServer::Reply reply) {
          ++questions;
          if (line == "later") {
            later_ = std::move(reply);
            return;
          }
          if (line == "first") {
            took = reply.first("taken\n");
          }
          reply(line + "\n");
        },
        times));
    thread_ = std::jthread([this] { io_.run(); });
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() {
    boost::asio::post(io_, [this] { server_.reset(); });
    thread_.join();
  }

  UniqueFd connect() const { return UniqueFd(must(connect_control(path_))); }
  const fs::path& path() const { return path_; }
  void answer_later(const std::string& text) {
    boost::asio::post(io_, [this, text] { later_(text); });
  }
  std::atomic<int> questions{0};
  std::atomic<bool> took{false};

 private:
  TempDir dir_ = must(TempDir::create("control"));
  fs::path path_;
  boost::asio::io_context io_{1};
  std::unique_ptr<ControlServer> server_;
  ControlServer::Reply later_;
  std::jthread thread_;
};

void say(const UniqueFd& fd, std::string_view bytes) {
  timeval limit{180, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

// A line without its end; "" at the end of the connection.
std::string hear(const UniqueFd& fd) {
  timeval limit{180, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string out;
  for (char c = 0; ::recv(fd.get(), &c, 1, 0) == 1;) {
    if (c == '\n') return out;
    out.push_back(c);
  }
  return out;
}

}  // namespace

TEST_SUITE("control server") {
  TEST_CASE("each line is answered and only its owner may connect") {
    Desk desk;
    struct stat info {};
    REQUIRE(::stat(desk.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0600U);
    const UniqueFd one = desk.connect();
    say(one, "a\nb\n");
    CHECK(hear(one) == "a");
    CHECK(hear(one) == "b");
    say(one, "c\n");
    CHECK(hear(one) == "c");
  }

  TEST_CASE("a folder deeper than a socket address is served too") {
    Desk desk({}, std::string(120, 'd') + "/" + std::string(120, 'e'));
    const UniqueFd one = desk.connect();
    say(one, "deep\n");
    CHECK(hear(one) == "deep");
  }

  TEST_CASE("a line that is too long or has no end is told so and ends the connection") {
    Desk desk;
    const UniqueFd exact = desk.connect();
    say(exact, std::string(kControlLineBytes, 'x') + "\n");
    CHECK(hear(exact).size() == kControlLineBytes);
    const UniqueFd longer = desk.connect();
    say(longer, std::string(kControlLineBytes + 1, 'x'));
    CHECK(contains(hear(longer), "a line longer than 65536 bytes"));
    CHECK(hear(longer).empty());
    const UniqueFd endless = desk.connect();
    say(endless, "no end");
    ::shutdown(endless.get(), SHUT_WR);
    CHECK(contains(hear(endless), "the last line has no end"));
  }

  TEST_CASE("who waits for an answer delays nobody and may leave") {
    Desk desk;
    const UniqueFd patient = desk.connect();
    say(patient, "later\nnext\n");
    REQUIRE(eventually([&] { return desk.questions == 1; }));
    {
      const UniqueFd other = desk.connect();
      say(other, "now\n");
      CHECK(hear(other) == "now");
      say(other, "then gone\n");
    }
    desk.answer_later("at last\n");
    CHECK(hear(patient) == "at last");
    CHECK(hear(patient) == "next");
  }

  TEST_CASE("who says nothing or reads nothing is cut off") {
    // One bound is short at a time: we may be too slow ourselves for the others.
    Desk of_lines({.line = 100ms, .answer = 300s, .write = 300s});
    const UniqueFd silent = of_lines.connect();
    CHECK(hear(silent).empty());
    Desk of_answers({.line = 300s, .answer = 100ms, .write = 300s});
    const UniqueFd waits = of_answers.connect();
    say(waits, "later\n");
    CHECK(contains(hear(waits), "no answer yet"));
    of_answers.answer_later("too late\n");  // nobody hears it, and nothing breaks
    Desk desk({.line = 300s, .answer = 300s, .write = 100ms});
    const UniqueFd deaf = desk.connect();
    const std::string much(30'000, 'y');
    for (int i = 0; i < 200; ++i) say(deaf, much + "\n");  // ends when the server hangs up
    const UniqueFd after = desk.connect();
    say(after, "fine\n");
    CHECK(hear(after) == "fine");
  }

  TEST_CASE("too many clients are refused and room comes back") {
    Desk desk({.line = 60s, .answer = 60s, .write = 10s});
    std::vector<UniqueFd> many;
    for (std::size_t i = 0; i < ControlServer::kClientsMax; ++i) {
      many.push_back(desk.connect());
      say(many.back(), "here\n");
      REQUIRE(hear(many.back()) == "here");
    }
    const UniqueFd over = desk.connect();
    CHECK(contains(hear(over), "32 clients are connected already"));
    many.pop_back();
    CHECK(eventually(
        [&] {
          const UniqueFd next = desk.connect();
          say(next, "room\n");
          return hear(next) == "room";
        },
        180s));
  }

  TEST_CASE("a socket that a killed coordinator left is replaced and nothing is left at the end") {
    const TempDir dir = must(TempDir::create("control"));
    const fs::path path = dir.path() / "control.sock";
    boost::asio::io_context io;
    const auto nothing = [](const std::string&, const ControlServer::Reply&) {};
    CHECK(connect_control(path).error().code == Errc::kNotFound);
    {
      auto first = must(ControlServer::open(io, path, nothing));
      fs::rename(path, dir.path() / "kept");
      first.reset();
      fs::rename(dir.path() / "kept", path);  // as after a kill
    }
    CHECK(connect_control(path).error().code == Errc::kUnavailable);
    auto second = must(ControlServer::open(io, path, nothing));
    CHECK(connect_control(path).ok());
    second.reset();
    CHECK_FALSE(fs::exists(path));
  }

  TEST_CASE("a word in front of the answer comes first") {
    Desk desk;
    const UniqueFd one = desk.connect();
    say(one, "first\n");
    CHECK(hear(one) == "taken");
    CHECK(hear(one) == "first");
    CHECK(desk.took);
  }
}

// A coordinator as it is while it hangs: its socket is there, and its loop does not turn.
TEST_SUITE("control call") {
  namespace {

  struct Stopped {
    TempDir dir = must(TempDir::create("control"));
    boost::asio::io_context io{1};
    fs::path path = dir.path() / "control.sock";
    int asked = 0, taken = 0, waits = 0;
    std::function<void(const ControlServer::Reply&)> then = [](const ControlServer::Reply& reply) {
      reply(encode(ControlAnswer{ControlAnswer::Verdict::kDone, "done", {}}));
    };
    std::unique_ptr<ControlServer> server = must(ControlServer::open(
        io, path, [this](const std::string& line, const ControlServer::Reply& reply) {
          ++asked;
          const Result<ControlRequest> request = parse_control_request(line);
          REQUIRE(request.ok());
          if (request->taken && !reply.first(kTakenLine)) return;
          ++taken;
          then(reply);
        }));
    ControlHeard call(const std::string& act, ControlPatience patience) {
      ControlRequest request;
      request.act = act;
      return must(call_control(path, request, patience, [this] { ++waits; }));
    }
    bool wakes() {
      return eventually([this] {
        io.restart();
        io.poll();
        return asked == 1;
      });
    }
  };
  constexpr ControlPatience kShort{1ms, 40ms, 60ms};

  }  // namespace

  TEST_CASE("an act that nobody took up is not done later") {
    Stopped coordinator;
    const ControlHeard heard = coordinator.call("pause", kShort);
    CHECK(heard.what == ControlHeard::What::kNothing);
    CHECK_FALSE(heard.ended);
    CHECK(coordinator.waits == 1);
    REQUIRE(coordinator.wakes());  // it lay in the socket all the time
    CHECK(coordinator.taken == 0);
  }

  TEST_CASE("an act that was taken up is said to be under way") {
    Stopped coordinator;
    coordinator.then = [](const ControlServer::Reply&) {};
    std::jthread turns([&] { coordinator.io.run_for(10s); });
    const ControlHeard heard = coordinator.call("pause", {1ms, 10s, 100ms});
    CHECK(heard.what == ControlHeard::What::kTaken);
    coordinator.io.stop();
    turns.join();
    CHECK(coordinator.taken == 1);
  }

  TEST_CASE("a coordinator that turns answers an act and a question") {
    Stopped coordinator;
    std::jthread turns([&] { coordinator.io.run_for(10s); });
    for (const char* act : {"pause", kActExplain}) {
      const ControlHeard heard = coordinator.call(act, ControlPatience());
      REQUIRE(heard.what == ControlHeard::What::kAnswer);
      CHECK(heard.answer.text == "done");
    }
    CHECK(coordinator.waits == 0);
    coordinator.io.stop();
  }

  TEST_CASE("a coordinator that ends is told from one that hangs") {
    Stopped coordinator;
    std::jthread ends([&] {
      coordinator.io.run_one();  // it accepts
      coordinator.server.reset();
    });
    const ControlHeard heard = coordinator.call("pause", ControlPatience());
    CHECK(heard.what == ControlHeard::What::kNothing);
    CHECK(heard.ended);
  }
}
