// Clients that are no clients: what they say costs nothing and reaches nobody.
#include "tests/integration/gateway/session_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

ProviderServer::Script never() {
  return [](const auto&, std::size_t) { return chat_answer("x", 1, 1); };
}

std::string with_head(const std::string& head, const std::string& body = "") {
  return head + "\r\n" + body;
}

}  // namespace

TEST_SUITE("gateway session") {
  TEST_CASE("whoever has not the run's token gets no further, and twenty of them change nothing") {
    SessionScene scene({}, never());
    for (const char* token : {"", "prk1_other", "prk1_tes", "prk1_test2"}) {
      const HttpAnswer answer = scene.ask(kChat, chat(10), token);
      CHECK(answer.status == 401);
      CHECK(answer.json()["error"]["code"] == "invalid_api_key");
    }
    CHECK(scene
              .raw("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   "application/json\r\nAuthorization: Bearer prk1_test\r\nx-api-key: other\r\n"
                   "Content-Length: 2\r\n\r\n{}")
              .status == 401);
    CHECK(scene.ask(kChat, chat(10)).status == 200);
    CHECK(scene.provider().heard().size() == 1);
    CHECK(scene.spent() == 11);
  }

  TEST_CASE("what is no request of ours is answered and the connection closed") {
    SessionScene scene({}, never());
    const std::string post =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8710\r\nContent-Type: "
        "application/json\r\nAuthorization: Bearer prk1_test\r\n";
    struct Row {
      std::string bytes;
      int status;
    };
    const Row rows[] = {
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        {"\x16\x03\x01\x02\r\n\r\n", 400},
        {with_head(post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "{}"), 400},
        {with_head(post + "Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), 400},
        {with_head(post + "Transfer-Encoding: chunked\r\n", "zz\r\n"), 400},
        {with_head(post + "Content-Length: 40000000\r\n"), 413},
        {with_head("GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n"), 400},
        {with_head("GET /v1/models HTTP/1.1\r\nHost: metadata.internal\r\n"), 421},
        {with_head("CONNECT api.example:443 HTTP/1.1\r\nHost: api.example\r\n"), 400},
        {with_head("GET /v1/files HTTP/1.1\r\nHost: localhost\r\n"), 404},
        {with_head("GET /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"), 405},
        {"GET /" + std::string(40'000, 'a'), 400}};
    for (const Row& row : rows) {
      CAPTURE(row.bytes.substr(0, 100));
      CHECK(scene.raw(row.bytes).status == row.status);
    }
    CHECK(scene.provider().heard().empty());
    CHECK(scene.spent() == 0);
  }

  TEST_CASE(
      "bodies that could be read in two ways, or reach too far, are refused unread by anyone") {
    SessionScene scene({}, never());
    for (
        const char* body :
        {"", "[]", "{", R"({"model":"m","max_tokens":5,"max_tok\u0065ns":9})",
         R"({"model":"m","max_tokens":1e9})", R"({"model":"m","n":1000})",
         R"({"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"http://10.0.0.1/"}}]}]})"}) {
      CAPTURE(body);
      const HttpAnswer answer = scene.ask(kChat, body);
      CHECK(answer.status == 400);
      CHECK(answer.json()["error"]["type"] == "invalid_request_error");
    }
    CHECK(scene.ask(kChat, R"({"model":"dearer"})").status == 404);
    CHECK(scene.ask(kChat, std::string(100'000, '[')).status == 400);
    CHECK(scene.ask("/v1/messages", R"({"model":"m"})").status == 404);
    CHECK(scene.provider().heard().empty());
    CHECK(scene.spent() == 0);
    CHECK(scene.events("model.refused").size() == 10);
  }

  TEST_CASE("a reference to what the provider keeps goes no further, and the run goes on") {
    SessionScene scene({}, [](const auto&, std::size_t) { return chat_answer("x", 1, 1); });
    std::string many = R"({"id":"msg_0"})";
    for (int i = 1; i < 20; ++i) many += R"(,{"id":"msg_0"})";
    SessionScene::Shape shape;
    shape.as = MethodGateway::As::kOpenaiResponses;
    SessionScene responses(shape, never());
    const HttpAnswer no = responses.ask("/v1/responses", R"({"model":"m","input":[)" + many + "]}");
    CHECK(no.status == 400);
    CHECK(no.json()["error"]["param"] == "input");
    CHECK(responses.provider().heard().empty());
    CHECK_FALSE(responses.stopped());
    // It was the run's first, so that its agent never had a model.
    CHECK(responses.lack().why.starts_with("its gateway does not pass its first request: input: "));
    CHECK(scene
              .ask(kChat,
                   R"({"model":"m","messages":[{"content":[{"image_url":{"url":"data:x"}}]}]})")
              .status == 400);
    CHECK_FALSE(scene.lack().why.empty());
    CHECK(scene.ask(kChat, chat(10)).status == 200);  // it was not final
    scene.close();  // a client has its answer before the session has noted it
    CHECK(scene.lack().why.empty());
    ProviderSays unwell;
    unwell.status = 400;
    SessionScene later({}, [&](const auto&, std::size_t) { return unwell; });
    CHECK(later.ask(kChat, chat(10)).status == 400);  // the provider's word
    CHECK(later.ask(kChat, R"({"model":"dearer"})").status == 404);
    CHECK(later.lack().why.empty());
  }

  TEST_CASE("a body in chunks is one body, and the next request of the connection is the next") {
    SessionScene scene({}, never());
    const UniqueFd fd = scene.connect();
    const std::string body = chat(10);
    const std::string head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\n"
        "x-api-key: prk1_test\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
    SessionScene::say(fd.get(), head);
    CHECK(SessionScene::read(fd.get()).status == 100);
    SessionScene::say(fd.get(), "5;x=y\r\n" + body.substr(0, 5) + "\r\n");
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size() - 5);
    SessionScene::say(
        fd.get(), size + body.substr(5) + "\r\n0\r\n\r\n" + SessionScene::request(kChat, chat(20)));
    CHECK(SessionScene::read(fd.get()).status == 200);
    CHECK(SessionScene::read(fd.get()).status == 200);
    CHECK(scene.spent() == 22);
    CHECK(scene.provider().heard()[1].body["max_completion_tokens"] == 20);
  }

  TEST_CASE("the models and what is left are told without a provider") {
    SessionScene scene({}, never());
    const auto get = [&](const std::string& path, const std::string& more = "") {
      return scene.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nx-api-key: prk1_test\r\n" +
                       more + "\r\n");
    };
    CHECK(get("/v1/models").json()["data"][0]["id"] == "m");
    CHECK(get("/v1/models/m").json()["id"] == "m");
    CHECK(get("/v1/models/x").status == 404);
    CHECK(get("/v1/models", "anthropic-version: 2023-06-01\r\n").json()["has_more"] == false);
    CHECK(get("/proctor/v1/status").json()["answer"] == "status");
    CHECK(scene.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200);
    CHECK(scene.provider().heard().empty());
  }

  TEST_CASE("a client that stops in the middle of its request holds up nobody and costs nothing") {
    SessionScene scene({}, never());
    std::vector<UniqueFd> slow;
    for (int i = 0; i < 20; ++i) {
      slow.push_back(scene.connect());
      SessionScene::say(
          slow.back().get(),
          i % 2 == 0 ? "POST /v1/chat" : SessionScene::request(kChat, chat(9)).substr(0, 200));
    }
    CHECK(scene.ask(kChat, chat(10)).status == 200);
    slow.clear();
    scene.close();
    CHECK(scene.held() == 0);
    CHECK(scene.spent() == 11);
  }
}
