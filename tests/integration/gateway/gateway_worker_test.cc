// A real worker and a real sandbox: an agent that knows nothing of Proctor asks a model until it is
// refused, and a provider of our own keeps a bill of its own.
#include <algorithm>

#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "common/trace/verify.h"
#include "tests/integration/worker/scene.h"
#include "tests/support/provider_server.h"

using namespace proctor;
using namespace proctor::testing;
using Then = ProviderSays::Then;

namespace {

constexpr const char* kProviderKey = "sk-the-operators-own";

constexpr const char* kAgent = R"(
import json, os, socket, sys, urllib.request, urllib.error
base, key, how = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"], sys.argv[3]
def ask(limit):
    body = {"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": "how?"}],
            "max_completion_tokens": limit, "stream": how != "plain"}
    request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(),
        {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=300)
open("calc.sh", "w").write("echo $(($1 + $2))\n")
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[4])), 5)
    print("reached the provider itself")
except OSError:
    print("nothing else is reached")
print("gateway:", sorted(os.listdir("/proctor/gateway")))
print("tokens:", [v.startswith("prk" "1_") for k, v in os.environ.items() if k.endswith("_KEY")])
seen = []
try:
    for i in range(int(sys.argv[1])):
        answer = ask(int(sys.argv[2]))
        if how == "leave":
            answer.read(1)
            os._exit(0)
        answer.read()
        seen.append(answer.status)
except urllib.error.HTTPError as e:
    seen.append(e.code)
    print(e.read().decode())
except OSError:
    seen.append("ended")
print("seen", seen, flush=True)
)";

struct GatewayScene : Scene {
  explicit GatewayScene(ProviderServer::Script script, std::int64_t micros = 1'000'000)
      : provider(std::move(script)) {
    Diagnostics out;
    settings.cost_model = parse_cost_model(
        "action_type,unit,unit_price,provider,model\nllm_request,input_token,0.000001,acme,big\n"
        "llm_request,output_token,0.00001,acme,big\n",
        "p.csv", out);
    REQUIRE(out.text() == "");
    settings.run_cap = MicroUsd::from_micros(micros);
    REQUIRE(write_file(temp.path() / "provider-key", kProviderKey).ok());
    REQUIRE(
        write_file(models(), "models:\n  big: {url: \"" + provider.url() +
                                 "\", send_as: provider-model, key_file: \"" +
                                 (temp.path() / "provider-key").string() +
                                 "\", api: [chat], output_floor: 100, hidden_input_tokens: 10}\n")
            .ok());
  }
  fs::path models() const { return temp.path() / "models.yaml"; }

  Method agent(const std::string& arguments) {
    const std::string url = provider.at();
    Method m = method(
        "agent", Method::Kind::kCommand,
        "python3 \"$PROCTOR_METHOD/agent.py\" " + arguments + " " + url.substr(url.rfind(':') + 1));
    m.files = {{"agent.py", 0644, kAgent}};
    m.gateway.emplace();
    m.gateway->models = {{"big", "acme", {}, {}}};
    m.digest = digest_of(m);
    return m;
  }

