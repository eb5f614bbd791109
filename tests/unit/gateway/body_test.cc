#include <doctest/doctest.h>

#include "common/base/json.h"
#include "tests/support/json_tools.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/json_spans.h"

using namespace proctor;
using testing::read_json;

namespace {

BodyPeek peeked(ModelApi api, const std::string& body) {
  auto peek = peek_body(api, body);
  if (!peek.ok()) FAIL(peek.error().detail);
  return *peek;
}

}  // namespace

TEST_SUITE("gateway body") {
  TEST_CASE("a JSON text is read where it lies") {
    const std::string text = R"( {"a": [1, {"b": "x\u00e9\n"}, -0.5e+3], "c" : null} )";
    const auto json = JsonText::read(text);
    REQUIRE(json.ok());
    const auto members = json->members(json->root());
    REQUIRE(members.ok());
    REQUIRE(members->size() == 2);
    CHECK((*members)[0].key == "a");
    CHECK(json->bytes((*members)[1].value) == "null");
    const auto elements = json->elements((*members)[0].value);
    REQUIRE(elements->size() == 3);
    CHECK(json->bytes((*elements)[2]) == "-0.5e+3");
    const auto inner = json->members((*elements)[1]);
    CHECK(json->text((*inner)[0].value) == "x\xc3\xa9\n");
  }

  TEST_CASE("what is no JSON is refused, whoever would read it") {
    for (const char* bad :
         {"",          "{",        "[1,]",    "{\"a\":1,}", "{\"a\" 1}", "01",   "1.",
          "+1",        "\"\x01\"", "\"\\x\"", "\"\\u12\"",  "nul",       "{}{}", "[1}",
          "{\"a\":1]", "'a'",      "\xff",    "{a:1}",      "1e",        "-"}) {
      CAPTURE(bad);
      CHECK_FALSE(JsonText::read(bad).ok());
      CHECK(!parse_json(bad).ok());
    }
    CHECK_FALSE(JsonText::read(std::string(10'000, '[')).ok());
    const std::string deep = std::string(300, '[') + std::string(300, ']');
    CHECK_FALSE(JsonText::read(deep).ok());
  }

  TEST_CASE("wherever it lies in a text, what ends, escapes or is none of it is seen") {
    for (std::size_t before = 0; before < 20; ++before)
      for (std::size_t after = 0; after < 20; ++after) {
        const auto read = [&](const std::string& middle) {
          std::string text = "\"" + std::string(before, ' ') + middle;
          return JsonText::read(text + std::string(after, '~') + "\"").ok();
        };
        CAPTURE(before);
        CAPTURE(after);
        for (const char* good : {"", "!", "#", "[", "]", "\x7f", "\\\"", "\\\\", "\\u00e9",
                                 "\xc3\xa9", "\xf0\x9f\x98\x80"})
          CHECK_MESSAGE(read(good), good);
        for (const char* bad : {"\x1f", "\x01", "\"x", "\\x", "\xff", "\xa0", "\xc3", "\xe2\x82"})
          CHECK_FALSE_MESSAGE(read(bad), bad);
        CHECK_FALSE(read(std::string(1, '\0')));
      }
  }

  TEST_CASE("what decides about money is found, in every API's words") {
    const BodyPeek chat = peeked(ModelApi::kChat, R"({"mod\u0065l": "m", "stream": true, "n": 3,
      "max_completion_tokens": 500, "messages": [{"role": "user", "content": "hi"},
      {"role": "user", "content": [{"type": "text", "text": "a"}]}],
      "tools": [{"type": "function"}, {"type": "web_search"}]})");
    CHECK(chat.model == "m");
    CHECK(chat.stream);
    CHECK(chat.samples == 3);
    CHECK(chat.limit == 500);
    CHECK(chat.items == 5);
    CHECK(chat.tools.size() == 2);
    const BodyPeek messages = peeked(ModelApi::kMessages, R"({"model": "m", "max_tokens": 9,
      "thinking": {"type": "enabled", "budget_tokens": 4000},
      "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
      "messages": []})");
    CHECK(messages.thinking == 4000);
    CHECK(messages.caches);
    CHECK_FALSE(messages.caches_for_hours);
    CHECK(peeked(ModelApi::kMessages, R"({"model": "m", "max_tokens": 9, "messages": [{"content":
      [{"type": "text", "cach\u0065_control": {"ttl": "1h"}}]}]})")
              .caches_for_hours);
    CHECK(peeked(ModelApi::kResponses, R"({"model": "m", "input": "hi"})").items == 1);
    CHECK_FALSE(peeked(ModelApi::kResponses, R"({"model": "m", "input": "hi"})").limit);
  }

  TEST_CASE("a body that could be read in two ways is refused") {
    for (const char* bad :
         {R"([])", R"({"messages": []})", R"({"model": ""})", R"({"model": 1})",
          R"({"model": "a", "model": "b"})", R"({"model": "a", "mod\u0065l": "b"})",
          R"({"model": "a", "max_tokens": 1e5})", R"({"model": "a", "max_tokens": 10.0})",
          R"({"model": "a", "max_tokens": -1})", R"({"model": "a", "max_tokens": "9"})",
          R"({"model": "a", "max_tokens": 0})", R"({"model": "a", "n": 1000})",
          R"({"model": "a", "max_tokens": 5, "max_completion_tokens": 6})",
          R"({"model": "a", "max_tokens": 99999999999999999999})",
          R"({"model": "a", "stream": "true"})", R"({"model": "a", "stream_options": []})",
          R"({"model": "a", "tools": {}})",
          R"({"model": "a", "messages": [{"role": 1, "role": 2}]})"}) {
      CAPTURE(bad);
      CHECK_FALSE(peek_body(ModelApi::kChat, bad).ok());
    }
  }

  TEST_CASE("every prompt of a list has an answer of its own, token ids are one prompt") {
    const auto samples = [](const std::string& prompt, const std::string& more = "") {
      return peeked(ModelApi::kCompletions, R"({"model":"m","prompt":)" + prompt + more + "}")
          .samples;
    };
    CHECK(samples(R"("a")") == 1);
    CHECK(samples("null") == 1);
    CHECK(samples("[]") == 1);
    CHECK(samples(R"(["a"])") == 1);
    CHECK(samples(R"(["a","b","c"])") == 3);
    CHECK(samples("[1,2,3,4]") == 1);
    CHECK(samples("[[1],[1],[1,2]]") == 3);
    CHECK(samples(R"(["a",[1]])") == 2);
    CHECK(samples(R"(["a","b","c"])", R"(,"n":2,"best_of":4)") == 12);
    CHECK(peeked(ModelApi::kCompletions, R"({"n":2,"prompt":["a","b"],"model":"m"})").samples == 4);
    std::string many = "[\"a\"";
    for (int i = 0; i < 2'048; ++i) many += ",\"a\"";
    for (const std::string& bad :
         {std::string("[1,[1]]"), std::string(R"([1,"a"])"), std::string("{}"), std::string("7"),
          std::string("[null]"), std::string("[[[1]]]"), std::string("[1.5]"), many + "]"}) {
      CAPTURE(bad.substr(0, 30));
      CHECK_FALSE(peek_body(ModelApi::kCompletions, R"({"model":"m","prompt":)" + bad + "}").ok());
    }
    CHECK(peeked(ModelApi::kEmbeddings, R"({"model":"m","input":["a","b"]})").samples == 1);
  }

  TEST_CASE("what reaches beyond an answer is named") {
    struct Row {
      ModelApi api;
      const char* body;
      const char* member;
    };
    const Row rows[] = {
        {ModelApi::kResponses, R"({"model": "m", "background": true})", "background"},
        {ModelApi::kResponses, R"({"model": "m", "background": false})", ""},
        {ModelApi::kResponses, R"({"model": "m", "previous_response_id": "r"})",
         "previous_response_id"},
        {ModelApi::kResponses, R"({"model": "m", "previous_response_id": null})", ""},
        {ModelApi::kResponses, R"({"model": "m", "prompt": {"id": "p"}})", "prompt"},
        {ModelApi::kCompletions, R"({"model": "m", "prompt": "p"})", ""},
        {ModelApi::kMessages, R"({"model": "m", "mcp_servers": [{"url": "x"}]})", "mcp_servers"},
        {ModelApi::kMessages, R"({"model": "m", "container": "c"})", "container"},
        {ModelApi::kChat, R"({"model": "m", "web_search_options": {}})", "web_search_options"},
        {ModelApi::kChat,
         R"({"model": "m", "messages": [{"content": [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}]}]})",
         "messages"},
        {ModelApi::kChat,
         R"({"model": "m", "messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]})",
         ""},
        {ModelApi::kMessages,
         R"({"model": "m", "messages": [{"content": [{"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]}]}]})",
         "messages.content.content"},
        {ModelApi::kMessages,
         R"({"model": "m", "messages": [{"content": [{"type": "image", "source": {"type": "base64", "data": "AA"}}]}]})",
         ""},
        {ModelApi::kMessages,
         R"({"model": "m", "messages": [{"content": [{"type": "document"}]}]})",
         "messages.content"}};
    for (const Row& row : rows) {
      CAPTURE(row.body);
      const BodyPeek peek = peeked(row.api, row.body);
      CHECK((peek.reaches == row.member || peek.reaches.starts_with(row.member)));
      CHECK(peek.reaches.empty() == (*row.member == '\0'));
    }
  }

  TEST_CASE("a splice changes what it names and nothing else") {
    const std::string body =
        R"({ "model" : "small" ,"x":[1, 2],"messages":[{"role":"user","content":"h\u0069"}] })";
    const BodyPeek peek = peeked(ModelApi::kChat, body);
    const std::string out =
        spliced(body, {further_member(peek.root, peek.has_members, "max_completion_tokens", "7"),
                       {peek.model_at, "\"big\"", "", ""}});
    CHECK(
        out ==
        R"({ "model" : "big" ,"x":[1, 2],"messages":[{"role":"user","content":"h\u0069"}] ,"max_completion_tokens":7})");
    Json expected = read_json(body);
    expected["model"] = "big";
    expected["max_completion_tokens"] = 7;
    CHECK(read_json(out) == expected);
    CHECK(spliced("{}", {further_member({0, 2}, false, "a", "1")}) == R"({"a":1})");
  }
}
