// A type that nobody here knows passes if it stands for itself; refused is what is named, with what
// to do instead.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/base/files.h"
#include "common/base/json.h"
#include "tests/support/json_tools.h"
#include "tests/support/paths.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/policy.h"

using namespace proctor;

namespace {

constexpr ModelApi kChatApi = ModelApi::kChat, kResponsesApi = ModelApi::kResponses,
                   kMessagesApi = ModelApi::kMessages;

// Empty: it goes on; else why not.
std::string refused(ModelApi api, const std::string& more) {
  const GatewayModel method{"m", {}, {}, {}};
  ModelAccess access;
  access.image_tokens = 1'600;
  const std::string body = R"({"model":"m",)" + more + "}";
  const auto peek = peek_body(api, body);
  if (!peek.ok()) return peek.error().detail;
  const PolicyVerdict verdict = judge_request(api, body, *peek, method, access);
  return verdict.refusal ? verdict.refusal->text : "";
}
std::string input(const std::string& item) {
  return refused(kResponsesApi, R"("input":[)" + item + "]");
}
std::string output(const std::string& part) {
  return input(R"({"type":"function_call_output","call_id":"c","output":[)" + part + "]}");
}
std::string chat_part(const std::string& part) {
  return refused(kChatApi, R"("messages":[{"role":"user","content":[)" + part + "]}]");
}
std::string block(const std::string& part) {
  return refused(kMessagesApi, R"("messages":[{"role":"user","content":[)" + part + "]}]");
}

}  // namespace

