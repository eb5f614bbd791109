// The server of tools on its socket, as an agent's client meets it.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <thread>

#include "common/base/owned.h"
#include "worker/tools/tool_session.h"

namespace proctor {
namespace {

// A connection of an agent's client.
class Wire {
 public:
  explicit Wire(const fs::path& socket) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = socket.string();
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(&address.sun_path[0], path.data(), path.size());
    REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  void say(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // cut off, as some are meant to be
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void end() const { ::shutdown(fd_.get(), SHUT_WR); }
  // Empty: there is no further one.
  std::string line() {
    for (;;) {
      if (const std::size_t end = bytes_.find('\n'); end != std::string::npos) {
        std::string out = bytes_.substr(0, end);
        bytes_.erase(0, end + 1);
        return out;
      }
      std::array<char, 4'096> buffer;  // NOLINT: filled by recv
      const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (n <= 0) return "";
      bytes_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  Json answer() { return parse_json(line()).value(); }

 private:
  UniqueFd fd_;
  std::string bytes_;
};

struct Scene {
  Scene() : dir(TempDir::create("tools").value()) {
    REQUIRE(make_dirs(dir.path() / "at").ok());
    REQUIRE(make_dirs(dir.path() / "work").ok());
    ToolHooks hooks;
    hooks.reserve = [](const std::string&, const ToolKind&, std::chrono::milliseconds) {
      return std::optional<ToolRefusal>();
    };
    hooks.charge = [](const std::string&, const ToolKind&, std::chrono::milliseconds,
                      std::optional<bool>) {};
    hooks.note = [this](std::string_view, const Json&) {
      ++events;
      return ToolHeard{};
    };
    hooks.status = [] { return std::string("all of it"); };
    hooks.shell = [](const std::string&, bool, std::chrono::milliseconds) -> Result<ProgramRun> {
      return ProgramRun{0, "", ""};
    };
    hooks.state = [] { return std::string(); };
    hooks.wait = [](std::chrono::milliseconds) {};
    hooks.now = [] { return std::chrono::milliseconds(0); };
    files = std::make_unique<WorkspaceTools>(WorkspaceTools::open(dir.path() / "work", {}).value());
    session = std::make_unique<ToolSession>(ToolSessionRules{}, *files, std::move(hooks));
    server = ToolServer::start(dir.path() / "at", *session, "read first").value();
  }
  fs::path socket() const { return dir.path() / "at" / "socket"; }

  TempDir dir;
  int events = 0;  // under the session's turn
  std::unique_ptr<WorkspaceTools> files;
  std::unique_ptr<ToolSession> session;
  std::unique_ptr<ToolServer> server;
};

std::string call(int id, std::string_view tool, const Json& arguments = Json::object()) {
  return Json{{"jsonrpc", "2.0"},
              {"id", id},
              {"method", "tools/call"},
              {"params", {{"name", tool}, {"arguments", arguments}}}}
             .dump() +
         "\n";
}

std::string text_of(const Json& answer) {
  return answer.at("result").at("content").at(0).at("text").get<std::string>();
}

}  // namespace

TEST_SUITE("tool server") {
  TEST_CASE("a client opens, asks for the tools and works through them") {
    Scene scene;
    Wire wire(scene.socket());
    wire.say(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})"
        "\r\n"
        R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
        "\n\n");
    CHECK(wire.answer().at("result").at("instructions") == "read first");
    wire.say(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"
             "\n");
    CHECK(wire.answer().at("result").at("tools").size() == 11);
    wire.say(call(2, "advance_stage", {{"to", "write"}, {"reason", "r"}}) +
             call(3, "write_file", {{"path", "a/b.txt"}, {"content", "hello\n"}}) +
             call(4, "read_file", {{"path", "a/b.txt"}}));
    CHECK(wire.answer().at("id") == 2);
    CHECK(wire.answer().at("id") == 3);
    const Json read = wire.answer();
    CHECK(read.at("id") == 4);
    CHECK(text_of(read) == "1\thello\n");
    CHECK(read_file(scene.dir.path() / "work/a/b.txt", 100).value() == "hello\n");
    wire.say(call(5, "status"));
    wire.end();
    CHECK(text_of(wire.answer()) == "stage: write\nall of it");
    CHECK(wire.line().empty());
    scene.server.reset();
    CHECK(scene.events == 7);
  }

  TEST_CASE("what is no message is answered, and the connection goes on") {
    Scene scene;
    Wire wire(scene.socket());
    wire.say("nonsense\n[]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    CHECK(wire.answer().at("error").at("code") == -32700);
    CHECK(wire.answer().at("error").at("code") == -32600);
    CHECK(wire.answer().at("result") == Json::object());
  }

  TEST_CASE("a line without end is cut off, and its neighbour is served") {
    Scene scene;
    Wire wire(scene.socket()), other(scene.socket());
    std::thread endless([&] { wire.say(std::string(kRpcBytes + (std::size_t{1} << 20), ' ')); });
    other.say(call(1, "list_dir"));
    CHECK(text_of(other.answer()) == "[nothing is in it]\n");
    endless.join();
    // Its answer may be lost with what was still being sent.
    (void)wire.line();
    CHECK(wire.line().empty());
    other.say(call(2, "list_dir"));
    CHECK(other.answer().at("id") == 2);
  }

  TEST_CASE("clients that say half a word or read nothing hold up neither others nor the end") {
    Scene scene;
    Wire half(scene.socket()), deaf(scene.socket());
    half.say("{\"jsonrpc\"");
    std::string many;
    for (int i = 0; i < 2'000; ++i)
      many += R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"
              "\n";
    std::thread talker([&] { deaf.say(many); });
    Wire other(scene.socket());
    other.say(call(1, "list_dir"));
    CHECK(other.answer().at("id") == 1);
    scene.server.reset();
    talker.join();
    CHECK(other.line().empty());
    CHECK(half.line().empty());
  }

  TEST_CASE("calls of several clients take turns, and each is answered once") {
    Scene scene;
    constexpr int kClients = 6, kCalls = 50;
    std::vector<std::thread> threads;
    std::array<int, kClients> answered{};
    for (int c = 0; c < kClients; ++c)
      threads.emplace_back([&, c] {
        Wire wire(scene.socket());
        for (int i = 0; i < kCalls; ++i) {
          wire.say(call(i, "list_dir"));
          const auto answer = parse_json(wire.line());
          if (answer.ok() && answer->at("id") == i) ++answered[static_cast<std::size_t>(c)];
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const int n : answered) CHECK(n == kCalls);
    scene.server.reset();
    CHECK(scene.session->calls() == kClients * kCalls);
  }
}

}  // namespace proctor
