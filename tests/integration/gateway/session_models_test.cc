// A run that may ask several models: which one a call is of, and what it costs.
#include "tests/integration/gateway/session_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Large: 1 and 10 micro-dollars for a token of input and output.  Small: 1 and 1.
const std::string kTwoPrices = std::string(kPrices) +
                               "llm_request,input_token,0.000001,other,small\n"
                               "llm_request,output_token,0.000001,other,small\n";

SessionScene::Shape two_models() {
  SessionScene::Shape shape;
  shape.prices = kTwoPrices;
  shape.models = {{"m", "acme", {"gpt-*"}, {}}, {"small", "other", {"gpt-mini"}, 7}};
  return shape;
}

std::string asking(const std::string& model) {
  return R"({"model":")" + model +
         R"(","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":100})";
}

}  // namespace

TEST_SUITE("gateway models") {
  TEST_CASE("each call is of the model it asks for, at its price, under its limit") {
    SessionScene scene(two_models(),
                       [](const auto&, std::size_t) { return chat_answer("ok", 8, 3); });
    CHECK(scene.ask(kChat, asking("m")).status == 200);
    CHECK(scene.spent() == 38);
    CHECK(scene.ask(kChat, asking("small")).status == 200);
    CHECK(scene.spent() == 38 + 11);
    CHECK(scene.ask(kChat, asking("gpt-mini")).status == 200);  // exact, before the pattern
    CHECK(scene.ask(kChat, asking("gpt-5")).status == 200);
    CHECK(scene.spent() == 2 * 38 + 2 * 11);
    CHECK(scene.held() == 0);
    const auto heard = scene.provider().heard();
    REQUIRE(heard.size() == 4);
    const char* const names[] = {"m", "small", "small", "m"};
    for (std::size_t i = 0; i < heard.size(); ++i) {
      CHECK(heard[i].body["model"] == names[i]);
      CHECK(heard[i].body["max_completion_tokens"] == (heard[i].body["model"] == "m" ? 100 : 7));
      CHECK(scene.events("model.request").at(i)["model"] == names[i]);
    }
    const Json opened = scene.events("gateway.open").at(0);
    CHECK(opened["model"] == "m");
    CHECK(opened["models"][1]["provider"] == "other");
  }

  TEST_CASE("a name that is not there is refused with those that are, and all are listed") {
    SessionScene scene(two_models(), [](const auto&, std::size_t) -> ProviderSays {
      FAIL("asked");
      return {};
    });
    const HttpAnswer no = scene.ask(kChat, asking("claude"));
    CHECK(no.status == 404);
    CHECK(no.json()["error"]["message"] ==
          R"(proctor: the model "claude" is not this run's: ask for "m", "small")");
    const auto get = [&](const std::string& path) {
      return scene.raw("GET " + path +
                       " HTTP/1.1\r\nHost: localhost\r\nx-api-key: prk1_test\r\n\r\n");
    };
    CHECK(get("/v1/models").json()["data"].size() == 2);
    CHECK(get("/v1/models/small").json()["id"] == "small");
    CHECK(get("/v1/models/big").status == 404);
    CHECK(scene.spent() == 0);
  }

  TEST_CASE("what calls of one model cost bounds no call of another") {
    SessionScene scene(two_models(),
                       [](const auto&, std::size_t) { return chat_answer("ok", 8, 3); });
    for (int i = 0; i < 10; ++i) CHECK(scene.ask(kChat, asking("small")).status == 200);
    CHECK(scene.ask(kChat, asking("m")).status == 200);
    const auto requests = scene.events("model.request");
    CHECK(requests.at(9)["ceiling"].contains("delta"));
    CHECK_FALSE(requests.at(10)["ceiling"].contains("delta"));
  }

  TEST_CASE("Anthropic's address may have its version or not") {
    for (const bool version : {false, true}) {
      CAPTURE(version);
      ProviderServer provider(
          [](const auto&, std::size_t) { return messages_answer("hello", 5, 2); });
      SessionScene::Shape shape;
      shape.as = MethodGateway::As::kAnthropic;
      shape.url = provider.at() + (version ? "/v1/" : "");
      SessionScene scene(shape, [](const auto&, std::size_t) { return ProviderSays{}; });
      CHECK(scene.ask("/v1/messages", R"({"model":"m","max_tokens":9,"messages":[]})").status ==
            200);
      REQUIRE(provider.heard().size() == 1);
      CHECK(provider.heard()[0].path == "/v1/messages");
      CHECK(scene.spent() == 25);
    }
  }
}
