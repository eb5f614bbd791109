// A conversation that grows: how much of a cap it can use, and what becomes of a bill that was not
// expected.
#include "tests/integration/gateway/session_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

const std::string kCached =
    "action_type,unit,unit_price,provider,model\n"
    "llm_request,input_token,0.000004,acme,m\nllm_request,output_token,0.00002,acme,m\n"
    "llm_request,cache_read_token,0.0000004,acme,m\n"
    "llm_request,cache_write_token,0.000005,acme,m\n";

std::string message(const char* role, std::size_t bytes) {
  return R"({"role":")" + std::string(role) + R"(","content":")" + std::string(bytes, 'x') + "\"}";
}

// Bills a token for four bytes, and reads from its cache what it had before.
class CachingProvider {
 public:
  ProviderSays answer(const ProviderServer::Heard& heard) {
    const std::uint64_t input = heard.body["messages"].dump().size() / 4;
    const std::uint64_t output =
        std::min<std::uint64_t>(1'500, heard.body["max_completion_tokens"].get<std::uint64_t>());
    ProviderSays says = chat_answer("x", input, output);
    Json body = read_json(says.body);
    body["usage"]["prompt_tokens_details"]["cached_tokens"] = cached_;
    body["usage"]["prompt_tokens_details"]["cache_write_tokens"] = input - cached_;
    says.body = body.dump();
    const std::uint64_t tenths = cached_ * 4 + (input - cached_) * 50 + output * 200;
    billed_ += (tenths + 9) / 10;  // micro-dollars, rounded up once a call
    cached_ = input;
    return says;
  }
  std::uint64_t billed() const { return billed_; }

 private:
  std::uint64_t cached_ = 0, billed_ = 0;
};

struct Used {
  int calls = 0;
  std::int64_t micros = 0;
  std::uint64_t billed = 0;
};
// A conversation of 48 KB that grows by 3 KB with each call, until nothing more is granted.
Used use_up(std::int64_t cap, bool delta) {
  SessionScene::Shape shape;
  shape.micros = cap;
  shape.prices = kCached;
  shape.access.delta = delta;
  CachingProvider provider;
  SessionScene scene(shape, [&](const auto& heard, std::size_t) { return provider.answer(heard); });
  std::string list = message("system", 45'000) + "," + message("user", 3'000);
  Used out;
  for (; out.calls < 100; ++out.calls) {
    if (scene.ask(kChat, R"({"model":"m","messages":[)" + list + "]}").status != 200) break;
    list += "," + message("assistant", 600) + "," + message("user", 2'400);
  }
  CHECK(scene.stopped());
  CHECK(scene.usage().overruns == 0);
  out.micros = scene.spent();
  out.billed = provider.billed();
  return out;
}

std::uint64_t ceiling_of_last(SessionScene& scene) {
  return scene.events("model.request").back()["ceiling"]["input"].get<std::uint64_t>();
}

}  // namespace

TEST_SUITE("gateway session") {
  TEST_CASE("a growing conversation uses four fifths of its cap at cached prices, and never more") {
    constexpr std::int64_t kCap = 2'000'000;
    const Used used = use_up(kCap, true), by_bytes = use_up(kCap, false);
    MESSAGE("of ", kCap, " micro-dollars: ", used.micros, " in ", used.calls, " calls; by bytes ",
            by_bytes.micros, " in ", by_bytes.calls);
    CHECK(0.80 * kCap <= static_cast<double>(used.micros));
    CHECK(by_bytes.calls < used.calls);
    for (const Used& u : {used, by_bytes}) {
      CHECK(u.micros <= kCap);
      CHECK(u.billed == static_cast<std::uint64_t>(u.micros));
    }
  }

  TEST_CASE("a model whose bill the rule did not bound is bounded by bytes again, and is paid") {
    std::uint64_t billed = 0;
    bool dear = false;
    SessionScene scene({}, [&](const ProviderServer::Heard& heard, std::size_t) {
      const std::uint64_t input = dear ? heard.body["messages"].dump().size() : 100;
      billed += input + 10;
      return chat_answer("x", input, 1);
    });
    const auto ask = [&](int turn) {
      const std::string body = R"({"model":"m","max_completion_tokens":50,"messages":[)" +
                               message("user", 20'000) + "," + message("user", turn) + "]}";
      return scene.ask(kChat, body).status;
    };
    for (int turn = 0; turn < 9; ++turn) {
      CHECK(ask(turn) == 200);
      CHECK(20'000 < ceiling_of_last(scene));  // not confirmed yet
    }
    CHECK(ask(9) == 200);
    CHECK(ceiling_of_last(scene) < 1'000);
    const Json said = scene.events("model.request").back()["ceiling"];
    CHECK(said["rule"] == "delta");
    CHECK(said["delta"] == said["input"]);
    CHECK(20'000 < said["bytes"].get<std::uint64_t>());
    dear = true;
    CHECK(ask(10) == 200);
    CHECK(ceiling_of_last(scene) < 1'000);
    CHECK(static_cast<std::uint64_t>(scene.spent()) == billed);
    CHECK(scene.usage().overruns == 0);
    CHECK_FALSE(scene.stopped());
    CHECK(ask(11) == 200);
    CHECK(20'000 < ceiling_of_last(scene));
    CHECK(scene.events("model.request").back()["ceiling"]["rule"] == "bytes");
    CHECK(static_cast<std::uint64_t>(scene.spent()) == billed);
  }

  TEST_CASE("a bill above the largest input of its model ends the run by that name") {
    SessionScene::Shape shape;
    shape.access.max_input = 500;
    SessionScene scene(shape, [](const auto&, std::size_t) { return chat_answer("x", 600, 1); });
    const std::string body =
        R"({"model":"m","max_completion_tokens":50,"messages":[)" + message("user", 2'000) + "]}";
    CHECK(scene.ask(kChat, body).status == 200);
    CHECK(scene.spent() == 510);
    const auto stop = scene.stop();
    REQUIRE(stop);
    CHECK(stop->cap == kOverrunCap);
    CHECK(stop->reason ==
          "overrun: the provider billed 600 tokens of input and 1 of output, reserved were 500 and "
          "50");
    CHECK(scene.lack().why.empty());
    CHECK(scene.ask(kChat, body).status == 401);
  }
}
