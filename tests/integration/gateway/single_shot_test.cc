// Methods that ask a model once, by the worker itself: through the same gateway as every agent.
#include "tests/support/campaign_scene.h"
#include "tests/support/provider_server.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

CampaignShape asking() {
  CampaignShape shape;
  shape.methods = {
      "{name: gpt, kind: single_shot, model: m, provider: acme, max_output_tokens: 500}"};
  shape.replicates = 1;
  shape.workers = 1;
  return shape;
}

class AskingScene {
 public:
  explicit AskingScene(ProviderServer::Script script)
      : provider(std::move(script)), scene(asking()) {
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,provider,model\nsandbox,minute,0.0000001,,\n"
                "llm_request,input_token,0.000001,acme,m\n"
                "llm_request,output_token,0.00001,acme,m\n");
    const Json prompt = {{"format", 1},
                         {"answer", "files"},
                         {"expected", {"calc.sh"}},
                         {"prompt", {{"system", "be good"}, {"user", "make it add"}}}};
    scene.write(scene.folder() / "contracts/ask.json", prompt.dump());
    scene.edit(scene.contract(), "checks:", "single_shot: ask.json\nchecks:");
  }
  CommandOutcome run(const std::string& model) const {
    scene.write(scene.temp() / "models.yaml", "models: {m: {" + model + "}}\n");
    return scene.run("run", {"--models", (scene.temp() / "models.yaml").string()});
  }
  CommandOutcome run() const { return run("url: \"" + provider.url() + "\", backoff_ms: 1"); }
  fs::path dir() const { return scene.folder() / "runs/add/gpt/r1/attempt-1"; }
  Json report() const { return must(parse_json(scene.read(dir() / "report.json"))); }

  ProviderServer provider;
  CampaignScene scene;
};

const std::string kSolution = "```\necho $(($1 + $2))\n```";

}  // namespace

TEST_SUITE("single shot campaign") {
  TEST_CASE("a single shot is asked, charged and recorded as every call, and plays again") {
    const AskingScene first([](const auto&, std::size_t call) {
      return call == 0 ? ProviderSays{.status = 500} : chat_answer(kSolution, 20, 30);
    });
    const CommandOutcome done = first.run();
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(first.provider.heard().size() == 2);
    const Json usage = first.report()["usage"];
    CHECK(usage["input_tokens"] == 20);
    CHECK(usage["output_tokens"] == 30);
    CHECK(usage["metered"]["priced_micros"] == 320);
    const std::string trace = first.scene.read(first.dir() / "events.jsonl");
    CHECK(contains(trace, "\"model.response\""));
    CHECK(first.scene.run("verify").exit_code == 0);

    const std::string calls = (first.scene.temp() / "calls.jsonl").string();
    const CommandOutcome recorded =
        testing::proctor({"cassette", "record", first.scene.folder().string(), "-o", calls});
    REQUIRE_MESSAGE(recorded.exit_code == 0, recorded.err);
    const AskingScene again([](const auto&, std::size_t) { return ProviderSays{.status = 500}; });
    const CommandOutcome played = again.run("cassette: \"" + calls + "\", backoff_ms: 1");
    INFO(played.out << played.err);
    REQUIRE(played.exit_code == 0);
    CHECK(again.provider.heard().empty());
    CHECK(again.report()["usage"]["metered"]["priced_micros"] == 0);
    CHECK(again.scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a program of the operator answers through the gateway, too") {
    const AskingScene scene([](const auto&, std::size_t) { return ProviderSays{.status = 500}; });
    const fs::path program = scene.scene.temp() / "ask";
    scene.scene.write(program, "#!/bin/sh\nread line\ncat <<'END'\n" +
                                   Json{{"text", kSolution},
                                        {"usage", {{"input_tokens", 7}, {"output_tokens", 9}}}}
                                       .dump() +
                                   "\nEND\n");
    fs::permissions(program, fs::perms::owner_all);
    const CommandOutcome done = scene.run("program: [\"" + program.string() + "\"]");
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(scene.report()["usage"]["input_tokens"] == 7);
    CHECK(scene.report()["usage"]["metered"]["priced_micros"] == 97);
  }

  TEST_CASE("a provider that stays away is no failure of the method") {
    const AskingScene scene([](const auto&, std::size_t) { return ProviderSays{.status = 404}; });
    const CommandOutcome done = scene.run();
    INFO(done.out << done.err);
    const Json end = scene.report()["termination"];
    CHECK(end["code"] == "agent_unavailable");
    CHECK(contains(end["rationale"].get<std::string>(), "404"));
  }
}
