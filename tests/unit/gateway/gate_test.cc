#include <doctest/doctest.h>

#include "worker/gateway/http_gate.h"

using namespace proctor;

namespace {

std::string post(const std::string& more = "Content-Length: 2\r\n",
                 const std::string& line = "POST /v1/messages HTTP/1.1") {
  return line + "\r\nHost: 127.0.0.1:8710\r\nContent-Type: application/json\r\n" + more + "\r\n";
}

int refused(const std::string& head) {
  const auto judged = judge_head(head);
  const auto* no = std::get_if<GateRefusal>(&judged);
  return no == nullptr ? 0 : no->status;
}

}  // namespace

TEST_SUITE("gateway gate") {
  TEST_CASE("a plain request passes with its fields and its length") {
    const auto judged = judge_head(post("Content-Length: 61\r\nExpect: 100-continue\r\n"));
    const auto* head = std::get_if<GatewayHead>(&judged);
    REQUIRE(head != nullptr);
    CHECK(head->method == "POST");
    CHECK(head->target == "/v1/messages");
    CHECK(head->body.bytes == 61);
    CHECK(head->expects_continue);
    CHECK_FALSE(head->last);
  }

  TEST_CASE("what two programs could read as different requests is refused") {
    struct Row {
      std::string head;
      int status;
    };
    const Row rows[] = {
        {post("Content-Length: 2\r\nContent-Length: 2\r\n"), 400},
        {post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), 400},
        {post("Content-Length: +5\r\n"), 400},
        {post("Content-Length: 0x5\r\n"), 400},
        {post("Content-Length: 5, 5\r\n"), 400},
        {post("Content-Length: 12345678901234567\r\n"), 400},
        {post("Content-Length : 5\r\n"), 400},
        {post("Transfer-Encoding: chunked, identity\r\n"), 400},
        {post("Transfer-Encoding: xchunked\r\n"), 400},
        {post("X: a\r\n folded\r\n"), 400},
        {post("X: a\nY: b\r\n"), 400},
        {post(std::string("X: a\0b\r\n", 8)), 400},
        {post("Host: localhost\r\n"), 400},
        {post("", "POST http://127.0.0.1/v1/messages HTTP/1.1"), 400},
        {post("", "CONNECT 127.0.0.1:1 HTTP/1.1"), 400},
        {post("", "TRACE / HTTP/1.1"), 400},
        {post("", "POST /a b HTTP/1.1"), 400},
        {post("", "POST / HTTP/2.0"), 400},
        {post("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0"), 400},
        {post("Upgrade: websocket\r\n"), 426},
        {post("Content-Encoding: gzip\r\n"), 415},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n", 415},
        {"GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", 421},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421},
        {"GET / HTTP/1.1\r\nHost: a@127.0.0.1\r\n\r\n", 421},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [::1]:8710\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 0},
        {"GET / HTTP/1.0\r\n\r\n", 0},
        {post("Transfer-Encoding: Chunked\r\n"), 0}};
    for (const Row& row : rows) {
      CAPTURE(row.head);
      CHECK(refused(row.head) == row.status);
    }
  }

  TEST_CASE("chunks are the same in whatever pieces they come") {
    const std::string text = "4;a=b\r\nWiki\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\nnext";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ChunkReader reader;
      std::string out;
      const auto first = reader.feed(std::string_view(text).substr(0, cut), &out);
      REQUIRE(first.ok());
      const auto second = reader.feed(std::string_view(text).substr(cut), &out);
      REQUIRE(second.ok());
      CHECK(out == "Wiki0123456789");
      CHECK(reader.done());
      CHECK(*first + *second == text.size() - 4);
    }
    for (const char* bad :
         {"x\r\n", "\r\n", "4\r\nWikiX\r\n", "4\nWiki", "11111111111111\r\n", "0\r\nX: y\n\r\n"}) {
      ChunkReader reader;
      std::string out;
      CAPTURE(bad);
      CHECK_FALSE(reader.feed(bad, &out).ok());
    }
  }

  TEST_CASE("answers of providers are read as strictly") {
    const auto read = [](const std::string& head) { return read_answer_head(head); };
    const auto good = read("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
    REQUIRE(good.ok());
    CHECK(good->body.kind == HttpFraming::Kind::kLength);
    CHECK_FALSE(good->last);
    const auto open = read("HTTP/1.1 500\r\n\r\n");
    REQUIRE(open.ok());
    CHECK(open->body.kind == HttpFraming::Kind::kToTheEnd);
    CHECK(open->last);
    CHECK(read("HTTP/1.1 204 No\r\n\r\n")->body.kind == HttpFraming::Kind::kNone);
    for (const char* bad :
         {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 999 OK\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "SSH-2.0\r\n\r\n"}) {
      CAPTURE(bad);
      CHECK_FALSE(read(bad).ok());
    }
  }

  TEST_CASE("routes are exact, with or without the version") {
    using Place = Route::Place;
    CHECK(route_of("POST", "/v1/chat/completions").api == ModelApi::kChat);
    CHECK(route_of("POST", "/chat/completions").place == Place::kCall);
    CHECK(route_of("POST", "/v1/messages?beta=true").api == ModelApi::kMessages);
    CHECK(route_of("POST", "/v1/messages/count_tokens").api == ModelApi::kCountTokens);
    CHECK(route_of("GET", "/v1/models").place == Place::kModels);
    CHECK(route_of("GET", "/v1/models/a").model == "a");
    CHECK(route_of("GET", "/v1/messages").place == Place::kWrongMethod);
    CHECK(route_of("GET", "/healthz").place == Place::kHealth);
    for (const char* bad : {"/v1/messages?x=1", "/v1//messages", "/v1/../v1/messages",
                            "/v1/message%73", "/v1/messages;a", "/v1/v1/messages", "/v1/messages/",
                            "/v1/audio/speech", "/", "/v1/models/"}) {
      CAPTURE(bad);
      CHECK(route_of("POST", bad).place == Place::kUnknown);
    }
  }
}
