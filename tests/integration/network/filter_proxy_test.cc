#include "worker/network/filter_proxy.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <thread>

#include "common/base/owned.h"
#include "tests/support/local_server.h"
#include "tests/support/programs.h"

namespace proctor::testing {
namespace {

using std::chrono::milliseconds;
using Verdict = ProxyRecord::Verdict;
using Clock = std::chrono::steady_clock;

std::size_t threads_now() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

Resolve to_addresses(std::vector<std::string> texts) {
  return [texts = std::move(texts)](const std::string&, int, Clock::time_point) {
    std::vector<IpAddress> out;
    for (const std::string& text : texts) out.push_back(parse_ip(text).value());
    return Result<std::vector<IpAddress>>(out);
  };
}

class Scene {
 public:
  explicit Scene(FilterProxy::Options options) {
    proxy_ = must(FilterProxy::start(dir_.path(), std::move(options), [this](const ProxyRecord& r) {
      CHECK_FALSE(recording_.exchange(true));  // one at a time
      records.push_back(r);
      recording_ = false;
      ++count;
    }));
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (dir_.path() / "socket").c_str());
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }

  // Everything that is answered to `said`, until the proxy ends it.
  // Its record is there then, too.
  std::string ask(const std::string& said) const {
    const std::size_t before = count;
    const UniqueFd fd = connect();
    say(fd, said);
    std::string answer = hear(fd);
    REQUIRE(eventually([&] { return before < count; }));
    return answer;
  }
  static void say(const UniqueFd& fd, const std::string& bytes) {
    REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  static std::string hear(const UniqueFd& fd, std::size_t enough = ~std::size_t{0}) {
    std::string out;
    char bytes[4096];
    pollfd ready{fd.get(), POLLIN, 0};
    while (out.size() < enough && ::poll(&ready, 1, 20'000) == 1) {
      const ssize_t n = ::read(fd.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      out.append(bytes, static_cast<std::size_t>(n));
    }
    return out;
  }

  void end() { proxy_.reset(); }
  // The only record there is, once it is there.
  const ProxyRecord& only() {
    REQUIRE(eventually([this] { return count.load() == 1; }));
    return records.front();
  }

  std::vector<ProxyRecord> records;
  std::atomic<std::size_t> count = 0;

 private:
  std::atomic<bool> recording_ = false;
  TempDir dir_ = must(TempDir::create("proctor-proxy-test"));
  std::unique_ptr<FilterProxy> proxy_;
};

FilterProxy::Options allowing(std::vector<std::string> allow) {
  FilterProxy::Options options;
  options.allow = std::move(allow);
  return options;
}

const std::string kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

}  // namespace

TEST_SUITE("network proxy") {
  TEST_CASE("a name leads only where its entry admits, by the address that was judged") {
    const LocalServer server;
    const std::string port = std::to_string(server.port());
    struct Row {
      const char* entry;
      const char* name;
      std::vector<std::string> addresses;
      Verdict verdict;
      const char* address;
    };
    const Row rows[] = {
        {"a.test", "a.test", {"127.0.0.1"}, Verdict::kAllowed, "127.0.0.1"},
        {"*.test.org", "a.test.org", {"127.0.0.1"}, Verdict::kDenied, ""},
        {"*.test.org", "a.test.org", {"10.0.0.1", "::1", "fd00::1"}, Verdict::kDenied, ""},
        {"a.test", "a.test", {"169.254.169.254"}, Verdict::kDenied, ""},
        {"a.test", "a.test", {"fd00:ec2::254"}, Verdict::kDenied, ""},
        {"a.test", "a.test", {"0.0.0.0"}, Verdict::kDenied, ""},
        {"a.test", "a.test", {"::ffff:169.254.169.254"}, Verdict::kDenied, ""},
        {"a.test", "a.test", {}, Verdict::kDenied, ""},
        // What must not be reached is left out, what may be is.
        {"a.test", "a.test", {"169.254.169.254", "127.0.0.1"}, Verdict::kAllowed, "127.0.0.1"},
        // Nobody there: the next of its addresses.
        {"a.test", "a.test", {"127.0.0.77", "127.0.0.1"}, Verdict::kAllowed, "127.0.0.1"},
        {"a.test", "a.test", {"127.0.0.77"}, Verdict::kUnreachable, "127.0.0.77"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.entry);
      const std::string first = row.addresses.empty() ? "none" : row.addresses.front();
      CAPTURE(first);
      auto options = allowing({std::string(row.entry) + ":" + port});
      options.resolve = to_addresses(row.addresses);
      Scene scene(std::move(options));
      const std::string place = std::string(row.name) + ":" + port;
      const std::size_t heard = server.heard().size();
      const std::string answer = scene.ask("GET http://" + place + "/ HTTP/1.1\r\n\r\n");
      CHECK(scene.only().verdict == row.verdict);
      CHECK(scene.only().address == row.address);
      CHECK(scene.only().host == row.name);
      CHECK(server.heard().size() == heard + (row.verdict == Verdict::kAllowed ? 1 : 0));
      const char* status = row.verdict == Verdict::kAllowed  ? "HTTP/1.1 200 "
                           : row.verdict == Verdict::kDenied ? "HTTP/1.1 403 "
                                                             : "HTTP/1.1 502 ";
      CHECK(answer.starts_with(status));
    }
  }

  TEST_CASE("a name is asked for once, so that its second answer leads nowhere") {
    const LocalServer server;
    const std::string place = "a.test:" + std::to_string(server.port());
    auto options = allowing({place});
    const auto asked = std::make_shared<std::atomic<int>>(0);
    options.resolve = [asked](const std::string&, int, Clock::time_point) {
      const char* address = asked->fetch_add(1) == 0 ? "127.0.0.1" : "169.254.169.254";
      return Result<std::vector<IpAddress>>({parse_ip(address).value()});
    };
    Scene scene(std::move(options));
    CHECK(scene.ask("GET http://" + place + "/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    CHECK(*asked == 1);
    CHECK(scene.ask("GET http://" + place + "/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
    // An address needs no name server, and one that is not listed gets none.
    CHECK(scene.ask("GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 403 "));
    CHECK(*asked == 2);
  }

  TEST_CASE("what stands behind a request is not passed on") {
    const LocalServer server;
    Scene scene(allowing({server.at()}));
    const std::string smuggled = "GET http://evil.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n";
    for (const std::string& request :
         {"GET http://" + server.at() + "/ HTTP/1.1\r\n\r\n",
          "POST http://" + server.at() + "/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
          "POST http://" + server.at() +
              "/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"}) {
      CAPTURE(request);
      CHECK(scene.ask(request + smuggled).starts_with("HTTP/1.1 200 "));
    }
    scene.end();
    for (const std::string& heard : server.heard()) CHECK_FALSE(contains(heard, "evil"));
    REQUIRE(scene.records.size() == 3);
    CHECK(scene.records[0].sent == 0);
    CHECK(scene.records[1].sent == 3);
    CHECK(scene.records[2].sent == std::string("3\r\nabc\r\n0\r\n\r\n").size());
    // Half a body is the client's affair, and told as what it is.
    CHECK(server.heard().size() == 3);
  }

  TEST_CASE("a tunnel carries bytes both ways until both sides have ended") {
    const LocalServer server;
    Scene scene(allowing({server.at()}));
    const UniqueFd fd = scene.connect();
    // Said at once, as some clients do.
    Scene::say(fd, "CONNECT " + server.at() + " HTTP/1.1\r\n\r\nearly");
    CHECK(Scene::hear(fd, kEstablished.size() + 5) == kEstablished + "early");
    const std::string much(3'000'000, 'x');
    std::jthread writer([&] {
      for (std::size_t at = 0; at < much.size();) {
        const ssize_t n = ::send(fd.get(), much.data() + at, much.size() - at, MSG_NOSIGNAL);
        if (n <= 0) return;
        at += static_cast<std::size_t>(n);
      }
      ::shutdown(fd.get(), SHUT_WR);
    });
    CHECK(Scene::hear(fd).size() == much.size());
    CHECK(scene.only().sent == much.size() + 5);
    CHECK(scene.only().received == much.size() + 5);
    CHECK(scene.only().why == "");
  }

  TEST_CASE("nothing keeps it from ending, and nobody is left") {
    const LocalServer server;
    const std::size_t before = threads_now();
    auto options = allowing({server.at(), "slow.test:1"});
    const auto asked = std::make_shared<std::atomic<bool>>(false);
    options.resolve = [asked](const std::string&, int stop, Clock::time_point) {
      *asked = true;
      pollfd told{stop, POLLIN, 0};
      ::poll(&told, 1, 60'000);
      return Result<std::vector<IpAddress>>(Error{Errc::kUnavailable, "told to stop"});
    };
    Scene scene(std::move(options));
    const UniqueFd silent = scene.connect(), half = scene.connect(), tunnel = scene.connect(),
                   waits = scene.connect();
    Scene::say(half, "GET http://");
    Scene::say(waits, "CONNECT slow.test:1 HTTP/1.1\r\n\r\n");
    Scene::say(tunnel, "CONNECT " + server.at() + " HTTP/1.1\r\n\r\n");
    CHECK(Scene::hear(tunnel, kEstablished.size()) == kEstablished);
    REQUIRE(eventually([&] { return asked->load(); }));
    const auto begun = Clock::now();
    scene.end();
    CHECK(Clock::now() - begun < std::chrono::seconds(30));
    CHECK(eventually([&] { return threads_now() == before; }));
    std::string whys;
    for (const ProxyRecord& r : scene.records) whys += r.why + ";";
    CHECK(contains(whys, "the phase ended"));
    CHECK(contains(whys, "told to stop"));
  }

  TEST_CASE("who asks for too much is refused and others are served") {
    const LocalServer server;
    auto options = allowing({server.at()});
    options.bounds.head = milliseconds(3'000);
    options.bounds.connections = 2;
    Scene scene(std::move(options));
    const std::string fine = "GET http://" + server.at() + "/ HTTP/1.1\r\n\r\n";
    CHECK(scene
              .ask("GET http://" + server.at() + "/ HTTP/1.1\r\na: " + std::string(40'000, 'x') +
                   "\r\n\r\n")
              .starts_with("HTTP/1.1 400 "));
    // Two that never say a word hold both places, for as long as a head may take.
    const auto begun = Clock::now();
    const UniqueFd one = scene.connect(), two = scene.connect();
    CHECK(scene.ask(fine).starts_with("HTTP/1.1 200 "));
    CHECK(milliseconds(3'000) <= Clock::now() - begun);  // its turn came when theirs was over
    const UniqueFd slow = scene.connect();
    Scene::say(slow, "GET ");
    CHECK(Scene::hear(slow).starts_with("HTTP/1.1 400 "));
    for (const char* bad : {"\r\n\r\n", "HELLO\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"})
      CHECK(scene.ask(bad).starts_with("HTTP/1.1 400 "));
    scene.end();
    std::size_t malformed = 0;
    for (const ProxyRecord& r : scene.records)
      malformed += r.verdict == Verdict::kMalformed ? 1 : 0;
    CHECK(malformed == 5);
    CHECK(scene.records.size() == 6);  // those who left without a word have asked for nothing
  }

  TEST_CASE("idleness, bytes and requests of a phase have an end") {
    const LocalServer server;
    auto options = allowing({server.at()});
    options.bounds.idle = milliseconds(3'000);
    options.bounds.bytes = 100'000;
    options.bounds.requests = 3;
    Scene scene(std::move(options));
    const std::string connect = "CONNECT " + server.at() + " HTTP/1.1\r\n\r\n";
    CHECK(scene.ask(connect) == kEstablished);
    CHECK(scene.only().why == "idle for too long");
    const UniqueFd fd = scene.connect();
    Scene::say(fd, connect);
    CHECK(Scene::hear(fd, kEstablished.size()) == kEstablished);
    Scene::say(fd, std::string(60'000, 'x'));
    CHECK(Scene::hear(fd).size() < 60'000);
    REQUIRE(eventually([&] { return scene.count == 2; }));
    CHECK(scene.ask(connect).starts_with("HTTP/1.1 200 "));
    CHECK(Scene::hear(scene.connect()).starts_with("HTTP/1.1 503 "));
    scene.end();
    CHECK(scene.records.back().verdict == Verdict::kDenied);
    CHECK(scene.records[1].why == "the phase has moved more bytes than it may");
  }

  TEST_CASE("what stands still is not idle") {
    const LocalServer server;
    auto options = allowing({server.at()});
    options.bounds.idle = milliseconds(100);
    const auto begun = Clock::now();
    options.now = [begun] { return begun; };  // a suspended run's clock
    Scene scene(std::move(options));
    const UniqueFd fd = scene.connect();
    Scene::say(fd, "CONNECT " + server.at() + " HTTP/1.1\r\n\r\n");
    CHECK(Scene::hear(fd, kEstablished.size()) == kEstablished);
    pollfd cut{fd.get(), POLLIN, 0};
    CHECK(::poll(&cut, 1, 1'500) == 0);
    Scene::say(fd, "still here");
    CHECK(Scene::hear(fd, 10) == "still here");
  }

  TEST_CASE("an entry that is none and a folder that is taken are told") {
    const TempDir dir = must(TempDir::create("proctor-proxy-test"));
    const auto bad = FilterProxy::start(dir.path(), allowing({"x"}), [](const ProxyRecord&) {});
    CHECK(bad.error().code == Errc::kInvalid);
    const auto one = FilterProxy::start(dir.path(), allowing({"a.b:1"}), [](const ProxyRecord&) {});
    REQUIRE(one.ok());
    const auto two = FilterProxy::start(dir.path(), allowing({"a.b:1"}), [](const ProxyRecord&) {});
    CHECK_FALSE(two.ok());
  }
}

}  // namespace proctor::testing
