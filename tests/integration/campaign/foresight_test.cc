// What can be known before anything runs is said before anything runs; and what nobody counted is
// not shown as if it had been.
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// A method that asks the model "m", and what it is asked.
CampaignShape asking() {
  CampaignShape shape;
  shape.methods = {"{name: gpt, kind: single_shot, model: m, max_output_tokens: 1000}"};
  shape.replicates = 1;
  return shape;
}
void ask(const CampaignScene& scene, std::size_t bytes = 100) {
  const Json prompt = {{"format", 1},
                       {"answer", "files"},
                       {"expected", {"calc.sh"}},
                       {"prompt", {{"system", ""}, {"user", std::string(bytes, 'x')}}}};
  scene.write(scene.folder() / "contracts/ask.json", prompt.dump());
  scene.edit(scene.contract(), "checks:", "single_shot: ask.json\nchecks:");
}
void set_prices(const CampaignScene& scene, const std::string& rows) {
  scene.write(scene.folder() / "pilot_cost_model.csv",
              "action_type,unit,unit_price,notes,provider,model\nsandbox,minute,0.000001,,,\n"
              "tool_call,call,0.01,,,\n" +
                  rows);
}

bool is_registered(const CampaignScene& scene) {
  return fs::exists(scene.folder() / "registration.json");
}

