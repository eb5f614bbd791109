// What is kept and told of a call: pieces, tools, and what is struck out.
#include <doctest/doctest.h>

#include "common/base/digest.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/model_answer.h"
#include "worker/gateway/redactor.h"

using namespace proctor;

namespace {

std::vector<std::string> pieces(ModelApi api, const std::string& body) {
  const auto peek = peek_body(api, body);
  if (!peek.ok()) FAIL(peek.error().detail);
  std::vector<std::string> out;
  for (const JsonSpan& p : pieces_of(body.size(), peek->cuts))
    out.push_back(body.substr(p.at, p.size));
  return out;
}

std::string message(char letter, std::size_t bytes) {
  return R"({"role":"user","content":")" + std::string(bytes, letter) + "\"}";
}

std::string told(const std::vector<ToolCall>& calls) {
  std::string out;
  for (const ToolCall& c : calls) out += c.id + " " + c.name + " " + c.arguments + ";";
  return out;
}

std::string streamed(ModelApi api, const std::vector<std::string>& data) {
  StreamToolCalls tools(api);
  for (const std::string& d : data) tools.on({"", d, ""});
  return told(tools.calls());
}

}  // namespace

TEST_SUITE("gateway evidence") {
  TEST_CASE("the pieces of a conversation are those of its next turn too") {
    const std::string tools = R"(,"tools":[{"type":"function","name":")" + std::string(2'000, 't') +
                              R"("}],"stream":true})";
    std::string said = message('a', 1'500);
    std::string before;
    for (char letter = 'b'; letter < 'h'; ++letter) {
      std::string body = R"({"model":"m","messages":[)";
      body += said + "]" + tools;
      const auto now = pieces(ModelApi::kChat, body);
      std::string all;
      for (const std::string& p : now) all += p;
      CHECK(all == body);
      std::size_t fresh = 0;
      for (const std::string& p : now)
        if (before.find(p) == std::string::npos) fresh += p.size();
      if (!before.empty()) CHECK(fresh < 2'200);
      before += body + "\n";
      said += "," + message(letter, 1'500);
    }
    CHECK(pieces(ModelApi::kChat, R"({"model":"m"})").size() == 1);
  }

  TEST_CASE("what came of a tool is found in each API's form") {
    const auto results = [](ModelApi api, const std::string& body) {
      const auto peek = peek_body(api, body);
      REQUIRE(peek.ok());
      std::string out;
      for (const PeekedResult& r : peek->results)
        out += r.id + " " + body.substr(r.content.at, r.content.size) + ";";
      return out;
    };
    CHECK(results(
              ModelApi::kChat,
              R"({"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"42"}]})") ==
          "c1 \"42\";");
    CHECK(
        results(
            ModelApi::kResponses,
            R"({"model":"m","input":[{"type":"function_call_output","call_id":"c2","output":"x"}]})") ==
        "c2 \"x\";");
    CHECK(
        results(
            ModelApi::kMessages,
            R"({"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c3","content":[{"type":"text","text":"y"}]}]}]})") ==
        R"(c3 [{"type":"text","text":"y"}];)");
  }

  TEST_CASE("calls of tools are found in whole answers and in streams") {
    CHECK(
        told(tool_calls_in(
            ModelApi::kChat,
            R"({"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"{\"p\":1}"}}]}}]})")) ==
        R"(c1 ls {"p":1};)");
    CHECK(
        told(tool_calls_in(
            ModelApi::kResponses,
            R"({"output":[{"type":"reasoning"},{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"},{"type":"local_shell_call","call_id":"c3","action":{"command":["ls"]}}]})")) ==
        R"(c2 ls {};c3 local_shell_call {"command":["ls"]};)");
    CHECK(
        told(tool_calls_in(
            ModelApi::kMessages,
            R"({"content":[{"type":"text"},{"type":"tool_use","id":"c4","name":"ls","input":{"p":2}}]})")) ==
        R"(c4 ls {"p":2};)");
    CHECK(
        streamed(
            ModelApi::kChat,
            {R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"ls","arguments":""}}]}}]})",
             R"({"choices":[{"delta":{"content":"x"}}]})",
             R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}}]}}]})",
             R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]})"}) ==
        R"(c1 ls {"p":1};)");
    CHECK(
        streamed(
            ModelApi::kMessages,
            {R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c4","name":"ls","input":{}}})",
             R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}})",
             R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"2}"}})"}) ==
        R"(c4 ls {"p":2};)");
    CHECK(
        streamed(
            ModelApi::kResponses,
            {R"({"type":"response.output_item.done","item":{"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"}})"}) ==
        "c2 ls {};");
    for (const char* odd : {"", "[]", "{\"choices\":7}", "{\"choices\":[{\"message\":[]}]}"})
      CHECK(tool_calls_in(ModelApi::kChat, odd).empty());
  }

  TEST_CASE("what is a secret is struck out wherever it stands, and the same each time") {
    const Redactor by({{"token", "prk1_secret"}, {"empty", ""}});
    const std::string mark = "[redacted:token:11:" + sha256("prk1_secret").hex().substr(0, 8) + "]";
    CHECK(by.apply("a prk1_secretprk1_secret b") == "a " + mark + mark + " b");
    CHECK(by.apply("prk1_secre") == "prk1_secre");
    const Json payload = {{"why", "prk1_secret"}, {"n", 7}, {"list", {"x prk1_secret"}}};
    CHECK(redacted(payload, [&](std::string_view text) { return by.apply(text); }) ==
          Json{{"why", mark}, {"n", 7}, {"list", {"x " + mark}}});
  }

  TEST_CASE("a run's secrets are struck out as they are and as JSON has them, the longest first") {
    const std::map<std::string, std::string> secrets{{"A", "hunter-two"},
                                                     {"B", "hunter-two-and-more"},
                                                     {"C", "line\nof \"PEM\""},
                                                     {"D", "short"}};
    const Redactor by(rules_for_secrets(secrets));
    CHECK(by.apply("hunter-two-and-more").starts_with("[redacted:secret B:19:"));
    CHECK(by.apply("hunter-two.").starts_with("[redacted:secret A:10:"));
    const std::string body = Json{{"content", "x " + secrets.at("C")}}.dump();
    CHECK(by.apply(body).starts_with("{\"content\":\"x [redacted:secret C:"));
    CHECK(parse_json(by.apply(body)).ok());
    CHECK(by.apply(secrets.at("C")).starts_with("[redacted:secret C:"));
    CHECK(by.apply("a short one") == "a short one");
  }

  TEST_CASE("names that an agent chose make no event of a call long, and what is cut is counted") {
    CallRecord r;
    for (int i = 0; i < 64; ++i)
      r.results.push_back({std::to_string(i) + std::string(300, '\x01'), "", sha256("").hex(), 7});
    for (int i = 0; i < 64; ++i)
      r.tool_calls.push_back({std::string(300, '"'), std::string(300, '\\'), sha256("").hex(), 7});
    r.user_agent = std::string(1'000, '"');
    r.why = std::string(1'000, '\x01');
    const Json request = request_json(r), response = response_json(r);
    CHECK(request.dump().size() < kToldBytes + 2'048);
    CHECK(response.dump().size() < kToldBytes + 2'048);
    CHECK(request["tool_results"].size() + request["tool_results_left_out"].get<std::size_t>() ==
          64);
    CHECK(response["tool_calls"].size() + response["tool_calls_left_out"].get<std::size_t>() == 64);

    CallRecord usual;
    for (int i = 0; i < 64; ++i)
      usual.results.push_back(
          {"toolu_01A09q90qw90lq917835lq9" + std::to_string(i), "", sha256("").hex(), 70'000});
    CHECK(request_json(usual)["tool_results"].size() == 64);
    CHECK_FALSE(request_json(usual).contains("tool_results_left_out"));
  }
}
