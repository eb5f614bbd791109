#include "worker/gateway/agent_variables.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "common/base/files.h"
#include "tests/support/paths.h"

using namespace proctor;

namespace {

using Row = std::array<std::string, 3>;

const char* word_of(AgentVariable::For whose) {
  switch (whose) {
    case AgentVariable::For::kEach:
      return "each";
    case AgentVariable::For::kOpenai:
      return "openai";
    case AgentVariable::For::kAnthropic:
      return "anthropic";
  }
  return "";
}

std::map<std::string, std::string> dressed(const MethodGateway& gateway,
                                           std::map<std::string, std::string> env = {}) {
  set_agent_variables(env, gateway, "prk1_t");
  return env;
}

}  // namespace

TEST_SUITE("agent variables") {
  TEST_CASE("what is set inside is what the page of agents lists, row by row") {
    const auto page = read_file(testing::source_dir() / "docs/agents.md", 1 << 20);
    REQUIRE(page.ok());
    std::vector<Row> here, there;
    for (const AgentVariable& v : agent_variables())
      here.push_back({std::string(v.name), std::string(v.value), word_of(v.whose)});
    std::size_t at = page->find("## What is set inside");
    REQUIRE(at != std::string::npos);
    at = page->find("| `", at);
    while (page->compare(at, 3, "| `") == 0) {
      const std::size_t end = page->find('\n', at);
      const std::string line = page->substr(at, end - at);  // | `A` | `b` | c |
      const std::size_t name = line.find("` | `"), value = line.find("` | ", name + 5);
      there.push_back({line.substr(3, name - 3), line.substr(name + 5, value - name - 5),
                       line.substr(value + 4, line.size() - value - 6)});
      at = end + 1;
    }
    CHECK(here == there);
  }

  TEST_CASE("a method's own values win, but of where the gateway is and of its token") {
    MethodGateway g;
    g.models.front().name = "big";
    const auto env = dressed(g, {{"OPENAI_MODEL", "mine"}, {"OPENAI_API_KEY", "mine"}});
    CHECK(env.at("OPENAI_MODEL") == "mine");
    CHECK(env.at("OPENAI_API_KEY") == "prk1_t");
    CHECK(env.at("OPENAI_BASE_URL") == "http://127.0.0.1:8710/v1");
    CHECK(env.at("PROCTOR_GATEWAY_MODELS") == "big");
    CHECK(env.at("MSWEA_COST_TRACKING") == "ignore_errors");
    CHECK_FALSE(env.contains("ANTHROPIC_MODEL"));
    CHECK_FALSE(env.contains("IS_SANDBOX"));
  }

  TEST_CASE("each of Anthropic's sizes is the model that has its word, or its names") {
    MethodGateway g;
    g.as = MethodGateway::As::kAnthropic;
    g.models = {
        {"opus", {}, {}, {}}, {"cheap", {}, {"claude-*"}, {}}, {"s", {}, {"x-sonnet-*"}, {}}};
    auto env = dressed(g);
    CHECK(env.at("ANTHROPIC_MODEL") == "opus");
    CHECK(env.at("ANTHROPIC_DEFAULT_OPUS_MODEL") == "opus");
    CHECK(env.at("ANTHROPIC_DEFAULT_SONNET_MODEL") == "s");
    CHECK(env.at("ANTHROPIC_DEFAULT_HAIKU_MODEL") == "cheap");
    CHECK(env.at("ANTHROPIC_SMALL_FAST_MODEL") == "cheap");
    CHECK(env.at("PROCTOR_GATEWAY_MODELS") == "opus cheap s");
    CHECK(env.at("ANTHROPIC_BASE_URL") == "http://127.0.0.1:8710");
    CHECK(env.at("IS_SANDBOX") == "1");
    CHECK_FALSE(env.contains("OPENAI_API_KEY"));
    g.models = {{"big", {}, {}, {}}};
    env = dressed(g);
    for (const char* name : {"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
                             "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"})
      CHECK(env.at(name) == "big");
  }
}