// Reserves and charges one call of a model, then solves the task.
constexpr const char* kTeller =
    "import json, os, socket\n"
    "s = socket.socket(socket.AF_UNIX)\n"
    "s.connect(os.environ['PROCTOR_METER'])\n"
    "lines = s.makefile('r')\n"
    "def say(what):\n"
    "    s.sendall((json.dumps(what) + '\\n').encode())\n"
    "    return json.loads(lines.readline())\n"
    "assert say({'op': 'reserve', 'id': 'a', 'action': 'llm_request', 'model': 'm',\n"
    "            'input_tokens': 60, 'output_tokens': 40})['answer'] == 'granted'\n"
    "assert say({'op': 'charge', 'id': 'a', 'input_tokens': 50, 'output_tokens': 20})"
    "['answer'] == 'charged'\n"
    "open('calc.sh', 'w').write('echo $(($1 + $2))\\n')\n";

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("the price rows of the gateway's page fit under those that init writes") {
    const CampaignScene scene;
    const fs::path made = scene.temp() / "made";
    REQUIRE(proctor::testing::proctor({"init", made.string()}).exit_code == 0);
    const std::string page = scene.read(fs::path(PROCTOR_DOCS) / "gateway.md");
    const std::size_t header = page.find("action_type,unit,unit_price,");
    REQUIRE(header != std::string::npos);
    const std::size_t rows = page.find('\n', header) + 1;
    const std::string prices = scene.read(made / "pilot_cost_model.csv");
    CHECK(page.substr(header, rows - header) == prices.substr(0, prices.find('\n') + 1));
    scene.write(made / "pilot_cost_model.csv",
                prices + page.substr(rows, page.find("```", rows) - rows));
    scene.edit(made / "campaign.yaml", "    script: agent.sh",
               "    script: agent.sh\n    gateway: {model: big, provider: acme, as: openai}");
    const CommandOutcome good = proctor::testing::proctor({"check", "--offline", made.string()});
    CHECK_MESSAGE(good.exit_code == 0, good.err);
    CHECK_MESSAGE(!contains(good.out, "no price row of its own"), good.out);

    // Rows that name no model price every model: said, and not silently done.
    scene.write(made / "pilot_cost_model.csv", prices);
    const CommandOutcome general = proctor::testing::proctor({"check", "--offline", made.string()});
    CHECK_MESSAGE(contains(general.out,
                           "the model big has no price row of its own and is priced "
                           "by the llm_request rows without a model"),
                  general.out);
    // Rows for calls alone leave its tokens free.
    scene.write(made / "pilot_cost_model.csv", prices + "llm_request,call,0.01,acme,big,\n");
    const CommandOutcome free = proctor::testing::proctor({"check", "--offline", made.string()});
    CHECK_MESSAGE(contains(free.out, "the model big costs nothing for tokens of input and output"),
                  free.out);
    fs::remove(made / "pilot_cost_model.csv");
    fs::remove(made / "pilot_cost_model_inputs.json");
    const CommandOutcome units = proctor::testing::proctor({"check", "--offline", made.string()});
    CHECK_MESSAGE(contains(units.out, "in units that are no dollars"), units.out);
    CHECK_MESSAGE(!contains(units.out, " USD"), units.out);
  }

  TEST_CASE("check finds a model without a price and a prompt that no cap allows") {
    const CampaignScene scene(asking());
    ask(scene, 5'000);
    set_prices(scene, "llm_request,token,0.0001,,,other\n");
    const CommandOutcome unpriced = scene.run("check");
    CHECK(unpriced.exit_code == 2);
    CHECK_MESSAGE(contains(unpriced.err, "methods.gpt.model: found no price for the model \"m\""),
                  unpriced.err);
    CHECK_MESSAGE(contains(unpriced.err, "llm_request,input_token,PRICE,,m"), unpriced.err);

    // 5064 tokens of input at 0.0001 are 0.51 USD: above the whole run.
    set_prices(scene, "llm_request,token,0.0001,,,m\n");
    const CommandOutcome dear = scene.run("check");
    CHECK(dear.exit_code == 2);
    CHECK_MESSAGE(contains(dear.err,
                           "single_shot: found a prompt of which one call by the method "
                           "gpt may use 0.6064 USD (5064 tokens of input"),
                  dear.err);
    CHECK_MESSAGE(contains(dear.err, "raise budget.run"), dear.err);
    const CommandOutcome refused = scene.run("plan", {"--freeze"});
    CHECK(refused.exit_code == 2);
    CHECK(scene.run("run", {"--workers", "0"}).exit_code == 2);
    CHECK_FALSE(is_registered(scene));

    set_prices(scene, "llm_request,token,0.000001,,,m\n");
    CHECK(scene.run("check").exit_code == 0);
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "caps: {tokens: 6000}\nstrata: [language, type]");
    const CommandOutcome long_one = scene.run("check");
    CHECK(long_one.exit_code == 2);
    CHECK_MESSAGE(contains(long_one.err, "may use 6064 tokens"), long_one.err);
    CHECK_MESSAGE(contains(long_one.err, "raise caps.tokens to 6064"), long_one.err);
  }

  TEST_CASE("what a model is asked is read before it is registered") {
    const CampaignScene scene(asking());
    ask(scene);
    set_prices(scene, "llm_request,token,0.000001,,,m\n");
    CHECK(scene.run("check").exit_code == 0);
    scene.write(scene.folder() / "contracts/ask.json", "garbage");
    for (const std::string command : {"check", "plan"}) {
      const CommandOutcome garbage =
          scene.run(command, command == "plan" ? std::vector<std::string>{"--freeze"}
                                               : std::vector<std::string>{});
      CHECK(garbage.exit_code == 2);
      CHECK_MESSAGE(contains(garbage.err, "single_shot: found ask.json: "), garbage.err);
    }
    scene.write(scene.folder() / "contracts/ask.json",
                R"({"format": 1, "answer": "filez", "expected": ["calc.sh"],
                    "prompt": {"system": "", "user": "x"}})");
    CHECK(scene.run("check").exit_code == 2);
    CHECK_FALSE(is_registered(scene));
  }

  TEST_CASE("check says that run needs a models file, and looks into one") {
    const CampaignScene scene(asking());
    ask(scene);
    const CommandOutcome checked = scene.run("check");
    CHECK_MESSAGE(checked.exit_code == 0, checked.err);
    CHECK_MESSAGE(contains(checked.out,
                           "note: local workers have to be told how m is reached: "
                           "proctor run --models FILE"),
                  checked.out);
    const CommandOutcome run = scene.run("run");
    CHECK(run.exit_code == 2);
    CHECK_MESSAGE(contains(run.err, "--models FILE"), run.err);
    CHECK_FALSE(is_registered(scene));
    const fs::path models = scene.temp() / "models.json";
    scene.write(models, "{\"models\": {\"n\": {\"program\": [\"/bin/true\"]}}}");
    const CommandOutcome other = scene.run("check", {"--models", models.string()});
    CHECK(other.exit_code == 2);
    CHECK_MESSAGE(contains(other.err, "does not name"), other.err);
    scene.write(models, "{\"models\": {\"m\": {\"program\": [\"/bin/true\"]}}}");
    const CommandOutcome fits = scene.run("check", {"--models", models.string()});
    CHECK_MESSAGE(fits.exit_code == 0, fits.err);
    CHECK_MESSAGE(!contains(fits.out, "--models"), fits.out);
  }

  TEST_CASE("a capped method that makes no metered call is told, and an agent's word is marked") {
    CampaignShape shape;
    shape.methods = {
        solving_method("silent"),
        "{name: teller, kind: command, command: python3 \"$PROCTOR_METHOD/teller.py\", files: "
        "[teller.py]}"};
    shape.replicates = 2;
    const CampaignScene scene(shape);
    scene.write(scene.folder() / "teller.py", kTeller);
    set_prices(scene, "llm_request,token,0.001,,,m\n");
    scene.edit(scene.folder() / "campaign.yaml", "strata: [language, type]",
               "caps: {tokens: 1000}\nstrata: [language, type]");
    const CommandOutcome checked = scene.run("check");
    CHECK_MESSAGE(contains(checked.out, "note: the method silent is unmetered"), checked.out);
    CHECK_MESSAGE(contains(checked.out, "caps on tokens (1000)"), checked.out);
    CHECK_MESSAGE(!contains(checked.out, "method teller"), checked.out);

    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    const std::string unmetered =
        "silent: unmetered: none of its 2 judged runs made a metered call, so nothing was counted "
        "against tokens (1000)";
    const CommandOutcome status = scene.run("status");
    CHECK_MESSAGE(contains(status.out, unmetered), status.out);
    const std::string report = scene.run("report").out;
    CHECK_MESSAGE(contains(report, "Unmetered methods"), report);
    CHECK_MESSAGE(contains(report,
                           "self_reported (the agents' word alone): 0.14 USD in 2 calls "
                           "and 140 tokens."),
                  report);
    CHECK_MESSAGE(!contains(report, "teller: unmetered"), report);
    const CommandOutcome told = scene.run("explain", {"add/teller/r1"});
    CHECK_MESSAGE(contains(told.out, "(self_reported: 0.07 USD in 1 call and 70 tokens)"),
                  told.out);
    const CommandOutcome untold = scene.run("explain", {"add/silent/r1"});
    CHECK_MESSAGE(contains(untold.out, "unmetered: it made no metered call"), untold.out);
    const CommandOutcome budget = scene.run("budget", {"--by", "method"});
    CHECK_MESSAGE(contains(budget.out, "self_reported"), budget.out);
    const Json groups = must(parse_json(scene.run("budget", {"--by", "method", "--json"}).out));
    CHECK(groups["envelopes"][0]["self_reported"]["micro_usd"] == 140'000);
    CHECK(groups["groups"][0]["self_reported"]["micro_usd"] == 0);
    CHECK(groups["groups"][1]["self_reported"]["micro_usd"] == 140'000);
    for (const char* file : {"reports/report.csv", "reports/runs.csv", "reports/costs.csv"})
      CHECK(contains(scene.read(scene.folder() / file), "self_reported_usd"));
    CHECK(scene.run("verify").exit_code == 0);
  }
}
