// A session whose breakers watch: what repeats itself is answered later, then not any more.
#include "common/trace/verify.h"
#include "tests/integration/gateway/session_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kBody =
    R"({"model":"m","messages":[{"role":"user","content":"again"}],"max_completion_tokens":100})";
// The same, spelt in another way.
constexpr const char* kSpelt =
    R"({ "max_completion_tokens":100, "messages":[{"content":"ag\u0061in","role":"user"}], "model":"m", "user":"x"})";

SessionScene::Shape watched(std::function<std::optional<WorkspaceLook>()> look) {
  SessionScene::Shape shape;
  shape.breakers.rules["identical_call"] = {{"throttle", 2}, {"stop", 3}};
  shape.look = std::move(look);
  return shape;
}

// Asks, and waits until the trace has all of it.
int ask(SessionScene& scene, const char* body = kBody) {
  const int status = scene.ask("/v1/chat/completions", body).status;
  (void)scene.events("model.response");
  return status;
}

std::vector<std::string> audit(SessionScene& scene) {
  std::vector<std::string> out;
  BreakerAudit audit([&](std::string_view, std::string what, std::uint64_t line) {
    out.push_back(std::to_string(line) + ": " + what);
  });
  std::uint64_t seq = 0;
  for (const auto& [type, payload] : scene.all_events()) {
    TraceEvent event;
    event.seq = ++seq;
    event.type = type;
    event.payload = payload;
    audit.on(event, seq);
  }
  return out;
}

ProviderServer::Script answers() {
  return [](const auto&, std::size_t) { return chat_answer("again", 20, 30); };
}

}  // namespace

TEST_SUITE("gateway breakers") {
  TEST_CASE("the same call without a change waits, then ends the run, and the trace says so") {
    SessionScene scene(watched([] { return WorkspaceLook{"s", 1, 2}; }), answers());
    CHECK(ask(scene) == 200);
    CHECK(ask(scene, kSpelt) == 200);
    // It is told behind the answer's event.
    REQUIRE(
        SessionScene::eventually([&] { return scene.events("monitor.intervention").size() == 1; }));
    CHECK(scene.events("monitor.intervention")[0]["action"] == "throttle");
    CHECK_FALSE(scene.stopped());
    CHECK(ask(scene) == 200);
    const Json late = scene.events("model.request").at(2);
    CHECK(2'000 <= late["waited_ms"].get<std::uint64_t>());
    CHECK(late["waited_for"] == "a breaker");
    // The end is ordered behind the event of the answer.
    REQUIRE(SessionScene::eventually([&] { return scene.stopped(); }));
    const HttpAnswer refused = scene.ask("/v1/chat/completions", kBody);
    CHECK(refused.status == 401);
    CHECK(refused.json()["error"]["code"] == "breaker");
    CHECK(scene.provider().heard().size() == 3);
    CHECK(scene.events("workspace.state").size() == 1);
    scene.close();
    CHECK(audit(scene).empty());
  }

  TEST_CASE("a provider that fails call after call is left alone, then tried by one call") {
    SessionScene::Shape shape;
    shape.streak = {.failures = 3, .first = std::chrono::hours(1)};
    shape.bounds.wait = std::chrono::milliseconds(200);
    const auto broken = [](const auto&, std::size_t) {
      return ProviderSays{.status = 500, .body = "{}"};
    };
    SessionScene scene(shape, broken);
    for (int i = 0; i < 3; ++i) CHECK(scene.ask(kChat, chat(10)).status == 500);
    // One that has waited as long as a call waits is made: its client hears the provider.
    CHECK(scene.ask(kChat, chat(10)).status == 500);
    CHECK(scene.provider().heard().size() == 4);
    const std::vector<Json> made = scene.events("model.request");
    REQUIRE(made.size() == 4);
    CHECK_FALSE(made[2].contains("waited_for"));
    CHECK(made[3]["waited_for"] == "a provider that failed");
    CHECK(200 <= made[3]["waited_ms"].get<std::uint64_t>());
    CHECK(scene.held() == 0);
    CHECK(scene.spent() == 0);

    shape.streak.first = std::chrono::milliseconds(1);
    shape.bounds = SessionScene::patient();
    SessionScene healed(shape, [&](const auto& request, std::size_t call) {
      return call < 3 ? broken(request, call) : chat_answer("here again", 8, 9);
    });
    for (int i = 0; i < 3; ++i) CHECK(healed.ask(kChat, chat(10)).status == 500);
    for (int i = 0; i < 3; ++i) CHECK(healed.ask(kChat, chat(10)).status == 200);
    CHECK(healed.provider().heard().size() == 6);
    CHECK(healed.spent() == 3 * 98);
  }

  TEST_CASE("a provider without room is not asked again before the time that it named") {
    SessionScene scene({}, [](const auto&, std::size_t call) {
      if (call == 0)
        return ProviderSays{.status = 429, .headers = "retry-after: 1\r\n", .body = "{}"};
      return chat_answer("x", 1, 1);
    });
    CHECK(scene.ask(kChat, chat(10)).status == 429);
    CHECK(scene.ask(kChat, chat(10)).status == 200);
    CHECK(scene.ask(kChat, chat(10)).status == 200);
    const std::vector<Json> made = scene.events("model.request");
    REQUIRE(made.size() == 3);
    CHECK(made[1]["waited_for"] == "a provider without room");
    CHECK(500 <= made[1]["waited_ms"].get<std::uint64_t>());
    CHECK_FALSE(made[2].contains("waited_for"));
    CHECK(scene.events("model.response")[0]["retry_after_ms"] == 1'000);
  }

  TEST_CASE("a run whose every call its provider would have failed had no model") {
    SessionScene::Shape shape;
    shape.streak = {.failures = 1, .first = std::chrono::hours(1)};
    shape.bounds.wait = std::chrono::milliseconds(0);
    SessionScene scene(
        shape, [](const auto&, std::size_t) { return ProviderSays{.status = 500, .body = "{}"}; });
    for (int i = 0; i < 2; ++i) CHECK(scene.ask(kChat, chat(10)).status == 500);
    scene.close();
    CHECK(scene.lack().why == "its provider answers 500");
    CHECK_FALSE(scene.lack().busy);
  }

  TEST_CASE("an agent that changes its workspace, or whose workspace nobody sees, goes on") {
    int looks = 0;
    SessionScene works(watched([&] {
                         return WorkspaceLook{std::to_string(++looks), 1, 2};
                       }),
                       answers());
    SessionScene unseen(watched([] { return std::nullopt; }), answers());
    for (int i = 0; i < 6; ++i) {
      CHECK(ask(works) == 200);
      CHECK(ask(unseen) == 200);
    }
    for (SessionScene* scene : {&works, &unseen}) {
      scene->close();
      CHECK_FALSE(scene->stopped());
      CHECK(scene->events("monitor.alert").empty());
      CHECK(audit(*scene).empty());
    }
  }
}
