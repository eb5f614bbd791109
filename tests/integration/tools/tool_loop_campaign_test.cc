// A whole campaign whose method is the worker's own agent, from its file to its report.
#include "tests/integration/tools/scripted_model.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct LoopCampaign {
  explicit LoopCampaign(const std::string& keys = "provider: acme, max_output_tokens: 500",
                        const std::string& tried = "sh calc.sh 2 3")
      : provider(in_order(
            {chat_asks({{"read_file", {{"path", "calc.sh"}}}, go_on_to("write")}),
             chat_asks({{"write_file", {{"path", "calc.sh"}, {"content", "echo $(($1 + $2))\n"}}},
                        go_on_to("test"),
                        {"shell", {{"command", tried}}}}),
             chat_asks({{"submit"}})})),
        scene(shape(keys)) {
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,provider,model\nsandbox,minute,0.0000001,,\n"
                "llm_request,input_token,0.000001,acme,big\n"
                "llm_request,output_token,0.00001,acme,big\n");
    scene.write(scene.temp() / "key", "sk-the-operators-own");
    fs::permissions(scene.temp() / "key", fs::perms::owner_read | fs::perms::owner_write);
    scene.write(models(), "models:\n  big: {url: \"" + provider.url() + "\", key_file: \"" +
                              (scene.temp() / "key").string() +
                              "\", output_floor: 100, hidden_input_tokens: 10}\n");
  }
  static CampaignShape shape(const std::string& keys) {
    CampaignShape out;
    out.methods = {"noop", "{name: loop, kind: tool_loop, model: big, " + keys + "}"};
    out.replicates = 1;
    out.workers = 1;
    out.run = "0.50";
    return out;
  }
  fs::path models() const { return scene.temp() / "models.yaml"; }

  ProviderServer provider;
  CampaignScene scene;
};

}  // namespace

TEST_SUITE("tool loop campaign") {
  TEST_CASE("a campaign of the reference agent runs from its file to its report") {
    const LoopCampaign c;
    const CommandOutcome checked = c.scene.run("check", {"--models", c.models().string()});
    CHECK_MESSAGE(checked.exit_code == 0, checked.out << checked.err);
    CHECK(contains(checked.out + checked.err, "the method loop may spend at most"));
    const CommandOutcome done = c.scene.run("run", {"--models", c.models().string()});
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(c.provider.heard().size() == 3);
    const fs::path dir = c.scene.folder() / "runs/add/loop/r1/attempt-1";
    const Json report = must(parse_json(c.scene.read(dir / "report.json")));
    CHECK(report["outcome"] == "success");
    CHECK(report["usage"]["model_calls"] == 3);
    CHECK(report["usage"]["tool_calls"] == 7);
    CHECK(report["usage"]["metered"]["priced_micros"] == 3 * (20 + 300));
    CHECK(contains(c.scene.read(dir / "events.jsonl"), "\"type\":\"tool.result\""));
    CHECK(c.scene.run("verify").exit_code == 0);
    const CommandOutcome explained = c.scene.run("explain", {"add/loop/r1", "--calls"});
    CHECK_MESSAGE(explained.exit_code == 0, explained.err);
    CHECK(contains(explained.out, "read_file"));
    c.scene.require_nothing_left();
  }

  TEST_CASE("what its commands print of times and identifiers does not end a replay") {
    const std::string script =
        "date; date -Is; mktemp -u /tmp/XXXXXX; cat /proc/sys/kernel/random/uuid; echo pid $$; "
        "date +'1 passed in 0.%Ns'; sh calc.sh 2 3";
    const LoopCampaign first("provider: acme, max_output_tokens: 500", script);
    const CommandOutcome live = first.scene.run("run", {"--models", first.models().string()});
    REQUIRE_MESSAGE(live.exit_code == 0, live.out << live.err);
    const std::string calls = (first.scene.temp() / "calls.jsonl").string();
    const CommandOutcome kept =
        testing::proctor({"cassette", "record", first.scene.folder().string(), "--output", calls});
    REQUIRE_MESSAGE(kept.exit_code == 0, kept.err);
    const LoopCampaign again("provider: acme, max_output_tokens: 500", script);
    again.scene.write(again.models(),
                      "models: {big: {cassette: \"" + calls + "\", api: [chat]}}\n");
    const CommandOutcome played = again.scene.run("run", {"--models", again.models().string()});
    REQUIRE_MESSAGE(played.exit_code == 0, played.out << played.err);
    CHECK(again.provider.heard().empty());
    const Json report = must(parse_json(
        again.scene.read(again.scene.folder() / "runs/add/loop/r1/attempt-1/report.json")));
    CHECK(report["outcome"] == "success");
    CHECK(report["usage"]["model_calls"] == 3);
    CHECK(report["usage"]["metered"]["replayed_calls"] == 3);
    CHECK(report["usage"]["metered"]["priced_micros"] == 0);
  }

  TEST_CASE("without a price, a model or its file nothing is begun") {
    const LoopCampaign c("provider: nobody");
    const CommandOutcome unpriced = c.scene.run("check");
    CHECK(unpriced.exit_code != 0);
    CHECK_MESSAGE(contains(unpriced.out + unpriced.err, "methods.loop.model"),
                  unpriced.out << unpriced.err);
    const LoopCampaign priced;
    const CommandOutcome untold = priced.scene.run("run");
    CHECK(untold.exit_code != 0);
    CHECK_MESSAGE(contains(untold.err, "--models FILE"), untold.err);
    CHECK(priced.provider.heard().empty());
  }
}
