#include <doctest/doctest.h>

#include "worker/gateway/model_answer.h"

using namespace proctor;

TEST_SUITE("gateway usage") {
  TEST_CASE("what OpenAI counts contains what was cached, what Anthropic counts does not") {
    const auto chat = read_usage(ModelApi::kChat,
                                 R"({"prompt_tokens": 100, "completion_tokens": 20,
      "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
      "completion_tokens_details": {"reasoning_tokens": 5}})",
                                 false);
    REQUIRE(chat);
    CHECK(chat->input_tokens == 100);
    CHECK(chat->cache_read == 60);
    CHECK(chat->cache_write == 10);
    CHECK(chat->output_tokens == 20);
    CHECK(chat->reasoning == 5);
    const auto messages = read_usage(ModelApi::kMessages,
                                     R"({"input_tokens": 30, "output_tokens": 20,
      "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10,
      "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 3}})",
                                     true);
    REQUIRE(messages);
    CHECK(messages->input_tokens == 100);
    CHECK(messages->cache_read == 60);
    CHECK(messages->cache_write == 7);
    CHECK(messages->cache_write_long == 3);
    const auto older = read_usage(
        ModelApi::kMessages,
        R"({"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 10})", false);
    CHECK(older->cache_write == 10);
    CHECK(older->input_tokens == 11);
    const auto responses = read_usage(ModelApi::kResponses,
                                      R"({"input_tokens": 10, "output_tokens": 3,
      "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}})",
                                      false);
    CHECK(responses->input_tokens == 10);
    CHECK(responses->cache_read == 4);
    CHECK(responses->reasoning == 2);
    CHECK(read_usage(ModelApi::kEmbeddings, R"({"prompt_tokens": 8, "total_tokens": 8})", false)
              ->input_tokens == 8);
  }

  TEST_CASE("a usage that cannot be believed is none") {
    for (
        const char* bad :
        {"", "null", "[]", "7", R"({"prompt_tokens": 1})", R"({"completion_tokens": 1})",
         R"({"prompt_tokens": -1, "completion_tokens": 1})",
         R"({"prompt_tokens": 1.5, "completion_tokens": 1})",
         R"({"prompt_tokens": "1", "completion_tokens": 1})",
         R"({"prompt_tokens": 1, "completion_tokens": 1000000001})",
         R"({"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": -1}})"}) {
      CAPTURE(bad);
      CHECK_FALSE(read_usage(ModelApi::kChat, bad, false));
    }
    // Nothing, where something came, is no usage either.
    const auto facts = read_answer(
        ModelApi::kChat,
        R"({"choices": [{"message": {}}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})",
        false);
    CHECK_FALSE(facts.usage);
  }

  TEST_CASE("an answer's facts are found, whatever else is in it") {
    const auto facts = read_answer(ModelApi::kMessages,
                                   R"({"id": "msg_1", "content": [{"type": "text", "text": "hi"}],
      "stop_reason": "end_turn", "usage": {"input_tokens": 12, "output_tokens": 4}})",
                                   false);
    REQUIRE(facts.usage);
    CHECK(facts.usage->input_tokens == 12);
    CHECK(facts.finish == "end_turn");
    CHECK(facts.id == "msg_1");
    const auto fault = [](std::string_view body) {
      return read_answer(ModelApi::kMessages, body, false).fault;
    };
    CHECK(fault("<html>") == "it is no JSON object");
    CHECK(fault("") == "it is empty");
    CHECK(fault("{}") == "it has neither content nor usage");
    // A member that is named "0" is no first element.
    const auto odd =
        read_answer(ModelApi::kChat, R"({"choices": {"0": {"finish_reason": "stop"}}})", false);
    CHECK(odd.finish.empty());
    CHECK(odd.fault == "it has neither content nor usage");
    CHECK(fault(R"({"error": {"message": "busy"}})") == "it is an error: busy");
    CHECK(fault(R"({"error": null, "content": [1]})").empty());
    CHECK(read_answer(ModelApi::kCountTokens, R"({"input_tokens": 3})", false).fault.empty());
    CHECK_FALSE(read_answer(ModelApi::kMessages, "<html>", false).usage);
  }
}
