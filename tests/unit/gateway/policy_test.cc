#include <doctest/doctest.h>

#include "common/base/json.h"
#include "tests/support/json_tools.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/policy.h"

using namespace proctor;
using testing::read_json;

namespace {

struct Judged {
  PolicyVerdict verdict;
  std::string body;  // as it goes on
};

Judged judged(ModelApi api, const std::string& body, const ModelAccess& access = {}) {
  const GatewayModel method{"m", {}, {"claude-haiku-*"}, {}};
  const auto peek = peek_body(api, body);
  if (!peek.ok()) FAIL(peek.error().detail);
  Judged out{judge_request(api, body, *peek, method, access), ""};
  if (!out.verdict.refusal) out.body = spliced(body, out.verdict.edits);
  return out;
}

}  // namespace

TEST_SUITE("gateway policy") {
  TEST_CASE("a request of the run's model goes on as it was sent") {
    const std::string body = R"({"model":"m","messages":[],"unknown":{"kept":1.50}})";
    const Judged plain = judged(ModelApi::kChat, body);
    CHECK_FALSE(plain.verdict.refusal);
    CHECK(plain.body == body);
  }

  TEST_CASE("the provider's own name of the model is put in") {
    ModelAccess access;
    access.send_as = "gpt-\"5\"";
    CHECK(judged(ModelApi::kChat, R"({"model":"m"})", access).body == R"({"model":"gpt-\"5\""})");
    CHECK(judged(ModelApi::kChat, R"({"model":"claude-haiku-4"})").body == R"({"model":"m"})");
  }

  TEST_CASE("tools that the provider would run are left out, others stay byte for byte") {
    CHECK(
        judged(
            ModelApi::kResponses,
            R"({"model":"m","tools":[{"type":"web_search"}, {"type":"function", "name":"f"},{"type":"tool_search"}],"x":1})")
            .body ==
        R"({"model":"m","tools":[{"type":"function", "name":"f"},{"type":"tool_search"}],"x":1})");
    CHECK(judged(ModelApi::kResponses, R"({"model":"m","tools":[{"type":"mcp"}],"x":1})").body ==
          R"({"model":"m","x":1})");
    CHECK(judged(ModelApi::kResponses, R"({"model":"m","tools":[{"type":"mcp"}]})").body ==
          R"({"model":"m"})");
    CHECK(
        judged(ModelApi::kMessages,
               R"({"model":"m","tools":[{"name":"x","input_schema":{}},{"type":"bash_20250124"}]})")
            .verdict.edits.empty());
  }

  TEST_CASE("tools of an unknown type or of none are left out, too") {
    for (const char* no :
         {R"({"type":"telepathy"})", R"({"name":"f"})", R"({"type":null,"name":"f"})",
          R"("web_search")", R"({"type":"FUNCTION"})", R"({"type":"bash_20250124"})",
          R"({"name":"f","input_schema":{}})", R"({"type":"local_shell"})"}) {
      CAPTURE(no);
      CHECK(judged(ModelApi::kChat, R"({"model":"m","tools":[)" + std::string(no) + "]}").body ==
            R"({"model":"m"})");
    }
    for (const char* no :
         {R"({"name":"web_search"})", R"({"type":null,"name":"x","input_schema":{}})",
          R"({"type":"function","name":"x"})"}) {
      CAPTURE(no);
      const std::string body =
          R"({"model":"m","tools":[)" + std::string(no) + R"(,{"name":"f","input_schema":{}}]})";
      CHECK(judged(ModelApi::kMessages, body).body ==
            R"({"model":"m","tools":[{"name":"f","input_schema":{}}]})");
    }
  }

  TEST_CASE("tools that come within the conversation are judged as those of the request") {
    const auto with = [](const std::string& tools) {
      return R"({"model":"m","input":[{"type":"tool_search_output","call_id":"c","tools":[)" +
             tools + R"(]},{"type":"additional_tools","id":"a","tools":[{"type":"custom"},)" +
             tools + "]}]}";
    };
    const std::string own = R"({"type":"function", "name":"f"})";
    CHECK(judged(ModelApi::kResponses, with(own)).verdict.edits.empty());
    for (const std::string no :
         {R"({"type":"mcp","server_url":"http://x"})", R"({"type":"web_search"})",
          R"({"name":"f"})", R"({"type":"namespace","tools":[{"type":"mcp"}]})"}) {
      CAPTURE(no);
      CHECK(judged(ModelApi::kResponses, with(no + "," + own)).body == with(own));
    }
    CHECK(
        judged(ModelApi::kResponses,
               R"({"model":"m","input":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}]})")
            .body == R"({"model":"m","input":[{"type":"tool_search_output","tools":[]}]})");
  }

  TEST_CASE("a namespace of tools is as the tools in it are") {
    const auto with = [](const std::string& tools) {
      return judged(
          ModelApi::kResponses,
          R"({"model":"m","tools":[{"type":"namespace","name":"n","tools":[)" + tools + R"(]}]})");
    };
    const Judged plain = with(R"({"type":"function"},{"type":"custom"})");
    CHECK_FALSE(plain.verdict.refusal);
    CHECK(plain.verdict.edits.empty());
    CHECK(with(R"({"type":"function"},{"type":"web_search"})").body ==
          with(R"({"type":"function"})").body);
    for (const char* no : {R"({"type":"web_search"})", R"({"type":"telepathy"})",
                           R"({"type":"namespace"})", R"({"type":"function","tools":[]})"}) {
      CAPTURE(no);
      CHECK(with(no).body == R"({"model":"m"})");
    }
    CHECK(with("").verdict.edits.empty());
  }

  TEST_CASE("a stream is made to say what it used, whatever the agent had asked for") {
    for (const char* body :
         {R"({"model":"m","stream":true})", R"({"model":"m","stream":true,"stream_options":{}})",
          R"({"model":"m","stream":true,"stream_options":{ }})",
          R"({"model":"m","stream":true,"stream_options":{"include_usage":false}})",
          R"({"model":"m","stream":true,"stream_options":{"include_obfuscation":false}})"}) {
      CAPTURE(body);
      const Judged j = judged(ModelApi::kChat, body);
      CHECK(j.verdict.usage_asked);
      CHECK(read_json(j.body)["stream_options"]["include_usage"] == true);
    }
    CHECK_FALSE(judged(ModelApi::kChat,
                       R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})")
                    .verdict.usage_asked);
    CHECK_FALSE(judged(ModelApi::kMessages, R"({"model":"m","stream":true})").verdict.usage_asked);
  }

  TEST_CASE("tiers, pictures and far reach need the operator's word") {
    ModelAccess access;
    const char* tier = R"({"model":"m","service_tier":"priority"})";
    CHECK(judged(ModelApi::kChat, tier).verdict.refusal);
    access.tiers = {"priority"};
    CHECK_FALSE(judged(ModelApi::kChat, tier, access).verdict.refusal);
    CHECK_FALSE(judged(ModelApi::kChat, R"({"model":"m","service_tier":"auto"})").verdict.refusal);
    const char* image =
        R"({"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]})";
    CHECK(judged(ModelApi::kChat, image).verdict.refusal);
    access.image_tokens = 1600;
    CHECK_FALSE(judged(ModelApi::kChat, image, access).verdict.refusal);
    CHECK(judged(ModelApi::kResponses, R"({"model":"m","background":true})").verdict.refusal);
  }

  TEST_CASE("a ceiling counts every byte, tools twice, and the limit that holds") {
    GatewayModel method;
    ModelAccess access;
    access.hidden_input = 100;
    access.max_output = 50'000;
    const std::string body = R"({"model":"m","messages":[{"content":"hi"}],"tools":[{"a":1}]})";
    const auto peek = peek_body(ModelApi::kChat, body);
    REQUIRE(peek.ok());
    TokenCeiling c = ceiling_of(ModelApi::kChat, *peek, body.size(), method, access);
    CHECK(c.input == body.size() + std::string(R"([{"a":1}])").size() + 16 * 2 + 100);
    CHECK(c.asked == 32'000);
    CHECK(c.least == 1'024);
    method.output_max = 500;
    c = ceiling_of(ModelApi::kChat, *peek, body.size(), method, access);
    CHECK(c.asked == 500);
    CHECK(c.least == 500);
    access.max_input = 60;
    CHECK(ceiling_of(ModelApi::kChat, *peek, body.size(), method, access).input == 60);
    CHECK(ceiling_of(ModelApi::kEmbeddings, *peek, body.size(), method, access).asked == 0);
    const auto edit = limit_edit(ModelApi::kChat, *peek, access, 500);
    REQUIRE(edit);
    CHECK(read_json(spliced(body, {*edit}))["max_completion_tokens"] == 500);
    const std::string said = R"({"model":"m","max_tokens":900})";
    const auto with = peek_body(ModelApi::kMessages, said);
    CHECK(spliced(said, {*limit_edit(ModelApi::kMessages, *with, access, 70)}) ==
          R"({"model":"m","max_tokens":70})");
    CHECK_FALSE(limit_edit(ModelApi::kMessages, *with, access, 900));
  }
}
