// What can be known before anything runs is said before anything runs; and what nobody counted is
// not shown as if it had been.
#include "tests/support/books.h"
#include "tests/support/paths.h"

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
    const std::string page = scene.read(source_dir() / "docs/gateway.md");
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

    // 7308 tokens of input at 0.0001 are 0.73 USD: above the whole run.
    set_prices(scene, "llm_request,token,0.0001,,,m\n");
    const CommandOutcome dear = scene.run("check");
    CHECK(dear.exit_code == 2);
    CHECK_MESSAGE(contains(dear.err,
                           "single_shot: found a prompt of which one call by the method "
                           "gpt may use 0.8308 USD (7308 tokens of input"),
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
    CHECK_MESSAGE(contains(long_one.err, "may use 8308 tokens"), long_one.err);
    CHECK_MESSAGE(contains(long_one.err, "raise caps.tokens to 8308"), long_one.err);
  }

  TEST_CASE("check names the tasks that exit codes alone judge") {
    CampaignShape shape;
    shape.tasks = {"add", "read"};
    const CampaignScene scene(shape);
    scene.edit(scene.contract("read"), "command: sh tests/t.sh,",
               "command: sh tests/t.sh, result: tap, result_file: r.tap,");
    const std::string told = scene.run("check").out;
    CHECK_MESSAGE(contains(told, "note: exit codes alone judge add: "), told);
  }

  TEST_CASE("check names the tasks whose gate of the build can never pass") {
    const CampaignScene scene;
    const std::string noted = "note: contract add has no build or static check";
    const std::string declared = scene.run("check").out;
    CHECK_MESSAGE(!contains(declared, noted), declared);
    scene.edit(scene.contract(), "gates: {build: none}\n", "");
    const std::string silent = scene.run("check").out;
    CHECK_MESSAGE(contains(silent, noted), silent);
  }

  TEST_CASE("check names the patterns of denied commands that match every command") {
    const CampaignScene scene;
    const std::string policy = "policy:\n";
    scene.edit(scene.contract(), policy,
               policy + "  commands: {deny: ['.*', 'a*', '^$', 'shutdown', '\\w']}\n");
    const CommandOutcome checked = scene.run("check");
    CHECK(checked.exit_code == 0);
    const std::string noted = "note: contract add: policy.commands.deny: ";
    for (const char* all : {"\".*\"", "\"a*\"", "\"\\w\""})
      CHECK_MESSAGE(contains(checked.out, noted + all), checked.out);
    for (const char* some : {"\"^$\"", "\"shutdown\""})
      CHECK_MESSAGE(!contains(checked.out, noted + some), checked.out);
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

  TEST_CASE("a price for a million tokens, and caps that hold no call, are told by check") {
    CampaignShape shape;
    shape.methods = {"{name: gw, kind: command, command: 'true', gateway: {model: m, as: openai}}"};
    const CampaignScene scene(shape);
    set_prices(scene, "llm_request,input_token,4,,,m\nllm_request,output_token,15,,,m\n");
    const CommandOutcome dear = scene.run("check");
    CHECK_MESSAGE(contains(dear.out, "the model m costs 15 USD for one token"), dear.out);
    CHECK_MESSAGE(contains(dear.out, "no call of its model fits into the cap of a run, 0.50 USD"),
                  dear.out);
    CHECK_MESSAGE(!contains(dear.out, "fewer than four such calls"), dear.out);

    set_prices(scene,
               "llm_request,input_token,0.000004,,,m\nllm_request,output_token,0.000015,,,m\n");
    const fs::path yaml = scene.folder() / "campaign.yaml";
    scene.edit(yaml, "strata: [language, type]", "caps: {tokens: 3071}\nstrata: [language, type]");
    const CommandOutcome small = scene.run("check");
    CHECK_MESSAGE(!contains(small.out, "for one token"), small.out);
    CHECK_MESSAGE(contains(small.out, "no call of its model fits into the cap on tokens, 3071"),
                  small.out);
    scene.edit(yaml, "tokens: 3071", "tokens: 3072");
    const CommandOutcome fits = scene.run("check");
    CHECK_MESSAGE(!contains(fits.out, "no call of its model fits"), fits.out);
  }

  TEST_CASE("a script that is for no shell, and a file that no method brings, are told by check") {
    CampaignShape shape;
    shape.methods = {"{name: snake, kind: command, script: agent.py}",
                     "{name: bare, kind: command, command: python3 $PROCTOR_METHOD/agent.py}",
                     "{name: lost, kind: command, command: 'python3 \"$PROCTOR_METHOD/x.py\"', "
                     "files: [agent.py]}",
                     "{name: good, kind: command, command: 'python3 \"${PROCTOR_METHOD}/agent.py\" "
                     "$PROCTOR_METHODS', files: [agent.py]}"};
    const CampaignScene scene(shape);
    scene.write(scene.folder() / "agent.py", "# an agent\nimport os\n");
    const CommandOutcome told = scene.run("check");
    CHECK_MESSAGE(told.exit_code == 0, told.err);
    for (const char* note :
         {"note: the method snake: agent.py looks like a program for python3",
          "note: the method bare: its commands name $PROCTOR_METHOD, which is not set",
          "note: the method lost: its commands name $PROCTOR_METHOD/x.py, which its files do not"})
      CHECK_MESSAGE(contains(told.out, note), told.out);
    CHECK_MESSAGE(!contains(told.out, "method good"), told.out);
    scene.write(scene.folder() / "agent.py", "#!/usr/bin/env python3\nimport os\n");
    CHECK(!contains(scene.run("check").out, "looks like a program"));
  }

  TEST_CASE("an agent that dies as soon as it begins, in every run, is told as that") {
    CampaignShape shape;
    shape.methods = {"{name: dies, kind: command, command: 'echo no module openai >&2; exit 3'}"};
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    if (0 < scene.number("SELECT count(*) FROM attempts WHERE agent_ms >= 2000")) return;
    const std::string said =
        "2 of 2 runs of dies ended within 2 s with exit code 3, and none succeeded: no module "
        "openai";
    CHECK_MESSAGE(contains(ran.err, said), ran.err);
    CHECK_MESSAGE(contains(ran.err, "its output: proctor logs "), ran.err);
    CHECK(contains(scene.run("report").out, "2 of 2 runs of dies ended within 2 s"));
    CHECK(contains(scene.read(scene.folder() / "reports/report.html"), said));
    const CommandOutcome stages =
        proctor::testing::proctor({"pilot", "status", scene.folder().string()});
    CHECK_MESSAGE(contains(stages.out, "Warning: " + said), stages.out);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("check holds every reference patch against a commit that it has read once") {
    CampaignShape shape;
    shape.tasks = {"add", "sum", "plus", "total", "more"};
    const CampaignScene scene(shape);
    const std::string patch = scene.read(scene.folder() / "contracts/fix.patch");
    for (const char* task : {"sum", "plus", "total"}) {  // two have one and the same
      const std::string name = std::string(task) + ".patch";
      scene.write(scene.folder() / "contracts" / name,
                  std::string(patch).insert(patch.size() - 1, std::string(" # ") + task));
      scene.edit(scene.contract(task), "fix.patch", name);
    }
    const fs::path tools = scene.temp() / "tools", log = scene.temp() / "git.log";
    REQUIRE(make_dirs(tools).ok());
    const std::string git = output_of({"sh", "-c", "command -v git"});
    scene.write(tools / "git", "#!/bin/sh\necho \"$*\" >>" + log.string() + "\nexec " +
                                   git.substr(0, git.find('\n')) + " \"$@\"\n");
    fs::permissions(tools / "git", fs::perms::owner_all);
    CommandSpec spec;
    spec.argv = {"sh",
                 "-c",
                 "PATH=\"$0:$PATH\" exec \"$@\"",
                 tools.string(),
                 proctor_program().string(),
                 "check",
                 scene.folder().string()};
    const CommandOutcome checked = must(run_command(spec));
    REQUIRE_MESSAGE(checked.exit_code == 0, checked.err);
    const std::string ran = scene.read(log);
    const auto times = [&ran](std::string_view word) {
      std::size_t n = 0;
      for (std::size_t at = ran.find(word); at != ran.npos; at = ran.find(word, at + 1)) ++n;
      return n;
    };
    CHECK_MESSAGE(times("read-tree") == 1, ran);
    CHECK_MESSAGE(times("apply ") == 4, ran);
  }
}
