#include <doctest/doctest.h>

#include <array>

#include "common/trace/payloads.h"
#include "tests/support/provider_server.h"
#include "worker/shell/safety_watch.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::string_literals;

namespace {

constexpr const char* kSecret = "hunter2hunter2";

struct WatchScene {
  std::vector<Json> alerts;
  CommandWatch watch{DeniedCommands::compile({"rm -rf", "^sudo\\b"}).value(),
                     Redactor(Redactor::Rules{{"secret PASSWORD", kSecret}}),
                     [this](const Json& alert) { alerts.push_back(alert); }};

  // Pattern, form, segment, source of each.
  std::vector<std::array<std::string, 4>> seen() const {
    std::vector<std::array<std::string, 4>> out;
    for (const Json& alert : alerts) {
      const auto told = events::kAlert.read(alert);
      REQUIRE(told);
      CHECK(std::get<0>(*told) == "os_risk");
      CHECK(std::get<2>(*told) == "agent");
      const auto command = from_json<events::CommandSeen>(std::get<1>(*told), "");
      REQUIRE(command.ok());
      out.push_back({command->pattern, command->form, command->segment, command->source});
    }
    return out;
  }
};

using Seen = std::vector<std::array<std::string, 4>>;

}  // namespace

TEST_SUITE("command watch") {
  TEST_CASE("each form is an alert with its line and where it is") {
    WatchScene scene;
    const std::string body = chat_answer("do:\n```\nrm -rf a\n```\nrm -rf b", 1, 1).body;
    scene.watch.answer(3, body);
    scene.watch.tool("t7", "cd /\nsudo rm -rf c");
    scene.watch.program("sudo\0rm\0-rf\0d e\0"s);
    const std::string source = "model call 3, byte " + std::to_string(body.find("\"do:"));
    CHECK(scene.seen() == Seen{{"rm -rf", "code", "rm -rf a", source},
                               {"rm -rf", "text", "rm -rf b", source},
                               {"rm -rf", "tool call", "sudo rm -rf c", "tool call t7"},
                               {"^sudo\\b", "tool call", "sudo rm -rf c", "tool call t7"},
                               {"rm -rf", "executed", "sudo rm -rf 'd e'", "process"},
                               {"^sudo\\b", "executed", "sudo rm -rf 'd e'", "process"}});
    scene.watch.close();
    CHECK(scene.alerts.size() == 6);
  }

  TEST_CASE("what a model would have a tool do is its words, and no call of a tool of ours") {
    WatchScene scene;
    scene.watch.answer(1, R"({"content":[{"type":"tool_use","input":{"command":"rm -rf a"}}]})");
    REQUIRE(scene.seen().size() == 1);
    CHECK(scene.seen()[0][1] == "code");
  }

  TEST_CASE("a stream that says a line again is told once, and another call is told") {
    WatchScene scene;
    std::string body;
    for (const std::string& piece : responses_stream("rm -rf a", 1, 1).pieces) body += piece;
    scene.watch.answer(1, body);
    CHECK(scene.alerts.size() == 1);
    scene.watch.answer(2, body);
    CHECK(scene.alerts.size() == 2);
  }

  TEST_CASE("a secret is in no alert") {
    WatchScene scene;
    scene.watch.tool("t1", std::string("sudo -p ") + kSecret);
    scene.watch.program("sudo\0-p\0"s + kSecret);
    // In a stream each character is an event of its own.
    std::string body;
    for (const std::string& piece : chat_stream(std::string("sudo -p ") + kSecret, 1, 1).pieces)
      body += piece;
    scene.watch.answer(1, body);
    REQUIRE(scene.alerts.size() == 3);
    for (const Json& alert : scene.alerts) {
      CHECK(alert.dump().find(kSecret) == std::string::npos);
      CHECK(alert.dump().find("[redacted:secret PASSWORD:14:") != std::string::npos);
    }
  }

  TEST_CASE("beyond a run's alerts the first of each form is told, and the others are counted") {
    WatchScene scene;
    for (int i = 0; i < 300; ++i) scene.watch.answer(1, R"({"text":"rm -rf a"})");
    CHECK(scene.alerts.size() == DeniedCommands::kHitsOfRun);
    scene.watch.program("rm\0-rf\0a\0"s);
    scene.watch.program("rm\0-rf\0a\0"s);
    REQUIRE(scene.alerts.size() == DeniedCommands::kHitsOfRun + 1);
    CHECK(scene.seen().back()[1] == "executed");
    scene.watch.close();
    CHECK(scene.alerts.back().at("signals") == Json{{"left_out", 101U}});
    CHECK(scene.alerts.back().at("code") == "os_risk");
  }
}
