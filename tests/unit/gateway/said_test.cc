#include <doctest/doctest.h>
#include <fmt/format.h>

#include "common/base/json.h"
#include "tests/support/provider_server.h"
#include "worker/gateway/model_answer.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

using Said = std::vector<std::pair<std::string, bool>>;

Said said(const std::string& body) {
  Said out;
  for (const SaidText& text : said_in(body)) {
    REQUIRE_FALSE(text.parts.empty());
    CHECK(text.parts.front().first == 0);
    out.emplace_back(text.text, text.for_tool);
  }
  return out;
}

std::string body_of(const ProviderSays& says) {
  std::string out = says.body;
  for (const std::string& piece : says.pieces) out += piece;
  return out;
}

std::string events(const std::vector<std::string>& data) {
  std::string out;
  for (const std::string& one : data) out += "data: " + one + "\n\n";
  return out + "data: [DONE]\n\n";
}

const std::string kBegins = R"(,"id":"c","type":"function")";

}  // namespace

TEST_SUITE("gateway said") {
  TEST_CASE("the words of an answer are the same, whole or in a stream, by every API") {
    const std::string words = "first\n```\nrm -rf /\n```";
    const Said expected{{words, false}};
    CHECK(said(body_of(chat_answer(words, 1, 1))) == expected);
    CHECK(said(body_of(chat_stream(words, 1, 1))) == expected);
    CHECK(said(body_of(messages_answer(words, 1, 1))) == expected);
    CHECK(said(body_of(messages_stream(words, 1, 1))) == expected);
    CHECK(said(body_of(responses_answer(words, 1, 1))) == expected);
    // Its deltas, and what later events say again.
    const Said twice = said(body_of(responses_stream(words, 1, 1)));
    REQUIRE(1 < twice.size());
    for (const auto& text : twice) CHECK(text == expected.front());
  }

  TEST_CASE("arguments of a tool are lines, and lists of words commands") {
    const std::string arguments = R"({"command":["rm","-rf","/"],"note":"a\nb","timeout_ms":5})";
    const std::string lines = "rm\n-rf\n/\nrm -rf /\na\nb\n";
    CHECK(said(R"({"choices":[{"message":{"content":null,"tool_calls":[{"function":{"arguments":)" +
               Json(arguments).dump() + R"(}},{"function":{"arguments":"no JSON"}}]}}]})") ==
          Said{{lines, true}, {"no JSON", true}});
    CHECK(said(R"({"content":[{"type":"text","text":"so"},{"type":"tool_use","input":)" +
               arguments + "}]}") == Said{{"so", false}, {lines, true}});
    CHECK(said(R"({"tools":[{"text":"an echo"}],"output":[{"type":"local_shell_call","action":)" +
               arguments + "}]}") == Said{{lines, true}});
    CHECK(said(R"({"input":{}})").empty());
  }

  TEST_CASE("parts of a stream come together by their indices") {
    const auto chunk = [](int index, const std::string& more, const std::string& part) {
      return R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":)" +
             fmt::format("{}", index) + more + R"(,"function":{"arguments":)" + Json(part).dump() +
             "}}]}}]}";
    };
    CHECK(said(events({chunk(0, kBegins, R"({"command":"rm)"),
                       chunk(1, kBegins, R"({"command":"su)"), chunk(0, "", R"( -rf /"})"),
                       chunk(1, "", R"(do"})")})) == Said{{"rm -rf /\n", true}, {"sudo\n", true}});
    const auto delta = [](int index, const std::string& type, const std::string& part) {
      return R"({"type":"response.)" + type + R"(.delta","output_index":)" +
             fmt::format("{}", index) + R"(,"delta":)" + Json(part).dump() + "}";
    };
    CHECK(said(events({delta(0, "output_text", "r"), delta(1, "function_call_arguments", "\"ls"),
                       delta(0, "output_text", "m"),
                       delta(1, "function_call_arguments", " -l\"")})) ==
          Said{{"rm", false}, {"\"ls -l\"", true}});
    // Cut off in the middle: as far as it came.
    CHECK(said(events({chunk(0, kBegins, R"({"command":"rm)")})) ==
          Said{{R"({"command":"rm)", true}});
  }

  TEST_CASE("a line is where its part begins in the body") {
    const std::string whole = R"({"choices":[{"message":{"content":"a\nb"}}]})";
    const auto texts = said_in(whole);
    REQUIRE(texts.size() == 1);
    CHECK(whole.substr(texts[0].in_body(2), 6) == R"("a\nb")");
    const std::string first = "data: {\"choices\":[{\"delta\":{\"content\":\"a\\n\"}}]}\n\n",
                      second = "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n";
    const auto streamed = said_in(first + second);
    REQUIRE(streamed.size() == 1);
    CHECK(streamed[0].text == "a\nb");
    CHECK(streamed[0].in_body(0) == 0);
    CHECK(streamed[0].in_body(1) == 0);
    CHECK(streamed[0].in_body(2) == first.size());
    CHECK(streamed[0].in_body(100) == first.size());
  }

  TEST_CASE("bodies that are no answers say nothing") {
    for (const char* body : {"", "{", "[]", "null", "data", "data: {\n\n", "\xff\n\n",
                             R"({"error":{"message":"rm -rf /"}})", R"({"text":5})"})
      CHECK_MESSAGE(said(body).empty(), body);
    CHECK(said(R"({"text":"\ud800 rm"})") == Said{{R"("\ud800 rm")", false}});
    std::string deep;
    for (int i = 0; i < 300; ++i) deep += "{\"text\":";
    CHECK(said(deep).empty());
  }
}
