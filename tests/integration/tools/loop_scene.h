#pragma once
// A real worker whose method is its own agent, with a model of our own.
#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "common/trace/verify.h"
#include "tests/integration/tools/scripted_model.h"
#include "tests/integration/worker/scene.h"

namespace proctor::testing {

inline constexpr const char* kProviderKey = "sk-the-operators-own";

inline const Asks kFix = {
    "edit_file",
    {{"path", "calc.sh"}, {"old_text", "echo $(($1 - $2))"}, {"new_text", "echo $(($1 + $2))"}}};

struct LoopScene : Scene {
  explicit LoopScene(ProviderServer::Script script, std::int64_t micros = 1'000'000,
                     MethodGateway::As as = MethodGateway::As::kOpenai)
      : provider(std::move(script)), as_(as) {
    Diagnostics out;
    settings.cost_model = parse_cost_model(
        "action_type,unit,unit_price,provider,model\nllm_request,input_token,0.000001,acme,big\n"
        "llm_request,output_token,0.00001,acme,big\n",
        "p.csv", out);
    REQUIRE(out.text() == "");
    settings.run_cap = MicroUsd::from_micros(micros);
    REQUIRE(write_file(temp.path() / "provider-key", kProviderKey).ok());
    const bool messages = as == MethodGateway::As::kAnthropic;
    REQUIRE(write_file(models(), "models:\n  big: {url: \"" +
                                     (messages ? provider.at() : provider.url()) +
                                     "\", send_as: provider-model, key_file: \"" +
                                     (temp.path() / "provider-key").string() + "\", api: [" +
                                     (messages ? "messages" : "chat") +
                                     "], output_floor: 100, hidden_input_tokens: 10, "
                                     "backoff_ms: 1}\n")
                .ok());
  }
  fs::path models() const { return temp.path() / "models.yaml"; }

  Method loop(std::uint64_t turns = 80, std::uint64_t output = 500) {
    Method m = method("loop", Method::Kind::kNoop);
    m.kind = Method::Kind::kToolLoop;
    m.gateway.emplace();
    m.gateway->models = {{"big", "acme", {}, {}}};
    m.gateway->as = as_;
    m.gateway->models.front().output_max = output;
    m.turns = turns;
    m.digest = digest_of(m);
    return m;
  }

  struct Ended {
    wire::ResultMessage result;
    std::string said, complained, events, patch;
  };
  Ended run(const Method& m) {
    FakeCoordinator coordinator(socket, 3);
    std::vector<std::string> words = options;
    words.insert(words.end(), {"--models", models().string()});
    Child worker = start_worker(std::move(words));
    REQUIRE_MESSAGE(coordinator.connected(), log());
    coordinator.assign({assignment(coordinator, m, 0)}, settings_digest());
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), log());
    Ended out;
    out.result = coordinator.results.at(id(0));
    if (out.result.archive_bytes != 0) {
      const fs::path file = temp.path() / "got.tar.zst", dir = got();
      REQUIRE(write_file(file, coordinator.archives.at(id(0))).ok());
      REQUIRE(unpack_archive(file, dir).ok());
      const auto text = [&](std::string_view name) {
        auto bytes = read_file(dir / name, std::size_t{16} << 20);
        return bytes.ok() ? *bytes : std::string();
      };
      out.said = text("agent/stdout");
      out.complained = text("agent/stderr");
      out.events = text(kEventsFile);
      out.patch = text("patch.diff");
      for (const auto& entry : fs::recursive_directory_iterator(dir)) {
        if (!entry.is_regular_file()) continue;
        const std::string bytes = read_file(entry.path(), std::size_t{64} << 20).value();
        CHECK_MESSAGE(bytes.find(kProviderKey) == std::string::npos, entry.path().string());
        CHECK_MESSAGE(bytes.find("prk1_") == std::string::npos, entry.path().string());
      }
    }
    worker.signal(SIGTERM);
    static_cast<void>(coordinator.until([&] { return coordinator.leaves == 1; }));
    static_cast<void>(worker.wait(std::chrono::seconds(180)));
    return out;
  }
  fs::path got() const { return temp.path() / "got"; }
  void is_verified() const {
    for (const VerifyProblem& problem : verify_run(got(), std::nullopt).problems)
      FAIL_CHECK(to_string(problem));
  }
  // What the model was told of its calls, in the last request.
  std::vector<std::string> told() const {
    std::vector<std::string> out;
    const Json last = provider.heard().back().body;
    for (const Json& message : last.at("messages"))
      if (message.at("role") == "tool") out.push_back(message.at("content").string());
    return out;
  }

  ProviderServer provider;
  std::vector<std::string> options;  // of the worker, beside the rest
  MethodGateway::As as_;
};

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline std::string event(std::string_view type) {
  return "\"type\":\"" + std::string(type) + "\"";
}

}  // namespace proctor::testing