  struct Ended {
    wire::ResultMessage result;
    std::string said, events;
  };
  Ended end_of(FakeCoordinator& coordinator, AttemptId attempt) {
    REQUIRE_MESSAGE(coordinator.has_result(attempt), log());
    Ended out;
    out.result = coordinator.results.at(attempt);
    CAPTURE(out.result.rationale);
    if (out.result.archive_bytes == 0) return out;
    const fs::path file = temp.path() / "got.tar.zst", dir = temp.path() / "got";
    REQUIRE(write_file(file, coordinator.archives.at(attempt)).ok());
    REQUIRE(unpack_archive(file, dir).ok());
    if (auto said = read_file(dir / "agent/stdout", 1 << 20); said.ok()) out.said = *said;
    out.events = read_file(dir / kEventsFile, 1 << 24).value();
    for (const auto& entry : fs::recursive_directory_iterator(dir)) {
      if (!entry.is_regular_file()) continue;
      const std::string bytes = read_file(entry.path(), std::size_t{64} << 20).value();
      CHECK_MESSAGE(bytes.find(kProviderKey) == std::string::npos, entry.path().string());
      CHECK_MESSAGE(bytes.find("prk1_") == std::string::npos, entry.path().string());
    }
    return out;
  }
  Ended run(const Method& m) {
    FakeCoordinator coordinator(socket, 3);
    Child worker = start_worker({"--models", models().string()});
    REQUIRE_MESSAGE(coordinator.connected(), log());
    coordinator.assign({assignment(coordinator, m, 0)}, settings_digest());
    Ended out = end_of(coordinator, id(0));
    worker.signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker.wait(std::chrono::seconds(180)));
    return out;
  }

  ProviderServer provider;
};

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("gateway worker") {
  TEST_CASE(
      "an agent that knows nothing of us is served, charged and recorded, and reaches nothing "
      "else") {
    GatewayScene scene([](const auto&, std::size_t) { return chat_answer("add them", 20, 30); });
    const auto e = scene.run(scene.agent("3 500 plain"));
    CAPTURE(e.said);
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(holds(e.said, "seen [200, 200, 200]"));
    CHECK(holds(e.said, "nothing else is reached"));
    CHECK(holds(e.said, "gateway: ['forward', 'socket']"));
    CHECK(holds(e.said, "tokens: [True]"));  // and no key
    const Usage& u = e.result.usage;
    CHECK(u.model_calls == 3);
    CHECK(u.input_tokens == 60);
    CHECK(u.output_tokens == 90);
    CHECK(u.priced_micros == 3 * (20 + 300));
    CHECK(u.reported_micros == 0);  // nothing of it rests on the agent's word
    CHECK(scene.provider.heard().size() == 3);
    CHECK(holds(scene.provider.heard()[0].head, kProviderKey));
    for (const char* type : {"gateway.open", "model.request", "model.response", "gateway.closed"})
      CHECK(holds(e.events, "\"type\":\"" + std::string(type) + "\""));
  }

  TEST_CASE("a cap that is reached in the middle ends the client at once, and nothing passes it") {
    GatewayScene scene(
        [](const ProviderServer::Heard& h, std::size_t) {
          return chat_stream("x", 20, h.body["max_completion_tokens"].get<std::uint64_t>());
        },
        50'000);
    const auto e = scene.run(scene.agent("100 1000 stream"));
    CAPTURE(e.said);
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);  // what it left is judged
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    std::uint64_t bill = 0;
    for (const auto& h : scene.provider.heard())
      bill += 20 + 10 * h.body["max_completion_tokens"].get<std::uint64_t>();
    CHECK(e.result.usage.priced_micros == bill);  // the provider's own
    CHECK(bill <= 50'000);
    CHECK(45'000 <= bill);  // the last call went out with a lower limit
    CHECK(holds(e.said, "200, 401]"));
    CHECK(holds(e.said, "budget_exceeded"));
    CHECK(holds(e.events, "\"final\":true"));
  }

  TEST_CASE("an agent that repeats itself is ended by its breaker, and what it left is judged") {
    GatewayScene scene([](const auto&, std::size_t) { return chat_answer("again", 20, 30); });
    Method m = scene.agent("100 500 plain");
    m.gateway->breakers.rules["identical_call"] = {{"throttle", 2}, {"stop", 3}};
    m.digest = digest_of(m);
    const auto e = scene.run(m);
    CAPTURE(e.said);
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kBreaker);
    CHECK(holds(e.result.rationale, "breaker: identical_call: "));
    CHECK(holds(e.said, "breaker: identical_call: "));
    CHECK(holds(e.said, ", 401]"));
    // A call may have begun before the answer to the third was told.
    CHECK(3 <= scene.provider.heard().size());
    CHECK(scene.provider.heard().size() < 100);
    for (const char* said :
         {"\"type\":\"workspace.state\"", "\"action\":\"throttle\"", "\"action\":\"stop\""})
      CHECK_MESSAGE(holds(e.events, said), said);
    const VerifyResult verified = verify_run(scene.temp.path() / "got", std::nullopt);
    for (const VerifyProblem& problem : verified.problems) FAIL_CHECK(to_string(problem));
  }

  TEST_CASE("a provider that fails in the middle costs what was reserved, and the run is judged") {
    GatewayScene scene([](const auto&, std::size_t call) {
      ProviderSays says = chat_answer("x", 20, 30);
      if (call == 1) says.then = Then::kCloseFirst;
      return says;
    });
    const auto e = scene.run(scene.agent("3 500 plain"));
    CAPTURE(e.said);
    CAPTURE(e.result.rationale);
    CHECK(holds(e.said, "seen [200, 'ended']"));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.usage.model_calls == 2);
    CHECK(320 + 5'000 < e.result.usage.priced_micros);
    CHECK(holds(e.events, "\"settled\":\"ceiling\""));
  }

  TEST_CASE("a client that leaves in the middle of its stream pays for all of it") {
    GatewayScene scene(
        [](const auto&, std::size_t) { return chat_stream(std::string(2'000, 'x'), 20, 400); });
    const auto e = scene.run(scene.agent("1 500 leave"));
    CHECK(e.result.usage.priced_micros == 20 + 4'000);
    CHECK(holds(e.events, "\"settled\":\"usage\""));
  }

  TEST_CASE(
      "a worker that is killed in the middle of a call has paid for it once, at its ceiling") {
    GatewayScene scene([](const auto&, std::size_t) {
      ProviderSays says = chat_answer("late", 20, 30);
      says.then = Then::kHangFirst;
      return says;
    });
    FakeCoordinator coordinator(scene.socket, 3);
    std::optional<Child> worker = scene.start_worker({"--models", scene.models().string()});
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    coordinator.assign({scene.assignment(coordinator, scene.agent("1 500 plain"), 0)},
                       scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.until([&] {
      return scene.provider.heard().size() == 1 || coordinator.results.contains(id(0));
    }),
                    scene.log());
    REQUIRE_MESSAGE(!coordinator.results.contains(id(0)), coordinator.results.at(id(0)).rationale);
    worker->signal(SIGKILL);
    worker.reset();
    worker = scene.start_worker({"--models", scene.models().string()});
    const auto e = scene.end_of(coordinator, id(0));
    CHECK(e.result.infrastructure);
    CHECK(e.result.usage.model_calls == 1);
    const std::string sent = scene.provider.heard()[0].raw;
    CHECK(5'000 + sent.size() / 2 < e.result.usage.priced_micros);
    CHECK(e.result.usage.priced_micros < 5'000 + sent.size() + 200);
    CHECK(scene.provider.heard().size() == 1);  // and nobody asked again
    worker->signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker->wait(std::chrono::seconds(180)));
  }

  TEST_CASE("without the model in the worker's file the run is given back, and it says so") {
    GatewayScene scene([](const auto&, std::size_t) { return ProviderSays{}; });
    REQUIRE(write_file(scene.models(), "models: {}\n").ok());
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker({"--models", scene.models().string()});
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    coordinator.assign({scene.assignment(coordinator, scene.agent("1 500 plain"), 0)},
                       scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.until([&] {
      return coordinator.syncs.back().declined == std::vector<AttemptId>{id(0)};
    }),
                    scene.log());
    const auto& features = coordinator.syncs.back().features;
    CHECK(std::ranges::find(features, "lacks:model:big") != features.end());
    CHECK(holds(scene.log(), "its models file does not name it"));
    CHECK(scene.provider.heard().empty());
    worker.signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker.wait(std::chrono::seconds(180)));
  }

  TEST_CASE("a model that speaks otherwise than the agent is the operator's fault, by name") {
    GatewayScene scene([](const auto&, std::size_t) { return chat_answer("no", 1, 1); });
    Method other = scene.agent("1 500 plain");
    other.gateway->as = MethodGateway::As::kAnthropic;  // the models file has a chat
    other.digest = digest_of(other);
    FakeCoordinator coordinator(scene.socket, 3);
    Child worker = scene.start_worker({"--models", scene.models().string()});
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    coordinator.assign({scene.assignment(coordinator, other, 0)}, scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.until([&] {
      return coordinator.syncs.back().declined == std::vector<AttemptId>{id(0)};
    }),
                    scene.log());
    const auto& features = coordinator.syncs.back().features;
    CHECK(std::ranges::find(features, "lacks:gateway:anthropic:big") != features.end());
    CHECK_MESSAGE(holds(scene.log(), "speaks chat and not as anthropic"), scene.log());
    CHECK(scene.provider.heard().empty());
    // Who speaks its words gets its runs here.
    coordinator.assign({scene.assignment(coordinator, scene.agent("1 500 plain"), 1)},
                       scene.settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(1)), scene.log());
    CHECK(coordinator.results.at(id(1)).outcome == RunOutcome::kSuccess);
    worker.signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker.wait(std::chrono::seconds(180)));
  }
}