TEST_SUITE("gateway shapes") {
  TEST_CASE("an item that only names stored content is refused, with or without a type") {
    for (
        const char* bad :
        {R"({"id":"msg_0"})",
         R"({"type":null,"id":"msg_0"})",
         R"({"type":"","id":"msg_0"})",
         R"({"type":"item_reference","id":"msg_0"})",
         R"({"id":"msg_0","role":"assistant"})",
         R"({"role":"user","content":null,"id":"m"})",
         R"({"type":"message","id":"m"})",
         R"({"type":"message","id":"m","role":"assistant","content":null})",
         R"({"type":null,"role":"user","content":"hi"})",
         R"({"type":"reasoning","id":"rs"})",
         R"({"type":"reasoning","id":"rs","summary":[]})",
         R"({"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"}]})",
         R"({"type":"reasoning","encrypted_content":null,"summary":[]})",
         R"({"type":"reasoning","encrypted_content":"","summary":[]})",
         R"({"type":"image_generation_call","id":"ig"})",
         R"({"type":"image_generation_call","id":"ig","result":"AA"})",
         R"({"type":"compaction","id":"c","encrypted_content":"x"})",
         R"({"type":"compaction_trigger"})",
         R"({"type":"web_search_call","id":"ws"})",
         R"({"type":"file_search_call","id":"fs"})",
         R"({"type":"function_call","id":"fc"})",
         R"({"type":"function_call_output","call_id":"c"})",
         R"({"type":"custom_tool_call","id":"c"})",
         R"({"type":"local_shell_call","id":"l"})",
         R"({"type":"tool_search_output","id":"t"})",
         R"({"type":"mcp_call","id":"m"})",
         R"({"type":"multi_agent_call","id":"m"})",
         R"({"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"https://x"}})",
         R"({"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}})",
         R"({"type":"new","id":"x"})",
         R"({"type":"new","id":"x","vector_store_id":"y","file_search_call_ids":["z"],"status":"done"})",
         R"({"type":"new","text":""})",
         R"({"type":"new","n":5,"content":[],"cache_control":{"type":"ephemeral"}})",
         R"({"type":"new","text":"a","a":[{"b":{"file_id":"f"}}]})",
         R"({"type":"new","text":"a","a":{"\u0046ile_URL":"http://x"}})",
         R"({"type":"new","text":"a","image_url":"data:x"})",
         R"({"type":"new","text":"a","content":[{"type":"input_image","image_url":"http://x"}]})",
         R"({"type":"new","text":"a","output":[{"type":"item_reference","id":"m"}]})",
         R"({"type":"new","text":"a","output":{"url":"http://x"}})",
         R"({"type":"Item_Reference","text":"a"})",
         R"("msg_0")",
         "7",
         "[]"}) {
      CAPTURE(bad);
      CHECK_FALSE(input(bad).empty());
    }
    CHECK(
        input(R"({"type":"item_reference","id":"m"})") ==
        "input: a part of type item_reference, content that the provider keeps, is not allowed in "
        "this run: send it whole in the request");
    CHECK_FALSE(refused(kResponsesApi, R"("input":{"id":"msg_0"})").empty());
    CHECK_FALSE(refused(kResponsesApi, R"("input":7)").empty());
    CHECK_FALSE(
        refused(kResponsesApi, R"("input":"a","instructions":[{"type":"item_reference","id":"m"}])")
            .empty());
    CHECK_FALSE(refused(kResponsesApi, R"("instructions":{"id":"m"})").empty());
  }

  TEST_CASE("what agents send of the Responses API goes on") {
    for (
        const char* good :
        {R"({"role":"user","content":"hi"})",
         R"({"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]})",
         R"({"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":null},{"type":"refusal","refusal":"no"}],"status":"completed"})",
         R"({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"})",
         R"({"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"content":null,"encrypted_content":"gAAA"})",
         R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}]})",
         R"({"type":"function_call","id":"fc","name":"shell","arguments":"{}","call_id":"c"})",
         R"({"type":"function_call_output","call_id":"c","output":"done"})",
         R"({"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"x"})",
         R"({"type":"custom_tool_call_output","call_id":"c","output":"x"})",
         R"({"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}})",
         R"({"type":"local_shell_call_output","call_id":"c","output":"x"})",
         R"({"type":"tool_search_call","call_id":"c","execution":"client","arguments":{}})",
         R"({"type":"new","id":"x","text":"a"})",
         R"({"type":"new","content":[{"type":"newer","text":"a"},{"type":"input_text","text":"b"}]})",
         R"({"type":"new","output":[{"type":"input_image","image_url":"data:x"}],"file_id":null})",
         R"({"type":"new_call","call_id":"c","name":"f","arguments":"{\"url\":1}"})",
         R"({"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec","format":{"type":"grammar"}}]},{"type":"function","name":"f","parameters":{"properties":{"url":{},"file_id":{"type":"string"}}}}]})",
         R"({"type":"tool_search_output","call_id":"c","tools":[{"type":"function","name":"f"},{"type":"namespace","name":"n","tools":[{"type":"function"}]}]})"}) {
      CAPTURE(good);
      CHECK(input(good) == "");
    }
    CHECK(
        refused(
            kResponsesApi,
            R"("input":"hi","instructions":"be kind","store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high"},"text":{"verbosity":"low"},"prompt_cache_key":"k","parallel_tool_calls":true,"tool_choice":"auto","client_metadata":{"a":"b"})") ==
        "");
    CHECK(output(R"({"type":"input_text","text":"a"})") == "");
    CHECK(
        output(
            R"({"type":"input_image","image_url":"data:image/png;base64,AA","detail":"low","file_id":null})") ==
        "");
  }

  TEST_CASE("parts without a type, or with media from elsewhere, are refused in every API") {
    for (const char* bad :
         {R"({"file_url":"http://x"})", R"({"image_url":"http://x"})",
          R"({"type":"input_file","file_url":"http://x"})",
          R"({"type":"input_image","image_url":"http://x"})",
          R"({"type":"input_image","file_id":"f"})",
          R"({"type":"input_image","file_id":"f","image_url":"data:image/png;base64,AA"})",
          R"({"type":"input_text","text":"a","file_url":"http://x"})",
          R"({"type":"input_audio","input_audio":{}})", R"("x")"}) {
      CAPTURE(bad);
      CHECK_FALSE(output(bad).empty());
    }
    for (const char* bad :
         {R"({"type":"video_url","video_url":{"url":"data:x"}})",
          R"({"type":"audio_url","audio_url":{"url":"data:x"}})",
          R"({"type":"document_url","document_url":"http://x"})",
          R"({"type":"image_embeds","image_embeds":"AA"})", R"({"image_url":{"url":"data:x"}})",
          R"({"type":null,"image_url":{"url":"data:x"}})",
          R"({"type":"IMAGE_URL","image_url":{"url":"http://x"}})",
          R"({"type":"image_url","image_url":{"url":"http://x"},"source":{"type":"base64"}})",
          R"({"type":"image_url","image_url":{"url":"data:x","file_id":"f"}})",
          R"({"type":"text","text":"a","video_url":{"url":"http://x"}})",
          R"({"type":"file","file":{"file_data":"x"}})", R"("x")", "null"}) {
      CAPTURE(bad);
      CHECK_FALSE(chat_part(bad).empty());
    }
    for (
        const char* bad :
        {R"({"source":{"url":"http://x"}})", R"({"type":"image","source":{"url":"http://x"}})",
         R"({"type":"image","source":{"type":"url","url":"http://x"}})",
         R"({"type":"image","source":{"type":"base64","data":"AA","url":"http://x"}})",
         R"({"type":"image","source":{"type":"file","file_id":"f"}})",
         R"({"type":"document","source":{"type":"base64","data":"AA"}})",
         R"({"type":"web_fetch_tool_result","tool_use_id":"t","content":{"type":"web_fetch_result","content":{"type":"document","source":{"type":"url","url":"http://x"}}}})",
         R"({"type":"tool_result","tool_use_id":"t","content":{"type":"document"}})",
         R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"document"}]})",
         R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}})",
         R"({"type":"container_upload","file_id":"f"})",
         R"({"type":"compaction","content":"a"})"}) {
      CAPTURE(bad);
      CHECK_FALSE(block(bad).empty());
    }
    CHECK_FALSE(
        refused(kChatApi, R"("messages":[{"role":"user","content":{"type":"text"}}])").empty());
    CHECK_FALSE(refused(kMessagesApi, R"("messages":[{"content":{"type":"image"}}])").empty());
    CHECK_FALSE(refused(kMessagesApi, R"("messages":{"role":"user"})").empty());
    CHECK_FALSE(refused(kMessagesApi, R"("system":[{"text":"a"}])").empty());
    CHECK_FALSE(refused(kChatApi, R"("messages":["hi"])").empty());
    CHECK_FALSE(
        refused(kChatApi, R"("messages":[{"role":"assistant","audio":{"id":"audio_1"}}])").empty());
    CHECK_FALSE(refused(ModelApi::kEmbeddings, R"("input":[{"image_url":"http://x"}])").empty());
    CHECK_FALSE(
        refused(ModelApi::kCountTokens, R"("messages":[{"content":[{"source":1}]}])").empty());
  }

  TEST_CASE("what agents send of the other APIs goes on") {
    CHECK(refused(kChatApi, R"("messages":[{"role":"system","content":"s"},
      {"role":"user","content":[{"type":"text","text":"a"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":"low"}}]},
      {"role":"assistant","content":null,"refusal":null,"audio":null,"reasoning_content":"r",
       "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x"}]}],
      "tools":[{"type":"function","function":{"name":"f"}}],"functions":[{"name":"g"}],
      "modalities":["text"],"web_search_options":null,"logit_bias":{"1":2})") == "");
    CHECK(
        refused(
            kMessagesApi,
            R"("max_tokens":5,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":[{"type":"text","text":"a"},
         {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]},
       {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},
         {"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"t","name":"n","input":{}}]},
       {"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},
         {"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"x"},
           {"type":"image","source":{"type":"base64","data":"AA"}}]}]}],
      "tools":[{"name":"Bash","description":"d","input_schema":{"type":"object"}},
        {"type":"custom","name":"b","input_schema":{}},{"type":"bash_20250124","name":"bash"}],
      "context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"metadata":{"user_id":"u"},
      "output_config":{"effort":"high"})") == "");
    CHECK(refused(ModelApi::kCompletions, R"("prompt":["a","b"],"suffix":"s")") == "");
    CHECK(refused(ModelApi::kEmbeddings, R"("input":[[1,2],[3]])") == "");
  }

  TEST_CASE("a part of a type that is new passes where its bytes are all of it") {
    const char* part = R"({"type":"new","text":"a","more":{"n":1.5}})";
    CHECK(chat_part(part) == "");
    CHECK(block(part) == "");
    CHECK(output(part) == "");
  }

  TEST_CASE("the first request of each client that was tried is passed on") {
    const auto text =
        read_file(testing::source_dir() / "tests/unit/gateway/first_requests.jsonl", 1 << 20);
    REQUIRE(text.ok());
    std::set<std::string> models;
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t end = text->find('\n', at);
      const Json row = testing::read_json(text->substr(at, end - at));
      at = end + 1;
      const std::string body = row["body"].dump();
      const ModelApi api = row["body"].contains("input")    ? kResponsesApi
                           : row["body"].contains("system") ? kMessagesApi
                                                            : kChatApi;
      const GatewayModel method{row["body"]["model"].get<std::string>(), {}, {}, {}};
      models.insert(method.name);
      CAPTURE(method.name);
      const auto peek = peek_body(api, body);
      REQUIRE(peek.ok());
      const PolicyVerdict verdict = judge_request(api, body, *peek, method, {});
      CHECK((verdict.refusal ? verdict.refusal->text : "") == "");
      const Json sent = testing::read_json(spliced(body, verdict.edits));
      CHECK(sent.dump().find(R"("web_search")") == std::string::npos);
      std::size_t left_out = 0;
      if (row["body"].contains("tools"))
        left_out = row["body"]["tools"].size() - sent["tools"].size();
      CHECK(left_out == (body.find(R"("web_search")") == std::string::npos ? 0U : 1U));
      if (api == kResponsesApi) CHECK(sent["input"] == row["body"]["input"]);
    }
    CHECK(models.size() == 10);
  }

  TEST_CASE("what is not passed on is what the gateway's page lists, with the same reasons") {
    using Row = std::array<std::string, 3>;
    std::set<Row> here, there;
    const auto put = [&](const char* where, const NotPassed& row) {
      std::istringstream names{std::string(row.names)};
      for (std::string name; names >> name;) here.insert({where, name, std::string(row.what)});
    };
    for (const NotPassed& row : kRefusedTypes) put("an item or a part of type", row);
    for (const NotPassed& row : kBarred) put("a member of the request", row);
    for (const std::string_view key : kOutside)
      here.insert({"a member of a message, an item or a part", std::string(key),
                   "content that is not in the request"});
    for (const std::string_view type : kHosted)
      here.insert({"a tool (left out)", std::string(type) + '*', "a tool that the provider runs"});
    const auto page = read_file(testing::source_dir() / "docs/gateway.md", 1 << 20);
    REQUIRE(page.ok());
    const std::size_t table = page->find("| where | name | it is |");
    REQUIRE(table != std::string::npos);
    for (std::size_t at = page->find("\n|", page->find('\n', table) + 1);
         page->substr(at, 2) == "\n|";) {
      const std::size_t end = page->find('\n', at + 1);
      const std::string line = page->substr(at + 1, end - at - 1);
      at = end;
      const std::size_t names = line.find(" | ") + 3, what = line.find(" | ", names);
      REQUIRE(what != std::string::npos);
      for (std::size_t begin = line.find('`', names); begin < what;) {
        const std::size_t behind = line.find('`', begin + 1);
        there.insert({line.substr(2, names - 5), line.substr(begin + 1, behind - begin - 1),
                      line.substr(what + 3, line.rfind(" |") - what - 3)});
        begin = line.find('`', behind + 1);
      }
    }
    for (const Row& row : here)
      CHECK_MESSAGE(there.contains(row), row[0], ": ", row[1], ": ", row[2]);
    for (const Row& row : there)
      CHECK_MESSAGE(here.contains(row), row[0], ": ", row[1], ": ", row[2]);
  }

  TEST_CASE("members by which a provider fetches, runs or chooses are refused with what to do") {
    for (const char* key : {"search_parameters",  "plugins",       "models",         "route",
                            "provider",           "data_sources",  "api_base",       "user_config",
                            "cached_content",     "chat_template", "file_ids",       "attachments",
                            "web_search_options", "inference_geo", "fallback_model", "mcp_servers",
                            "container",          "multi_agent",   "prompt_embeds",  "audio"})
      for (const ModelApi api : {kChatApi, kResponsesApi, kMessagesApi, ModelApi::kCountTokens}) {
        CAPTURE(key);
        const std::string why = refused(api, '"' + std::string(key) + R"(":{"a":1})");
        CHECK(why.find(key) == 0);
        CHECK(why.find("is not allowed in this run: ") != std::string::npos);
        CHECK(refused(api, '"' + std::string(key) + R"(":null)") == "");
      }
    CHECK_FALSE(refused(kChatApi, R"("Plugins":[{}])").empty());
    CHECK_FALSE(refused(kChatApi, R"("CandidateCount":9)").empty());
    CHECK(refused(kChatApi, R"("Provider":null)") == "");
    CHECK_FALSE(refused(kChatApi, R"("modalities":["text","audio"])").empty());
    CHECK_FALSE(refused(kChatApi, R"("modalities":"audio")").empty());
    CHECK(refused(kChatApi, R"("unknown":1.50,"top_k":5,"seed":1)") == "");
  }

  TEST_CASE("a member that is judged is judged in its own spelling alone") {
    for (const char* member :
         {R"("Model":"dear")", R"("N":100)", R"("Max_Tokens":100000)",
          "\"max_to\xE2\x84\xAA\x65ns\":9", R"("Tools":[])", "\"\xC5\xBFtream\":true",
          R"("\u004dessages":[])", R"("Service_Tier":null)"}) {
      CAPTURE(member);
      const auto peek = peek_body(kChatApi, R"({"model":"m",)" + std::string(member) + "}");
      REQUIRE_FALSE(peek.ok());
      CHECK(peek.error().detail.find("the spelling ") != std::string::npos);
    }
    CHECK(refused(kChatApi, R"("Temperature":1,"topP":1)") == "");
  }

  TEST_CASE("a picture frees the bytes of its data alone, a tool named again is counted again") {
    const auto of = [](ModelApi api, const std::string& body) { return *peek_body(api, body); };
    const BodyPeek picture = of(
        kChatApi,
        R"({"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:x"},"text":"a long text that somebody may read"}]}]})");
    CHECK(picture.images == 1);
    CHECK(picture.image_bytes == std::string(R"("data:x")").size());
    const std::string one = R"({"type":"tool_reference","tool_name":"f"})";
    const BodyPeek references = of(
        kMessagesApi,
        R"({"model":"m","tools":[{"name":"f","input_schema":{}}],"messages":[{"content":[{"type":"tool_result","tool_use_id":"t","content":[)" +
            one + "," + one + "]}]}]}");
    const std::string tool = R"({"name":"f","input_schema":{}})";
    CHECK(references.tool_bytes == tool.size() + 2 + 2 * tool.size());
    const std::string added = R"([{"type":"function","name":"f"}])";
    const BodyPeek late =
        of(kResponsesApi,
           R"({"model":"m","input":[{"type":"additional_tools","tools":)" + added + "}]}");
    CHECK(late.tool_bytes == added.size());
    CHECK(late.items == 2);
  }
}
