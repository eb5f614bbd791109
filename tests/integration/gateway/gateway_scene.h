#pragma once
// A campaign whose agents ask a model through the gateway: an unmodified client, a sandbox without
// a network, a provider of our own that keeps a bill of its own.
#include "tests/support/campaign_scene.h"
#include "tests/support/provider_server.h"

namespace proctor::testing {

inline constexpr const char* kProviderKey = "sk-the-operators-own";

// An agent that knows OpenAI's address and key by their usual names and nothing of Proctor.  It
// asks until it is refused ("patient": until it is denied, at most 100 times), and writes what it
// saw beside its work.
inline constexpr const char* kAgent = R"(
import json, os, sys, urllib.request, urllib.error
base, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
assert key.startswith("prk1_")
def ask(limit, stream=False):
    body = {"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": "how?"}],
            "max_completion_tokens": limit, "stream": stream}
    request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(),
        {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=100)
seen = []
def ask_patiently():
    while len(seen) < 100 and seen.count(200) < int(sys.argv[1]):
        try:
            with ask(int(sys.argv[2])) as answer:
                answer.read()
                seen.append(answer.status)
        except urllib.error.HTTPError as e:
            if e.code < 429:
                raise
            seen.append(e.code)
try:
    if sys.argv[3] == "patient":
        ask_patiently()
    for i in range(0 if sys.argv[3] == "patient" else int(sys.argv[1])):
        with ask(int(sys.argv[2]), sys.argv[3] == "stream") as answer:
            text = answer.read().decode()
            seen.append(answer.status)
except urllib.error.HTTPError as e:
    seen.append(e.code)
    print(e.read().decode())
except OSError:
    seen.append("ended")
print("seen", seen)
with open("calc.sh", "w") as f:
    f.write("echo $(($1 + $2))\n")
)";

inline CampaignShape shape_of(const std::string& arguments, const std::string& run,
                              int replicates = 1) {
  CampaignShape shape;
  shape.methods = {"{name: agent, kind: command, command: 'python3 \"$PROCTOR_METHOD/agent.py\" " +
                   arguments +
                   "', files: [agent.py], gateway: {model: big, provider: acme, as: openai}}"};
  shape.replicates = replicates;
  shape.workers = 1;
  shape.run = run;
  return shape;
}

class GatewayScene {
 public:
  GatewayScene(const CampaignShape& shape, ProviderServer::Script script)
      : provider(std::move(script)), scene(shape) {
    scene.write(scene.folder() / "agent.py", kAgent);
    scene.write(scene.folder() / "pilot_cost_model.csv",
                "action_type,unit,unit_price,provider,model\nsandbox,minute,0.0000001,,\n"
                "llm_request,input_token,0.000001,acme,big\n"
                "llm_request,output_token,0.00001,acme,big\n");
    scene.write(scene.temp() / "key", kProviderKey);
    fs::permissions(scene.temp() / "key", fs::perms::owner_read | fs::perms::owner_write);
    scene.write(models(), "models:\n  big: {url: \"" + provider.url() +
                              "\", send_as: provider-model, key_file: \"" +
                              (scene.temp() / "key").string() +
                              "\", api: [chat], output_floor: 100, hidden_input_tokens: 10}\n");
  }
  fs::path models() const { return scene.temp() / "models.yaml"; }
  CommandOutcome run() const { return scene.run("run", {"--models", models().string()}); }

  // Tokens that the provider has answered for, at the prices above.
  std::int64_t bill(std::int64_t input, std::int64_t output) const {
    return static_cast<std::int64_t>(provider.heard().size()) * (input + output * 10);
  }
  std::int64_t charged(const std::string& attempt = "") const {
    return scene.number(
        "SELECT coalesce(sum(CAST(substr(metered, 1, instr(metered, ' ') - 1) AS "
        "INTEGER)), 0) FROM attempts " +
        attempt);
  }
  fs::path run_dir(int attempt = 1) const {
    return scene.folder() / ("runs/add/agent/r1/attempt-" + std::to_string(attempt));
  }
  std::string trace(int attempt = 1) const { return scene.read(run_dir(attempt) / "events.jsonl"); }

  // The key must be nowhere below the campaign.
  void has_no_key() const {
    for (const auto& entry : fs::recursive_directory_iterator(scene.folder())) {
      if (!entry.is_regular_file()) continue;
      CHECK_MESSAGE(!contains(scene.read(entry.path()), kProviderKey), entry.path().string());
    }
  }

  ProviderServer provider;
  CampaignScene scene;
};

inline Json report_of(const GatewayScene& g, int attempt = 1) {
  return must(parse_json(g.scene.read(g.run_dir(attempt) / "report.json")));
}

}  // namespace proctor::testing
