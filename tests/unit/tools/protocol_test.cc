#include <doctest/doctest.h>

#include "worker/tools/mcp_protocol.h"
#include "worker/tools/tool_list.h"

namespace proctor {
namespace {

Json answer_of(std::string_view message) {
  const McpStep step = mcp_step(message, "read the briefing");
  const auto* answer = std::get_if<std::string>(&step);
  REQUIRE(answer != nullptr);
  CHECK(answer->find('\n') == std::string::npos);
  return parse_json(*answer).value();
}
int code_of(std::string_view message) {
  return answer_of(message).at("error").at("code").get<int>();
}

// A request of the newer era.
std::string modern(std::string_view method, const Json& more = Json::object(),
                   std::string_view version = kMcpModern) {
  Json params = more;
  params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", version}};
  return Json{{"jsonrpc", "2.0"}, {"id", "d"}, {"method", method}, {"params", params}}.dump();
}

}  // namespace

TEST_SUITE("mcp") {
  TEST_CASE("the older era opens with a version, its own if it is known") {
    struct Row {
      std::string said, answered;
    };
    const Row rows[] = {{"2025-06-18", "2025-06-18"},
                        {"2025-11-25", "2025-11-25"},
                        {"2025-03-26", "2025-11-25"},
                        {"2026-07-28", "2025-11-25"},
                        {"", "2025-11-25"}};
    for (const Row& row : rows) {
      CAPTURE(row.said);
      const Json message = {{"jsonrpc", "2.0"},
                            {"id", 1U},
                            {"method", "initialize"},
                            {"params",
                             {{"protocolVersion", row.said},
                              {"capabilities", Json::object()},
                              {"clientInfo", {{"name", "c"}, {"version", "1"}}}}}};
      const Json answer = answer_of(message.dump());
      CHECK(answer.at("id") == 1U);
      CHECK(answer.at("jsonrpc") == "2.0");
      const Json& result = answer.at("result");
      CHECK(result.at("protocolVersion") == row.answered);
      CHECK(result.at("capabilities").at("tools") == Json::object());
      CHECK(result.at("serverInfo").at("name") == "proctor");
      CHECK(result.at("instructions") == "read the briefing");
      CHECK_FALSE(result.contains("resultType"));
    }
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})") == -32602);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"initialize"})") == -32602);
    CHECK(answer_of(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").at("result") == Json::object());
  }

  TEST_CASE("the newer era has no opening, and each of its answers is complete") {
    const Json found = answer_of(modern("server/discover")).at("result");
    CHECK(found.at("resultType") == "complete");
    CHECK(found.at("supportedVersions") == Json::array({"2026-07-28"}));
    CHECK(found.at("cacheScope") == "private");
    CHECK(found.at("_meta").at("io.modelcontextprotocol/serverInfo").at("name") == "proctor");
    const Json listed = answer_of(modern("tools/list")).at("result");
    CHECK(listed.at("resultType") == "complete");
    CHECK(listed.at("ttlMs") == 3'600'000U);
    CHECK(listed.at("tools").size() == tool_list_json().size());

    const Json unknown = answer_of(modern("tools/list", Json::object(), "2027-01-01"));
    CHECK(unknown.at("error").at("code") == -32022);
    CHECK(unknown.at("error").at("data").at("supported") == Json::array({"2026-07-28"}));
    // What only the other era has.
    CHECK(code_of(modern("initialize")) == -32601);
    CHECK(code_of(modern("ping")) == -32601);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"server/discover"})") == -32602);
  }

  TEST_CASE("a call of a tool is taken apart, and its result has the form of its era") {
    const McpStep step = mcp_step(
        R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a"}}})",
        "");
    const auto* call = std::get_if<McpCall>(&step);
    REQUIRE(call != nullptr);
    CHECK(call->tool == "read_file");
    CHECK(call->arguments == Json{{"path", "a"}});
    CHECK_FALSE(call->modern);
    const Json told = parse_json(mcp_result(*call, {"1\tx\n", false, nullptr})).value();
    CHECK(told.at("id") == 7U);
    CHECK(told.at("result").at("content").at(0).at("text") == "1\tx\n");
    CHECK(told.at("result").at("content").at(0).at("type") == "text");
    CHECK(told.at("result").at("isError") == false);
    CHECK_FALSE(told.at("result").contains("structuredContent"));
    CHECK_FALSE(told.at("result").contains("resultType"));

    const McpStep again = mcp_step(modern("tools/call", {{"name", "status"}}), "");
    const auto* other = std::get_if<McpCall>(&again);
    REQUIRE(other != nullptr);
    CHECK(other->arguments == Json::object());
    const Json no =
        parse_json(mcp_result(*other, {"Refused.", true, {{"refused", {{"final", true}}}}}))
            .value()
            .at("result");
    CHECK(no.at("isError") == true);
    CHECK(no.at("resultType") == "complete");
    CHECK(no.at("structuredContent").at("refused").at("final") == true);

    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})") ==
          -32602);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}})") ==
          -32602);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})") == -32602);
    CHECK(
        code_of(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shell","arguments":[]}})") ==
        -32602);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})") ==
          -32602);
  }

  TEST_CASE("what is no message is refused with the protocol's code") {
    struct Row {
      std::string text;
      int code;
    };
    const Row rows[] = {
        {"", -32700},
        {"{", -32700},
        {"{} {}", -32700},
        {"{\"a\":1,\"a\":2}", -32700},
        {"{\"a\":\"\xff\"}", -32700},
        {std::string(100, '['), -32700},
        {"[]", -32600},
        {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", -32600},
        {"1", -32600},
        {"{}", -32600},
        {R"({"jsonrpc":2.0,"id":1,"method":"ping"})", -32600},
        {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600},
        {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", -32600},
        {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", -32600},
        {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", -32600},
        {R"({"jsonrpc":"2.0","id":9007199254740993,"method":"ping"})", -32600},
        {R"({"jsonrpc":"2.0","id":1})", -32600},
        {R"({"jsonrpc":"2.0","id":1,"method":""})", -32600},
        {R"({"jsonrpc":"2.0","id":1,"method":7})", -32600},
        {R"({"jsonrpc":"2.0","id":1,"method":"ping","result":{}})", -32600},
        {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", -32602},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      CHECK(code_of(row.text) == row.code);
    }
    const std::string long_id(300, 'i'), long_method(1U << 20, 'm');
    CHECK(code_of(Json{{"jsonrpc", "2.0"}, {"id", long_id}, {"method", "ping"}}.dump()) == -32600);
    const Json no =
        answer_of(Json{{"jsonrpc", "2.0"}, {"id", "x"}, {"method", long_method}}.dump());
    CHECK(no.at("id") == "x");
    CHECK(no.dump().size() < 1'000);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})") == -32601);
    CHECK(code_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":1}})") == -32602);
  }

  TEST_CASE("what asks for no answer gets none") {
    for (const char* text :
         {R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
          R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"shell"}})",
          R"({"jsonrpc":"2.0","id":1,"result":{}})",
          R"({"jsonrpc":"2.0","method":"notifications/cancelled"})",
          R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}})"}) {
      CAPTURE(text);
      const McpStep step = mcp_step(text, "");
      const auto* answer = std::get_if<std::string>(&step);
      REQUIRE(answer != nullptr);
      CHECK(answer->empty());
    }
  }
}

}  // namespace proctor
