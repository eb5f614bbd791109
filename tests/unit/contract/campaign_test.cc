#include <doctest/doctest.h>

#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/scaffold.h"
#include "tests/unit/contract/campaign_folder.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using test::Folder;
using test::kTask;
using test::kYaml;
using test::replaced;

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("an exit code that means overload is part of a method and of its digest") {
    Folder folder;
    Diagnostics before;
    const Digest plain = load_campaign(folder.path(), before).value().methods[2].digest;
    folder.change(kYaml, "  - name: scripted\n", "  - name: scripted\n    overload_exit: 75\n");
    Diagnostics out;
    const Method m = load_campaign(folder.path(), out).value().methods[2];
    CHECK(m.overload_exit == 75);
    CHECK(m.digest != plain);
    folder.change(kYaml, "overload_exit: 75", "overload_exit: 126");
    CHECK(folder.errors().find("methods[2].overload_exit: found \"126\", expected") !=
          std::string::npos);
    folder.change(kYaml, "overload_exit: 126\n", "overload_exit: 75\n    kind: noop\n");
    CHECK(folder.errors().find("overload_exit") != std::string::npos);
  }

  TEST_CASE("a stage says what opens it, and that is part of nothing that workers are told") {
    Folder folder;
    folder.change(kYaml, "replicates: 2",
                  "stages:\n"
                  "  - name: first\n"
                  "    exit: [complete_or_stopped]\n"
                  "  - name: limited\n"
                  "    entry: [{closed: first}, {invalid_share: \"0.05\"}, spend_within]\n"
                  "    approval: none\n"
                  "  - name: full\n"
                  "    entry: [endpoint_computable, {infrastructure_share: \"0.1\"}]\n"
                  "    approval: {people: 2}");
    Diagnostics out;
    const auto campaign = load_campaign(folder.path(), out);
    REQUIRE_MESSAGE(out.empty(), out.text());
    const std::vector<Stage>& stages = campaign.value().stages;
    REQUIRE(stages.size() == 3);
    CHECK(stages[0].rules.approvals() == 0);
    CHECK(describe(stages[0].rules) == "entry none; exit complete_or_stopped; approval of 0");
    CHECK(describe(stages[1].rules) ==
          "entry closed first, invalid_share 0.05, spend_within; exit none; approval of 0");
    CHECK(describe(stages[2].rules) ==
          "entry endpoint_computable, infrastructure_share 0.10; exit none; approval of 2");
    folder.change(kYaml, "    approval: {people: 2}", "");
    Diagnostics again;
    CHECK(load_campaign(folder.path(), again).value().stages[2].rules.approvals() == 1);
  }

  TEST_CASE("criteria that cannot be asked are refused where they stand") {
    const std::pair<const char*, const char*> wrong[] = {
        {"{name: full, entry: [power_supported]}",
         "stages[1].entry[0]: found \"power_supported\", expected a criterion: closed, "},
        {"{name: full, entry: [{closed: full}]}",
         "stages[1].entry[0].closed: found \"full\", expected the name of a stage before this one"},
        {"{name: full, entry: [closed]}", "expected closed with its parameter"},
        {"{name: full, entry: [{spend_within: 1}]}", "expected spend_within without a parameter"},
        {"{name: full, entry: [{invalid_share: \"1.01\"}]}", "expected a share from 0 to 1"},
        {"{name: full, entry: [spend_within, spend_within]}", "expected each criterion once"},
        {"{name: full, exit: [{closed: first}]}", "expected another criterion"},
        {"{name: full, approval: {people: 0}}", "stages[1].approval.people: found"},
        {"{name: full, approval: two}", "expected none, or how many"},
        {"{name: full, approval: {person: 1}}", "person"}};
    for (const auto& [stage, said] : wrong) {
      CAPTURE(stage);
      Folder folder;
      folder.change(kYaml, "replicates: 2", "stages:\n  - name: first\n  - " + std::string(stage));
      CAPTURE(folder.errors());
      CHECK(folder.errors().find(said) != std::string::npos);
    }
    Folder folder;
    folder.change(kYaml, "replicates: 2", "stages: [{name: first, entry: [spend_within]}]");
    CHECK(folder.errors().find("no stage is before the first one") != std::string::npos);
  }

  TEST_CASE("recorded methods have the patches of runs, and travel with them") {
    Folder folder;
    const std::string run = "fix-greeting/scripted/r1";
    folder.put(recorded_patch(run), "diff");
    folder.put(recorded_facts(run), "{}");
    folder.change(kYaml, "methods:\n",
                  "derived_from: {campaign: first-0123456789ab, contracts: {fix-greeting: " +
                      std::string(64, 'a') + "}, bases: {fix-greeting: tasks}}\nmethods:\n" +
                      "  - {name: again, kind: recorded, of: reference, files: [" +
                      recorded_patch(run) + ", " + recorded_facts(run) + "]}\n");
    CHECK(folder.errors() == "");
    Diagnostics out;
    const Campaign c = load_campaign(folder.path(), out).value();
    const Method& m = *c.find_method("again");
    CHECK(m.kind == Method::Kind::kRecorded);
    CHECK(m.acts_as() == Method::Kind::kReference);
    CHECK(m.has_run(run));
    CHECK_FALSE(m.has_run("fix-greeting/scripted/r2"));
    CHECK(c.find_method("scripted")->has_run("any"));
    REQUIRE(m.find_file(recorded_patch(run)) != nullptr);
    CHECK(m.find_file(recorded_patch(run))->bytes == "diff");
    const auto opened = open_method_bundle(make_bundle(m), m.digest);
    REQUIRE(opened.ok());
    CHECK(opened->find_file(recorded_patch(run))->bytes == "diff");
    CHECK(opened->acts_as() == Method::Kind::kReference);
    // Relative repositories are those of the campaign two folders above.
    CHECK(c.contracts.at(0).origin.folder == folder.path().parent_path().parent_path() / "tasks");
    CHECK(c.derived_from->contracts.at("fix-greeting") == std::string(64, 'a'));
  }

  TEST_CASE("a plan of analysis names what is compared, of methods that are there") {
    Folder folder;
    Diagnostics none;
    CHECK_FALSE(load_campaign(folder.path(), none).value().analysis.has_value());
    const std::string methods = "methods:\n";
    folder.change(kYaml, methods,
                  "analysis:\n"
                  "  contrasts: [[scripted, noop], [reference, scripted]]\n"
                  "  alpha: \"0.01\"\n"
                  "  min_effect: 0.2\n"
                  "  estimand: run_mean\n"
                  "  interval: t\n"
                  "  pass_k: [1, 3]\n"
                  "  multiplicity: max_t\n"
                  "  bootstrap: {draws: 10000}\n"
                  "  unit: task\n"
                  "  weights: {language: {shell: 1}}\n" +
                      methods);
    Diagnostics out;
    const auto campaign = load_campaign(folder.path(), out);
    REQUIRE_MESSAGE(out.empty(), out.text());
    const AnalysisPlan& plan = campaign.value().analysis.value();
    CHECK(plan.contrasts.size() == 2);
    CHECK(plan.alpha.value == 10'000);
    CHECK(plan.min_effect.value == 200'000);
    CHECK(plan.non_inferiority == AnalysisPlan().non_inferiority);
    CHECK(plan.pass_k == std::vector<std::uint32_t>{1, 3});
    CHECK(plan.multiplicity == AnalysisPlan::Multiplicity::kMaxT);
    CHECK(plan.draws == 10'000);
    CHECK(plan.unit == AnalysisPlan::Unit::kTask);
    CHECK(plan.weights_key == "language");
    CHECK(plan.weights.at("shell").value == 1'000'000);
    for (const auto& [from, to, said] : std::vector<std::array<std::string, 3>>{
             {"[scripted, noop]", "[scirpted, noop]", "analysis.contrasts[0][0]"},
             {"[scirpted, noop]", "[noop, noop]", "two different methods"},
             {"[noop, noop]", "[noop]", "analysis.contrasts[0]"},
             {"[noop]", "[scripted, reference]", "each pair of methods once"},
             {"[scripted, reference]", "[scripted, noop]", ""},
             {"alpha: \"0.01\"", "alpha: 1", "analysis.alpha"},
             {"alpha: 1", "alpha: \"0.0000001\"", "analysis.alpha"},
             {"alpha: \"0.0000001\"", "alpha: 0.05", ""},
             {"[1, 3]", "[3, 1]", "analysis.pass_k[1]"},
             {"[3, 1]", "[1]", ""},
             {"unit: task", "unit: run", "analysis.unit"},
             {"unit: run", "unit: repository", ""},
             {"max_t", "max-t", "analysis.multiplicity"},
             {"max-t", "holm", ""},
             {"draws: 10000", "draws: 999", "analysis.bootstrap.draws"},
             {"draws: 999", "draws: 20001", "analysis.bootstrap.draws"},
             {"draws: 20001", "samples: 2000", "analysis.bootstrap"},
             {"samples: 2000", "draws: 1000", ""},
             {"{shell: 1}", "{shell: 0.9}", "together exactly 1, not 0.9"},
             {"{shell: 0.9}", "{shell: 0}", "analysis.weights.language.shell"},
             {"{shell: 0}", "{shell: \"0.6\", rust: 0.5}", "together exactly 1, not 1.1"},
             {"{shell: \"0.6\", rust: 0.5}", "{shell: \"1\"}", ""},
             {"weights: {language:", "weights: {owner:", "a key of strata of this campaign"},
             {"weights: {owner:", "weights: {type: {bug_fix: 1}, language:", "one key of strata"},
             {"weights: {type: {bug_fix: 1}, language:", "weights: {language:", ""},
             {"estimand: run_mean", "estimate: run_mean", "estimand"},
             {"estimate: run_mean", "baseline: noop", "analysis.baseline"}}) {
      folder.change(kYaml, from, to);
      CAPTURE(to);
      if (said.empty())
        CHECK(folder.errors() == "");
      else
        CHECK(folder.errors().find(said) != std::string::npos);
    }
  }

  TEST_CASE("a method may ask a model, and what it asks is the contracts' to say") {
    Folder folder;
    folder.change(kYaml, "  - name: scripted\n",
                  "  - {name: gpt, kind: single_shot, model: m, attempts: 2, call_timeout: 5s}\n"
                  "  - name: scripted\n");
    CHECK(folder.errors().find("no single_shot, expected one, because the method gpt answers it") !=
          std::string::npos);
    folder.change(kTask, "reference_patch: fix-greeting.patch",
                  "reference_patch: fix-greeting.patch\nsingle_shot: fix-greeting.patch");
    Diagnostics out;
    const auto campaign = load_campaign(folder.path(), out);
    REQUIRE_MESSAGE(out.empty(), out.text());
    const Method& m = campaign.value().methods[2];
    CHECK(m.kind == Method::Kind::kSingleShot);
    CHECK(m.call.attempts == 2);
    CHECK(m.call.timeout == std::chrono::seconds(5));
    CHECK(m.call.max_output_tokens == ModelCall().max_output_tokens);
    CHECK(campaign.value().contracts[0].single_shot == "fix-greeting.patch");
    const auto again = open_method_bundle(make_bundle(m), m.digest);
    REQUIRE(again.ok());
    CHECK(again->call == m.call);
    struct Row {
      const char* yaml;
      const char* why;
    };
    for (const Row& row :
         {Row{"kind: single_shot, attempts: 2", "a model beside it"},
          Row{"kind: single_shot, model: m, attempts: 0", "attempts"},
          Row{"kind: single_shot, model: m, command: x", "command"},
          Row{"kind: noop, model: m", "only the kinds \"single_shot\" and \"tool_loop\" have it"},
          Row{"kind: noop, attempts: 2", "only the kind \"single_shot\" has it"}}) {
      CAPTURE(row.yaml);
      Folder other;
      other.change(kYaml, "  - name: scripted\n",
                   "  - {name: gpt, " + std::string(row.yaml) + "}\n  - name: scripted\n");
      CHECK_MESSAGE(other.errors().find(row.why) != std::string::npos, other.errors());
    }
  }

  TEST_CASE("a task envelope is not bound by the smallest stage that it spans") {
    for (const char* stages :
         {"stages: [{name: pilot, usd: \"2.00\"}, {name: main, usd: \"9.00\"}]",
          "stages: [{name: pilot, usd: \"2.00\"}, {name: main}]"}) {
      CAPTURE(stages);
      Folder folder;
      folder.change(kYaml, "replicates: 2", stages);
      CHECK(folder.errors() == "");
    }
  }

  TEST_CASE("a scaffolded campaign loads without a complaint") {
    const Folder folder;
    Diagnostics out;
    const auto loaded = load_campaign(folder.path(), out);
    CHECK(out.text() == "");
    REQUIRE(loaded.ok());
    const Campaign& c = *loaded;
    CHECK(c.name == "first");
    CHECK(c.seed == 20260307);
    REQUIRE(c.methods.size() == 3);
    CHECK(c.methods[0].kind == Method::Kind::kNoop);
    CHECK(c.methods[1].kind == Method::Kind::kReference);
    CHECK(c.methods[2].command == "sh \"$PROCTOR_METHOD/agent.sh\"");
    CHECK(c.methods[2].files.at(0).path == "agent.sh");
    CHECK(c.methods[0].digest != c.methods[1].digest);
    REQUIRE(c.contracts.size() == 1);
    const Contract& task = c.contracts[0];
    CHECK(task.origin.folder == folder.path() / "contracts");
    CHECK(c.find_contract("fix-greeting") == &task);
    CHECK(c.find_contract("other") == nullptr);
    CHECK(c.find_method("scripted") == &c.methods[2]);
    CHECK(c.run_cap(task) == MicroUsd::from_micros(1'000'000));
    CHECK(c.task_envelope(task.id) == MicroUsd::from_micros(10'000'000));
    CHECK(c.envelopes.global == MicroUsd::from_micros(20'000'000));
    const Caps caps = effective_caps(c.cap_rules(), "main", task).caps;
    CHECK(*caps.wall == std::chrono::minutes(2));
    CHECK(caps.tool_calls == std::uint64_t{200});
    CHECK(c.stages.at(0).name == "main");
    CHECK(c.cost_model.version == "file");
    REQUIRE(c.cost_inputs);
    REQUIRE(c.cost_inputs->find("fix-greeting", "scripted") != nullptr);
    CHECK(c.cost_inputs->find("fix-greeting", "scripted")->size() == 4);
  }

  TEST_CASE("the scaffolded repository is made by its script and takes its patch") {
    const Folder folder;
    const auto sh = [&](const std::string& command) {
      CommandSpec spec;
      spec.argv = {"/bin/sh", "-c", command};
      spec.cwd = folder.path();
      return run_command(spec);
    };
    const auto first = sh("sh make-repo.sh");
    REQUIRE(first.ok());
    CHECK(first->exit_code == 0);
    CHECK(first->out.size() == 41);
    CHECK(sh("sh make-repo.sh")->out == first->out);
    const std::string check = "sh ../../contracts/hidden_test.sh";
    CHECK(sh("cd repos/greeting && " + check)->exit_code == 1);
    CHECK(sh("cd repos/greeting && git apply ../../contracts/fix-greeting.patch && " + check)
              ->exit_code == 0);
    CHECK(
        sh("cd repos/greeting && git checkout -q . && sh ../../agent.sh && " + check)->exit_code ==
        0);
  }

  TEST_CASE("every mistake in a campaign is named with its place") {
    struct Row {
      const char* file;
      const char* from;
      const char* to;
      const char* expected;
    };
    const Row rows[] = {
        {kYaml, "replicates:", "replicate:",
         "campaign.yaml:21:1: replicate: found the unknown key \"replicate\", expected $schema, "
         "name, contracts, methods, replicates, seed, seed_deviation, stages, budget, caps, "
         "strata, "
         "workers, slots, redis, infrastructure_retries, task_caps, rates, retries, "
         "rubric, safety, acceptance, failure_modes, policy, analysis, breakers or derived_from "
         "(did "
         "you "
         "mean "
         "\"replicates\"?)\n"},
        {kYaml, "- noop", "- nop",
         "campaign.yaml:14:5: methods[0]: found \"nop\", expected noop, reference, or a mapping "
         "with name and command\n"},
        {kYaml, "name: scripted", "name: noop",
         "campaign.yaml:16:11: methods[2].name: found \"noop\", expected each method's name "
         "once\n"},
        {kYaml, "    script: agent.sh\n", "",
         "campaign.yaml:16:5: methods[2].command: found nothing, expected a command for /bin/sh, "
         "or "
         "a script\n"},
        {kYaml, "replicates: 2", "replicates: 0",
         "campaign.yaml:21:13: replicates: found \"0\", expected a whole number from 1 to "
         "1000000\n"},
        {kYaml, "replicates: 2", "seed: 1337",
         "campaign.yaml:21:7: seed: found 1337, expected 20260307, or a seed_deviation that says "
         "why "
         "(R072)\n"},
        {kYaml, "replicates: 2", "seed_deviation: because",
         "campaign.yaml:21:17: seed_deviation: found a reason, expected nothing: the seed is the "
         "planned one\n"},
        {kYaml, "global: \"20.00\"", "global: \"9.00\"",
         "campaign.yaml:26:9: budget.task: found a task envelope of 10.00 USD, expected at most "
         "the "
         "global envelope, 9.00 USD\n"},
        {kYaml, "task: \"10.00\"", "task: \"0.50\"",
         "campaign.yaml:27:8: budget.run: found a run envelope of 1.00 USD, expected at most the "
         "task envelope, 0.50 USD\n"},
        {kYaml, "replicates: 2", "stages: [{name: pilot, usd: \"9.00\"}]",
         "campaign.yaml:26:9: budget.task: found a task envelope of 10.00 USD, expected at most "
         "the "
         "envelope of stage pilot, 9.00 USD\n"},
        {kYaml, "replicates: 2",
         "stages: [{name: pilot, usd: \"2.00\"}, {name: main, usd: \"7.00\"}]",
         "campaign.yaml:26:9: budget.task: found a task envelope of 10.00 USD, expected at most "
         "the "
         "envelopes of all stages together, 9.00 USD\n"},
        {kYaml, "replicates: 2", "stages: [{name: pilot, usd: \"21.00\"}]",
         "campaign.yaml:21:29: stages.pilot: found a stage envelope of 21.00 USD, expected at most "
         "the global envelope, 20.00 USD\n"},
        {kYaml, "  run: \"1.00\"", "  run: \"1.00\"\n  tasks: {fix-greting: \"2.00\"}",
         "campaign.yaml:28:11: budget.tasks.fix-greting: found the unknown task \"fix-greting\", "
         "expected the id of a contract (did you mean \"fix-greeting\"?)\n"},
        {kYaml, "  run: \"1.00\"", "  run: \"1.00\"\n  tasks: {fix-greeting: \"0.50\"}",
         "campaign.yaml:28:11: budget.tasks.fix-greeting: found a run cap of 1.00 USD, expected at "
         "most the task envelope, 0.50 USD\n"},
        {kYaml, "  run: \"1.00\"", "  run: \"0.02\"",
         "contracts/fix-greeting.yaml:2:5: id: found a run cap of 0.02 USD, expected at least "
         "0.043416 "
         "USD, the price of one run at its time limits (3m for setup twice, agent and checks)\n"},
        {kTask, "reference_patch: fix-greeting.patch",
         "caps: {usd: \"1.50\"}\nreference_patch: "
         "fix-greeting.patch",
         "contracts/fix-greeting.yaml:46:13: caps.usd: found a run cap of 1.50 USD, expected at "
         "most "
         "the run envelope, 1.00 USD\n"},
        {kTask, "reference_patch: fix-greeting.patch", "",
         "contracts/fix-greeting.yaml:2:5: id: found no reference_patch, expected one, because the "
         "method reference applies it\n"},
        {kTask, "runtime: fast, ", "",
         "contracts/fix-greeting.yaml:5:9: strata: found no stratum \"runtime\", expected a value "
         "for every stratum of the campaign\n"},
        {kYaml, "replicates: 2", "contracts: [tasks/*.yaml]",
         "campaign.yaml:21:13: contracts: found no file, expected at least one contract at "
         "tasks/*.yaml\n"},
        {kYaml, "replicates: 2", "contracts: [contracts/fix-greeting.yaml, \"contracts/*\"]", ""},
        {kYaml, "budget:\n  global: \"20.00\"\n  task: \"10.00\"\n  run: \"1.00\"\n", "",
         "campaign.yaml:5:1: budget: found nothing, expected a mapping with at least global\n"},
        {kYaml, "replicates: 2", "redis: tcp://host",
         "campaign.yaml:21:8: redis: found \"tcp://host\", expected unix:/path, "
         "tcp://host:port[/database] or tls://host:port[/database]\n"},
        {kYaml, "replicates: 2", "redis: \"tls://cache.lab:6380/x\"",
         "campaign.yaml:21:8: redis: found \"tls://cache.lab:6380/x\", expected unix:/path, "
         "tcp://host:port[/database] or tls://host:port[/database]\n"},
        {kYaml, "  run: \"1.00\"\n", "  run: \"1.00\"\n  ledger: sqlite\n",
         "campaign.yaml:28:11: budget.ledger: found \"sqlite\", expected redis or journal\n"},
        {kYaml, "  run: \"1.00\"\n", "  run: \"1.00\"\n  ledger: journal\nredis: unix:/r\n",
         "campaign.yaml:29:8: redis: found an address, expected nothing: budget.ledger is journal, "
         "which asks no Redis\n"},
        {kYaml, "name: first", "name: first\nname: second",
         "campaign.yaml:6:1: name: found the key \"name\" a second time, expected each key once\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.to);
      Folder folder;
      folder.change(row.file, row.from, row.to);
      if (*row.expected != '\0') {
        CHECK(folder.errors() == row.expected);
      } else {
        CHECK(folder.errors().find("again, expected each contract once") != std::string::npos);
      }
    }
  }

  TEST_CASE("a cap that repetitions make too small names them, with the time that they take") {
    // Setup takes 10 s at most, the checks 40 s, the agent 2 m.
    for (const auto& [file, at] :
         {std::pair(kYaml, "name: first"), std::pair(kTask, "id: fix-g")}) {
      Folder folder;
      folder.change(kYaml, "  run: \"1.00\"", "  run: \"0.02\"");
      folder.change(file, at, std::string("acceptance: {rerun: 2}\n") + at);
      const std::string said = folder.errors();
      CHECK_MESSAGE(said.ends_with("(280s for setup twice, agent and checks; acceptance.rerun "
                                   "repeats setup and checks 2 times)\n"),
                    said);
    }
  }

  TEST_CASE("two contracts with one id are named with both files") {
    Folder folder;
    folder.put("contracts/second.yaml", folder.get(kTask));
    CHECK(folder.errors() ==
          "contracts/second.yaml:2:5: id: found \"fix-greeting\", expected an id of its own: "
          "contracts/fix-greeting.yaml has the same\n");
  }

  TEST_CASE("the ledger without a Redis is one line of the budget") {
    Folder folder;
    folder.change(kYaml, "  run: \"1.00\"\n", "  run: \"1.00\"\n  ledger: journal\n");
    Diagnostics out;
    const auto loaded = load_campaign(folder.path(), out);
    CHECK(out.text() == "");
    REQUIRE(loaded.ok());
    CHECK(loaded->ledger == Campaign::LedgerKind::kJournal);
  }

  TEST_CASE("errors of all files of a campaign are reported together") {
    Folder folder;
    folder.change(kYaml, "workers: 2", "workers: two");
    folder.change(kTask, "type: bug_fix", "type: Bug Fix");
    folder.change("pilot_cost_model.csv", "0.0005", "-1");
    CHECK(
        folder.errors() ==
        "campaign.yaml:42:10: workers: found \"two\", expected a whole number from 1 to 64\n"
        "contracts/fix-greeting.yaml:4:7: type: found \"Bug Fix\", expected a word: a-z, 0-9, "
        "\"_\" and \"-\", beginning with a letter\n"
        "pilot_cost_model.csv:3:1: unit_price: found \"-1\", expected a non-negative decimal with "
        "at most 12 digits after the point\n");
  }

  TEST_CASE("files outside a contract's folder stay outside") {
    Folder folder;
    std::error_code ec;
    fs::remove(folder.path() / "contracts/fix-greeting.patch", ec);
    fs::create_symlink("/etc/passwd", folder.path() / "contracts/fix-greeting.patch", ec);
    REQUIRE_FALSE(ec);
    CHECK(
        folder.errors() ==
        "contracts/fix-greeting.yaml:46:18: reference_patch: found fix-greeting.patch: a symbolic "
        "link, expected a regular file of at most 64 MiB in this file's folder\n");
    fs::create_directory_symlink("/etc", folder.path() / "contracts/etc", ec);
    folder.change(kTask, "reference_patch: fix-greeting.patch", "reference_patch: etc/passwd");
    CHECK(folder.errors().find("etc/passwd: a symbolic link") != std::string::npos);
    folder.change(kTask, "reference_patch: etc/passwd", "reference_patch: .");
    CHECK(folder.errors().find("expected a relative path") != std::string::npos);
  }

  TEST_CASE("without a price table the fallback holds") {
    Folder folder;
    std::error_code ec;
    fs::remove(folder.path() / kCostModelFile, ec);
    CHECK(folder.errors().find("(the built-in fallback-1) has no row human,minute") !=
          std::string::npos);
    fs::remove(folder.path() / kCostInputsFile, ec);
    Diagnostics out;
    const auto loaded = load_campaign(folder.path(), out);
    REQUIRE(loaded.ok());
    CHECK(loaded->cost_model.version == "fallback-1");
    CHECK(loaded->cost_model.sandbox_minute == 10'000'000'000);
    CHECK(loaded->cost_model.digest != Digest{});
  }

  TEST_CASE("a folder without a campaign says so") {
    const auto dir = TempDir::create("contract");
    Diagnostics out;
    const auto loaded = load_campaign(dir->path(), out);
    CHECK_FALSE(loaded.ok());
    CHECK(out.text().find("campaign.yaml:1:1: document: found ") != std::string::npos);
    CHECK(out.text().find("No such file or directory, expected a readable file") !=
          std::string::npos);
  }

  TEST_CASE("facts outside the folder are asked of the probe and placed in the contract") {
    struct Probe : OutsideProbe {
      bool commit = true;
      bool applies = true;
      Status commit_exists(const std::string& source, const fs::path& base,
                           const std::string&) const override {
        CHECK(source == "../repos/greeting");
        CHECK(base.is_absolute());
        if (commit) return ok_status();
        return Error{Errc::kNotFound, "no such commit"};
      }
      Status image_resolves(const std::string&) const override { return ok_status(); }
      Status patch_applies(const Repository&, const fs::path&,
                           const std::string& patch) const override {
        CHECK(patch.starts_with("diff --git"));
        if (applies) return ok_status();
        return Error{Errc::kInvalid, "patch failed: a:1"};
      }
    };
    const Folder folder;
    Diagnostics none;
    const auto campaign = load_campaign(folder.path(), none);
    REQUIRE(campaign.ok());
    const std::string file = (folder.path() / kTask).string();
    Probe probe;
    Diagnostics out;
    check_outside(*campaign, probe, out);
    CHECK(out.text() == "");
    probe.applies = false;
    check_outside(*campaign, probe, out);
    probe.commit = false;
    check_outside(*campaign, probe, out);
    CHECK(out.text() ==
          file +
              ":46:18: reference_patch: found \"fix-greeting.patch\": patch failed: a:1, "
              "expected a patch that applies to the commit and changes it\n" +
              file +
              ":14:11: repository.commit: found no such commit, expected a commit of "
              "../repos/greeting\n");
  }
}

}  // namespace proctor
