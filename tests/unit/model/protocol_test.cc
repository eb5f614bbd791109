// What is said to models and how their answers are read, without any model.
#include <doctest/doctest.h>

#include "worker/model/call_rules.h"
#include "worker/model/chat_protocol.h"
#include "worker/model/model.h"

using namespace proctor;
using namespace std::chrono_literals;
using End = ModelReply::End;

TEST_SUITE("model") {
  TEST_CASE("what a provider answers is read, whatever it is") {
    struct Row {
      const char* what;
      long status;
      const char* body;
      End end;
      bool billed;
      const char* text;
    };
    const Row rows[] = {
        {"an answer", 200, R"({"choices":[{"message":{"content":"hi"}}]})", End::kAnswered, true,
         "hi"},
        {"a refusal without a text", 200, R"({"choices":[{"message":{"content":null}}]})",
         End::kAnswered, true, ""},
        {"no choices", 200, R"({"choices":[]})", End::kFailed, true, ""},
        {"choices of another kind", 200, R"({"choices":[7]})", End::kFailed, true, ""},
        {"a message of another kind", 200, R"({"choices":[{"message":7}]})", End::kFailed, true,
         ""},
        {"truncated", 200, R"({"choices":[{"mess)", End::kFailed, true, ""},
        {"a page", 200, "<html>", End::kFailed, true, ""},
        {"a list", 200, "[]", End::kFailed, true, ""},
        {"nothing", 200, "", End::kFailed, true, ""},
        {"too many", 429, "slow down", End::kBusy, false, ""},
        {"away", 503, "", End::kBusy, false, ""},
        {"broken", 500, "oops", End::kFailed, true, ""},
        {"gateway", 502, "", End::kFailed, true, ""},
        {"timed out there", 408, "", End::kFailed, false, ""},
        {"no key", 401, "who?", End::kNoAccess, false, ""},
        {"too long a prompt", 400, "context", End::kRefused, false, ""},
        {"moved", 302, "", End::kRefused, false, ""}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const ModelReply reply = read_chat_answer({row.status, "text/plain", row.body, 0ms});
      CHECK(reply.end == row.end);
      CHECK(reply.billed == row.billed);
      CHECK(reply.text == row.text);
      CHECK(reply.raw == row.body);
      CHECK(reply.why.empty() == (row.end == End::kAnswered));
    }
  }

  TEST_CASE("usage counts only when both numbers are whole and sane") {
    const auto usage = [](const char* text) {
      return read_chat_answer({200, "",
                               std::string(R"({"choices":[{"message":{"content":""}}],)") +
                                   "\"usage\":" + text + "}",
                               0ms})
          .usage;
    };
    const auto good = usage(R"({"prompt_tokens":12,"completion_tokens":34})");
    REQUIRE(good);
    CHECK(good->input_tokens == 12);
    CHECK(good->output_tokens == 34);
    for (const char* bad : {"null", "7", "{}", R"({"prompt_tokens":12})",
                            R"({"prompt_tokens":-1,"completion_tokens":2})",
                            R"({"prompt_tokens":1.5,"completion_tokens":2})",
                            R"({"prompt_tokens":1,"completion_tokens":99999999999})"}) {
      CAPTURE(bad);
      CHECK_FALSE(usage(bad));
    }
  }

  TEST_CASE("waits double, heed the provider, and have a bound") {
    CHECK(wait_before_next(1, 1s, 0ms) == 1s);
    CHECK(wait_before_next(3, 1s, 0ms) == 4s);
    CHECK(wait_before_next(1, 1s, 7s) == 7s);
    CHECK(wait_before_next(30, 1s, 0ms) == kModelWaitMost);
    CHECK(wait_before_next(1, 1s, 1h) == kModelWaitMost);
    CHECK(wait_before_next(5, 0ms, 0ms) == 0ms);
    CHECK(parse_retry_after(" 7\r\n") == 7s);
    CHECK(parse_retry_after("Wed, 21 Oct 2026 07:28:00 GMT") == 0ms);
    CHECK(parse_retry_after("99999") == kModelWaitMost);
    CHECK(parse_retry_after("-3") == 0ms);
  }

  TEST_CASE("a prompt is sent as it is, bytes that are no UTF-8 are replaced") {
    ModelRequest r;
    r.model = "m";
    r.system = "s";
    r.user = std::string("u\xff");
    r.max_output_tokens = 9;
    CHECK(chat_body(r, "max_tokens") ==
          "{\"max_tokens\":9,\"messages\":[{\"content\":\"s\",\"role\":\"system\"},{\"content\":"
          "\"u\xEF\xBF\xBD\",\"role\":\"user\"}],\"model\":\"m\"}");
    CHECK(input_ceiling(r) == 3 + 64);
  }

  TEST_CASE("a program's answer has a text") {
    ModelReply reply;
    read_program_answer(R"({"text": "t", "usage": {"input_tokens": 1, "output_tokens": 2}})",
                        reply);
    CHECK(reply.end == End::kAnswered);
    CHECK(reply.text == "t");
    CHECK(reply.usage->output_tokens == 2);
    for (const char* bad : {"", "t", "{}", R"({"text": 1})", "[]"}) {
      ModelReply other;
      read_program_answer(bad, other);
      CHECK(other.end == End::kFailed);
    }
  }

  TEST_CASE("a models file says where, and never lets a key out in the open") {
    const auto good = parse_models(
        R"({"models": {"a": {"url": "https://h/v1", "key_variable": "K", "backoff_ms": 5},
                       "b": {"program": ["/p", "x"]}, "c": {"url": "http://127.0.0.1:1/v1", "key_file": "/k"}}})");
    REQUIRE(good.ok());
    CHECK(good->at("a").backoff == 5ms);
    CHECK(good->at("b").program.size() == 2);
    struct Row {
      const char* text;
      const char* why;
    };
    const Row rows[] = {
        {"[]", "expected {\"models\""},
        {R"({"models": {"a": {}}})", "one of url, program and cassette"},
        {R"({"models": {"a": {"url": "https://h", "program": ["p"]}}})",
         "one of url, program and cassette"},
        {R"({"models": {"a": {"url": "ftp://h"}}})", "http:// or https://"},
        {R"({"models": {"a": {"url": "http://h/v1", "key_variable": "K"}}})", "https:// only"},
        {R"({"models": {"a": {"url": "http://127.0.0.1@h/v1", "key_variable": "K"}}})", "password"},
        {R"({"models": {"a": {"url": "http://127.0.0.1.h/v1", "key_variable": "K"}}})", "https://"},
        {R"({"models": {"a": {"url": "https://h", "key": "secret"}}})", "unknown member \"key\""},
        {R"({"models": {"a": {"url": "https://h", "key_variable": "K", "key_file": "f"}}})",
         "either key_variable"},
        {R"({"models": {"a": {"program": []}}})", "its words"},
        {R"({"models": {"a": {"url": "https://h", "backoff_ms": -1}}})", "backoff_ms"}};
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const auto read = parse_models(row.text);
      REQUIRE_FALSE(read.ok());
      CHECK_MESSAGE(read.error().detail.find(row.why) != std::string::npos, read.error().detail);
    }
  }

  TEST_CASE("a key that comes back is struck out") {
    std::string text = "Bearer sk-1 and sk-1sk-1";
    strike_out(text, "sk-1");
    CHECK(text == "Bearer *** and ******");
    strike_out(text, "");
    CHECK(text == "Bearer *** and ******");
  }
}
