// Streams: relayed as they come, charged when they end, whoever left.
#include <algorithm>

#include "tests/integration/gateway/session_scene.h"

using namespace proctor;
using namespace proctor::testing;
using Then = ProviderSays::Then;

namespace {

std::string streamed(const std::string& more = "") {
  return chat(100, R"(,"stream":true)" + more);
}

}  // namespace

TEST_SUITE("gateway session") {
  TEST_CASE("a chat stream comes through without the usage that only the gateway asked for") {
    SessionScene scene({}, [](const auto&, std::size_t) { return chat_stream("hello", 9, 2); });
    const HttpAnswer answer = scene.ask(kChat, streamed());
    CHECK(answer.status == 200);
    CHECK(answer.whole);
    CHECK(answer.head.find("content-type: text/event-stream") != std::string::npos);
    CHECK(answer.body.find("prompt_tokens") == std::string::npos);
    CHECK(answer.body.ends_with("data: [DONE]\n\n"));
    CHECK(answer.body.find("\"content\":\"h\"") != std::string::npos);
    CHECK(scene.spent() == 29);
    CHECK(scene.provider().heard()[0].body["stream_options"]["include_usage"] == true);
    // One that asked for it gets it.
    const HttpAnswer asked =
        scene.ask(kChat, streamed(R"(,"stream_options":{"include_usage":true})"));
    CHECK(asked.body.find("\"prompt_tokens\":9") != std::string::npos);
    CHECK(scene.spent() == 58);
  }

  TEST_CASE("streams of messages and of responses come through byte for byte") {
    SessionScene::Shape shape;
    shape.as = MethodGateway::As::kAnthropic;
    const ProviderSays says = messages_stream("hello", 9, 4);
    std::string bytes;
    for (const std::string& piece : says.pieces) bytes += piece;
    SessionScene scene(shape, [&](const auto&, std::size_t) { return says; });
    const HttpAnswer answer =
        scene.ask("/v1/messages", R"({"model":"m","max_tokens":50,"stream":true,"messages":[]})");
    CHECK(answer.body == bytes);
    CHECK(scene.spent() == 9 + 40);
    shape.as = MethodGateway::As::kOpenaiResponses;
    SessionScene other(shape,
                       [](const auto&, std::size_t) { return responses_stream("hi", 10, 3); });
    const HttpAnswer responses =
        other.ask("/v1/responses", R"({"model":"m","stream":true,"input":"hi"})");
    CHECK(responses.body.find("response.completed") != std::string::npos);
    CHECK(other.spent() == 40);
    CHECK(other.provider().heard()[0].body["max_output_tokens"] == 32'000);
  }

  TEST_CASE("an event is at the client while the provider still thinks of the next") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      ProviderSays says = chat_stream("h", 9, 2);
      says.pieces.resize(1);
      says.then = Then::kHang;
      return says;
    });
    const UniqueFd fd = scene.connect();
    SessionScene::say(fd.get(), SessionScene::request(kChat, streamed()));
    std::string got;
    REQUIRE(SessionScene::eventually([&] {
      char buffer[4096];
      const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (0 < n) got.append(buffer, static_cast<std::size_t>(n));
      return got.find("\"content\":\"h\"") != std::string::npos;
    }));
    scene.provider().release();
  }

  TEST_CASE("who reads a stream was answered, whatever it provokes beside it") {
    SessionScene scene({}, [](const auto&, std::size_t call) {
      ProviderSays says = chat_stream("h", 9, 2);
      says.pieces.resize(1);
      says.then = Then::kHang;
      if (call == 1) says = {.status = 401, .body = "{}"};
      if (call == 2) says = {.status = 400, .body = "{}"};  // the worker's own question
      return says;
    });
    const UniqueFd fd = scene.connect();
    SessionScene::say(fd.get(), SessionScene::request(kChat, streamed()));
    std::string got;
    REQUIRE(SessionScene::eventually([&] {
      char buffer[4096];
      const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (0 < n) got.append(buffer, static_cast<std::size_t>(n));
      return got.find("\"content\":\"h\"") != std::string::npos;
    }));
    CHECK(scene.ask(kChat, chat(10)).status == 401);
    CHECK(scene.provider().heard().size() == 3);
    CHECK(scene.lack().why.empty());
    scene.provider().release();
  }

  TEST_CASE("a client that leaves its stream pays for all of it") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      ProviderSays says = chat_stream(std::string(2'000, 'x'), 9, 50);
      return says;
    });
    {
      const UniqueFd fd = scene.connect();
      SessionScene::say(fd.get(), SessionScene::request(kChat, streamed()));
      char one = 0;
      REQUIRE(::recv(fd.get(), &one, 1, 0) == 1);
    }
    REQUIRE(SessionScene::eventually([&] { return scene.held() == 0; }));
    CHECK(scene.spent() == 9 + 500);
    REQUIRE(SessionScene::eventually([&] { return scene.events("model.response").size() == 1; }));
    CHECK(scene.events("model.response")[0]["settled"] == "usage");
  }

  TEST_CASE(
      "a stream that breaks off costs its ceiling, or its input and its limit where that is "
      "known, and does not look whole") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      ProviderSays says = chat_stream("hello", 9, 2);
      says.pieces.resize(3);
      says.then = Then::kClose;
      return says;
    });
    const HttpAnswer answer = scene.ask(kChat, streamed());
    CHECK(answer.status == 200);
    CHECK_FALSE(answer.whole);
    CHECK(scene.spent() ==
          scene.events("model.request")[0]["ceiling"]["micros"].get<std::int64_t>());
    SessionScene::Shape shape;
    shape.as = MethodGateway::As::kAnthropic;
    SessionScene other(shape, [](const auto&, std::size_t) {
      ProviderSays says = messages_stream("hello", 9, 4);
      says.pieces.resize(4);
      says.then = Then::kClose;
      return says;
    });
    CHECK_FALSE(
        other.ask("/v1/messages", R"({"model":"m","max_tokens":50,"stream":true,"messages":[]})")
            .whole);
    CHECK(other.spent() == 9 + 500);
    CHECK(other.events("model.response")[0]["settled"] == "partial");
  }

  TEST_CASE("a stream that its provider ends without a last event is whole, as without us") {
    bool finishes = true;
    SessionScene scene({}, [&](const auto&, std::size_t) {
      ProviderSays says = chat_stream("hello", 9, 2);
      says.pieces.pop_back();  // [DONE]
      if (!finishes) says.pieces.resize(1);
      return says;
    });
    CHECK(scene.ask(kChat, streamed()).whole);
    CHECK(scene.spent() == 29);
    finishes = false;
    CHECK(scene.ask(kChat, streamed()).whole);
    // Both calls are recorded when their clients are served, in either order.
    const std::vector<Json> responses = scene.events("model.response");
    CHECK(responses.size() == 2);
    CHECK(std::ranges::count_if(responses, [](const Json& r) { return r["settled"] == "usage"; }) ==
          1);
  }

  // Each bound for itself: on a host that lets us wait for longer than both, only one would be
  // seen.
  TEST_CASE(
      "a provider that says nothing for long is covered by comments, and given up in the end") {
    const auto stalls = [](const auto&, std::size_t) {
      ProviderSays says = chat_stream("h", 9, 2);
      says.pieces.resize(1);
      says.then = Then::kHang;
      return says;
    };
    SessionScene::Shape patient;
    patient.bounds.silence = std::chrono::milliseconds(20);
    SessionScene covered(patient, stalls);
    const UniqueFd fd = covered.connect();
    SessionScene::say(fd.get(), SessionScene::request(kChat, streamed()));
    std::string got;
    CHECK(SessionScene::eventually([&] {
      char buffer[4096];
      const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (0 < n) got.append(buffer, static_cast<std::size_t>(n));
      return got.find(": wait\n\n") != std::string::npos;
    }));
    covered.provider().release();
    SessionScene::Shape brief;
    brief.access.idle = std::chrono::milliseconds(300);
    SessionScene scene(brief, stalls);
    CHECK_FALSE(scene.ask(kChat, streamed()).whole);
    CHECK(scene.events("model.response")[0]["settled"] == "ceiling");
  }
}
