#include <doctest/doctest.h>

#include "worker/gateway/model_answer.h"

using namespace proctor;

namespace {

StreamFacts followed(ModelApi api, const std::string& stream) {
  StreamFacts facts(api, false);
  SseScan scan;
  const auto events = scan.feed(stream);
  REQUIRE(events.ok());
  for (const SseEvent& e : *events) facts.on(e);
  return facts;
}

const std::string kMessages =
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
    "\"usage\":{\"input_tokens\":12,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n"
    "event: ping\ndata: {\"type\":\"ping\"}\n\n"
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
    "\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n";

}  // namespace

TEST_SUITE("gateway streams") {
  TEST_CASE("events are the same in whatever pieces and with whatever line ends they come") {
    const std::string stream =
        "\xEF\xBB\xBF: a comment\nevent: a\ndata: 1\ndata:2\n\nid: 7\r\ndata: x: y\r\n\r\n"
        "data: z\r\rdata\n\n";
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      SseScan scan;
      auto events = *scan.feed(std::string_view(stream).substr(0, cut));
      const auto rest = *scan.feed(std::string_view(stream).substr(cut));
      events.insert(events.end(), rest.begin(), rest.end());
      REQUIRE(events.size() == 4);
      CHECK(events[0].name == "a");
      CHECK(events[0].data == "1\n2");
      CHECK(events[1].data == "x: y");
      CHECK(events[2].data == "z");
      CHECK(events[3].data.empty());
      std::string all;
      for (const SseEvent& e : events) all += e.bytes;
      CHECK(all + scan.rest() == stream);
    }
  }

  TEST_CASE("an event without end is not kept for ever") {
    SseScan scan;
    const std::string much(std::size_t{9} << 20, 'x');
    CHECK(scan.feed("data: " + much).ok());
    CHECK_FALSE(scan.feed(much).ok());
  }

  TEST_CASE("a chat stream ends with DONE and says its usage before") {
    const StreamFacts facts = followed(
        ModelApi::kChat,
        "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n"
        "data: [DONE]\n\n");
    CHECK(facts.ended());
    CHECK_FALSE(facts.failed());
    REQUIRE(facts.facts().usage);
    CHECK(facts.facts().usage->output_tokens == 2);
    const auto finish = [](const std::string& choices) {
      return followed(ModelApi::kChat, "data: {\"choices\":" + choices + "}\n\n").facts().finish;
    };
    CHECK(finish(R"([{"finish_reason":"stop"}])") == "stop");
    CHECK(finish(R"({"0":{"finish_reason":"stop"}})").empty());
    const StreamFacts broken =
        followed(ModelApi::kChat, "data: {\"error\":{\"message\":\"x\"}}\n\n");
    CHECK(broken.failed());
  }

  TEST_CASE("a messages stream says its input first and its output last") {
    const StreamFacts facts =
        followed(ModelApi::kMessages,
                 kMessages + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    CHECK(facts.ended());
    CHECK(facts.facts().usage->input_tokens == 17);
    CHECK(facts.facts().usage->output_tokens == 4);
    CHECK(facts.facts().finish == "end_turn");
    const StreamFacts cut =
        followed(ModelApi::kMessages, kMessages.substr(0, kMessages.find("event: ping")));
    CHECK_FALSE(cut.ended());
    CHECK(cut.begun()->input_tokens == 17);
  }

  TEST_CASE("a responses stream says everything in its last event") {
    const StreamFacts facts = followed(
        ModelApi::kResponses,
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":"
        "\"r1\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\","
        "\"response\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":3}}}\n\n");
    CHECK(facts.ended());
    CHECK(facts.facts().usage->input_tokens == 10);
    CHECK(facts.facts().id == "r1");
  }

  TEST_CASE("a usage of nothing is believed only where nothing came") {
    struct Row {
      ModelApi api;
      std::string before, text, after;
    };
    const Row rows[] = {
        {ModelApi::kChat, "", R"(data: {"choices":[{"delta":{"content":"hi"}}]})",
         R"(data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}})"},
        {ModelApi::kCompletions, "", R"(data: {"choices":[{"text":"hi"}]})",
         R"(data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}})"},
        {ModelApi::kMessages,
         R"(data: {"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}})",
         R"(data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}})",
         R"(data: {"type":"message_delta","delta":{},"usage":{"output_tokens":0}})"},
        {ModelApi::kResponses, "", R"(data: {"type":"response.output_text.delta","delta":"hi"})",
         R"(data: {"type":"response.completed","response":{"usage":{"input_tokens":0,"output_tokens":0}}})"},
        {ModelApi::kResponses, "", R"(data: {"type":"response.created","response":{"id":"r"}})",
         R"(data: {"type":"response.completed","response":{"output":[{"type":"message"}],)"
         R"("usage":{"input_tokens":0,"output_tokens":0}}})"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const StreamFacts told =
          followed(row.api, row.before + "\n\n" + row.text + "\n\n" + row.after + "\n\n");
      CHECK_FALSE(told.facts().usage);
      CHECK_FALSE(told.begun());
      const StreamFacts cut = followed(row.api, row.before + "\n\n" + row.text + "\n\n");
      CHECK_FALSE(cut.begun());
    }
    const StreamFacts empty = followed(
        ModelApi::kChat,
        "data: {\"choices\":[ ],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}\n\n");
    REQUIRE(empty.facts().usage);
    CHECK(empty.facts().usage->output_tokens == 0);
  }

  TEST_CASE("only an event that holds nothing but usage is kept from the agent") {
    const auto bare = [](const std::string& data) {
      SseEvent e;
      e.data = data;
      return StreamFacts::is_bare_usage(e);
    };
    CHECK(bare(R"({"choices":[],"usage":{"prompt_tokens":1}})"));
    CHECK_FALSE(bare(R"({"choices":[],"usage":null})"));
    CHECK_FALSE(bare(R"({"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}})"));
    CHECK_FALSE(bare("[DONE]"));
  }
}
