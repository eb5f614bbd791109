// What is said to models and how their answers are read, without any model.
#include <doctest/doctest.h>

#include "common/contract/models_file.h"
#include "worker/model/model.h"

using namespace proctor;
using namespace std::chrono_literals;
using End = ModelReply::End;

TEST_SUITE("model") {
  TEST_CASE("what a provider answers is read, whatever it is") {
    struct Row {
      const char* what;
      int status;
      const char* body;
      End end;
      const char* text;
    };
    const Row rows[] = {
        {"an answer", 200, R"({"choices":[{"message":{"content":"hi"}}]})", End::kAnswered, "hi"},
        {"a refusal without a text", 200, R"({"choices":[{"message":{"content":null}}]})",
         End::kAnswered, ""},
        {"no choices", 200, R"({"choices":[]})", End::kFailed, ""},
        {"choices of another kind", 200, R"({"choices":[7]})", End::kFailed, ""},
        {"a message of another kind", 200, R"({"choices":[{"message":7}]})", End::kFailed, ""},
        {"truncated", 200, R"({"choices":[{"mess)", End::kFailed, ""},
        {"a page", 200, "<html>", End::kFailed, ""},
        {"a list", 200, "[]", End::kFailed, ""},
        {"nothing", 200, "", End::kFailed, ""},
        {"no answer", 0, "", End::kFailed, ""},
        {"too many", 429, "slow down", End::kBusy, ""},
        {"away", 503, "", End::kBusy, ""},
        {"overloaded", 529, "", End::kBusy, ""},
        {"broken", 500, "oops", End::kFailed, ""},
        {"gateway", 502, "", End::kFailed, ""},
        {"timed out there", 408, "", End::kFailed, ""},
        {"no key", 401, "who?", End::kNoAccess, ""},
        {"too long a prompt", 400, "context", End::kRefused, ""},
        {"moved", 302, "", End::kRefused, ""}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const ModelReply reply = read_chat_answer({row.status, row.body});
      CHECK(reply.end == row.end);
      CHECK(reply.text == row.text);
      CHECK(reply.why.empty() == (row.end == End::kAnswered));
    }
    CHECK(read_chat_answer({429, "", 1s, true}).end == End::kNotNow);
    CHECK(read_chat_answer({401, "", 0s, false}).end == End::kNever);
  }

  TEST_CASE("waits double, heed the provider, and have a bound") {
    CHECK(wait_before_next(1, 1s, 0ms) == 1s);
    CHECK(wait_before_next(3, 1s, 0ms) == 4s);
    CHECK(wait_before_next(1, 1s, 7s) == 7s);
    CHECK(wait_before_next(30, 1s, 0ms) == kModelWaitMost);
    CHECK(wait_before_next(1, 1s, 1h) == kModelWaitMost);
    CHECK(wait_before_next(5, 0ms, 0ms) == 0ms);
  }

  TEST_CASE("a prompt is sent as it is, bytes that are no UTF-8 are replaced") {
    ModelRequest r;
    r.model = "m";
    r.system = "s";
    r.user = std::string("u\xff");
    CHECK(chat_body(r) ==
          "{\"messages\":[{\"content\":\"s\",\"role\":\"system\"},{\"content\":"
          "\"u\xEF\xBF\xBD\",\"role\":\"user\"}],\"model\":\"m\"}");
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
        {"[]", "expected a mapping with models"},
        {R"({"models": {"a": {}}})", "one of url, program and cassette"},
        {R"({"models": {"a": {"url": "https://h", "program": ["p"]}}})",
         "one of url, program and cassette"},
        {R"({"models": {"a": {"url": "ftp://h"}}})", "http:// or https://"},
        {R"({"models": {"a": {"url": "http://h/v1", "key_variable": "K"}}})", "https:// only"},
        {R"({"models": {"a": {"url": "http://127.0.0.1@h/v1", "key_variable": "K"}}})", "password"},
        {R"({"models": {"a": {"url": "http://127.0.0.1.h/v1", "key_variable": "K"}}})", "https://"},
        {R"({"models": {"a": {"url": "https://h", "key": "secret"}}})", "the unknown key \"key\""},
        {R"({"models": {"a": {"url": "https://h", "key_variable": "K", "key_file": "f"}}})",
         "either key_variable"},
        {R"({"models": {"a": {"program": []}}})", "one of url, program and cassette"},
        {R"({"models": {"a": {"url": "https://h", "backoff_ms": -1}}})", "backoff_ms"}};
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const auto read = parse_models(row.text);
      REQUIRE_FALSE(read.ok());
      CHECK_MESSAGE(read.error().detail.find(row.why) != std::string::npos, read.error().detail);
    }
  }
}
