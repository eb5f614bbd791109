// `proctor cvdp run` with single-shot models: real programs, a provider of our own, and containers
// of this machine's shell as harness.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "common/base/subprocess.h"
#include "tests/integration/cvdp/run_cases.h"
#include "tests/support/chat_server.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

constexpr const char* kKey = "sk-proctor-test";

// One file is asked for; the harness wants a "y" in it.
std::string problem(const std::string& id) {
  ShellProblem p;
  p.id = id;
  p.compose = service(kImage, kIsY);
  return line_of(p);
}

std::string question(const std::string& id, const char* category, const char* reference) {
  return Json{{"id", id},
              {"categories", {category, "easy"}},
              {"input", {{"prompt", "What is " + id + "?"}, {"context", {{"docs/a.md", "text"}}}}},
              {"output", {{"response", reference}, {"context", Json::object()}}},
              {"harness", Json::object()}}
             .dump() +
         "\n";
}

std::string user_of(const Json& body) {
  return body["messages"][1]["content"].string();
}

// The key must be nowhere below the folder.
void has_no_key(const fs::path& dir) {
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    const auto text = read_file(entry.path(), std::size_t{64} << 20);
    CHECK_MESSAGE((!text.ok() || text->find(kKey) == std::string::npos), entry.path().string());
  }
}

struct WithKey {
  WithKey() { ::setenv("PROCTOR_TEST_KEY", kKey, 1); }
  WithKey(const WithKey&) = delete;
  WithKey& operator=(const WithKey&) = delete;
  ~WithKey() { ::unsetenv("PROCTOR_TEST_KEY"); }
};

}  // namespace

TEST_SUITE("cvdp model") {
  TEST_CASE("an agent that is a method with a gateway runs in one command, by a file or by a URL") {
    if (!have_oci("an agent's gateway")) return;
    const RunScene scene(Runner::kOci);
    const WithKey key;
    const fs::path agent = scene.dir.path() / "agent.yaml",
                   models = scene.dir.path() / "models.json";
    must(write_file(agent,
                    "name: mini\ncommand: 'echo at $OPENAI_BASE_URL; echo y > rtl/a.sv'\n"
                    "gateway: {model: m, as: openai}\n"));
    must(write_file(models, R"({"models": {"m": {"url": "http://127.0.0.1:9/v1"}}})"));
    const std::vector<std::string> method{"--agent-method", agent.string()};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), method.begin(), method.end());
      return scene.run(problem("cvdp_agentic_a_0001"), more);
    };
    // Without any way to it nothing begins.
    const CommandOutcome none = with({});
    CHECK(none.exit_code == 2);
    CHECK_MESSAGE(contains(none.err, "no way to the model"), none.err);
    const CommandOutcome by_file = with({"--models", models.string()});
    INFO(by_file.err);
    REQUIRE(by_file.exit_code == 0);
    CHECK(scene.raw("")["cvdp_agentic_a_0001"]["errors"] == 0);
    CHECK(contains(scene.text("cvdp_agentic_a/reports/1_agent.txt"), "at http://"));
    CHECK(with({"-r"}).exit_code == 0);  // asks nobody
    const CommandOutcome by_url = with({"--model-url", "http://127.0.0.1:9/v1",
                                        "--model-key-variable", "PROCTOR_TEST_KEY", "-n", "2"});
    CHECK_MESSAGE(by_url.exit_code == 0, by_url.err);
    CHECK(scene.raw("sample_2/")["cvdp_agentic_a_0001"]["errors"] == 0);
    has_no_key(scene.dir.path());
  }

  TEST_CASE("a model answers once per sample, its answer is judged by the harness and paid for") {
    if (!have_oci("a model over HTTP")) return;
    const RunScene scene(Runner::kOci);
    const WithKey key;
    std::size_t busy = 0;
    const ChatServer server([&](const Json& body, std::size_t) {
      if (body["model"] == "judge")
        return chat_says(user_of(body).find("right") == std::string::npos
                             ? R"({"score": 0.2, "reasoning": "no"})"
                             : R"(```json
{"score": 0.9, "reasoning": "yes"})",
                         10, 5);
      const std::string user = user_of(body);
      if (user.find("cvdp_copilot_q_0003") != std::string::npos)
        return chat_says(R"({"response": "right"})", 10, 5);
      if (user.find("cvdp_copilot_w_0004") != std::string::npos)
        return chat_says(R"({"response": "a match of words in the text"})", 10, 5);
      if (busy++ == 0) return ChatAnswer{429, "", "Retry-After: 0\r\n"};
      return chat_says(user.find("bad") == std::string::npos ? "```\ny\n```" : "x", 100, 20);
    });
    Json bad = must(parse_json(problem("cvdp_agentic_bad_0002")));
    bad["prompt"] = "bad";
    const std::string lines =
        problem("cvdp_agentic_good_0001") + bad.dump() + "\n" +
        question("cvdp_copilot_q_0003", "cid009", "the right answer") +
        question("cvdp_copilot_w_0004", "cid006", "a match of words in the text");
    const std::vector<std::string> args = {"--model",
                                           "m",
                                           "--judge",
                                           "judge",
                                           "--model-url",
                                           server.url(),
                                           "--model-key-variable",
                                           "PROCTOR_TEST_KEY",
                                           "-n",
                                           "2",
                                           "-k",
                                           "1"};
    const CommandOutcome done = scene.run(lines, args);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    for (const std::string sample : {"sample_1/", "sample_2/"}) {
      const Json raw = scene.raw(sample);
      CAPTURE(raw.dump(1));
      CHECK(raw["cvdp_agentic_good_0001"]["errors"] == 0);
      CHECK(raw["cvdp_agentic_bad_0002"]["errors"] == 1);
      const Json& judged = raw["cvdp_copilot_q_0003"];
      CHECK(judged["tests"][0]["llm_score"] == 0.9);
      CHECK(judged["tests"][0]["result"] == false);
      CHECK(judged["errors"] == false);
      CHECK(raw["cvdp_copilot_w_0004"]["tests"][1]["bleu_score"] == 1.0);
      CHECK(contains(scene.text(sample + "report.txt"), "Model/Agent: m\nPrompts: Proctor 1 (up"));
      CHECK(contains(scene.text(sample + "prompt_response.jsonl"), "\"rtl/a.sv\": \"\\ny"));
      CHECK(scene.text(sample + "cvdp_agentic_good/harness/1/rtl/a.sv") == "\ny\n");
      CHECK(contains(scene.text(sample + "cvdp_agentic_good/prompts/1.md"), "Make it y."));
      CHECK(contains(scene.text(sample + "cvdp_copilot_q/reports/3_llm_score.txt"), "score: 0.9"));
    }
    CHECK(contains(scene.text("composite_report.txt"), "Pass@1, n=2"));
    // Eight answers, two judgements, one refusal; nothing is asked again.
    const std::size_t asked = server.heard().size();
    CHECK(asked == 11);
    CHECK(scene.run(lines, args).exit_code == 0);
    CHECK(server.heard().size() == asked);
    CHECK(contains(server.heard()[0].head, kKey));
    has_no_key(scene.dir.path() / "work");
    const std::string costs = scene.text("campaign/reports/runs.csv");
    CHECK(contains(costs, "ended,success"));
    const Json report = must(parse_json(
        scene.text("campaign/runs/cvdp_agentic_bad_0002/model/r1/attempt-1/report.json")));
    CHECK(report["usage"]["input_tokens"] == 100);
    CHECK(report["usage"]["output_tokens"] == 20);
    // The same answers again, without any model.
    const CommandOutcome again =
        run_proctor({"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "--answers",
                     (scene.dir.path() / "work").string(), "-n", "2", "-p",
                     (scene.dir.path() / "again").string()},
                    std::chrono::minutes(2));
    INFO(again.err);
    CHECK(again.exit_code == 0);
    CHECK(server.heard().size() == asked);
    CHECK_FALSE(contains(must(read_file(scene.dir.path() / "again/sample_1/report.txt", 1 << 20)),
                         "Prompts:"));
    const Json replay = must(
        parse_json(must(read_file(scene.dir.path() / "again/sample_2/raw_result.json", 1 << 20))));
    CHECK(replay["cvdp_agentic_good_0001"]["errors"] == 0);
    CHECK(replay["cvdp_agentic_bad_0002"]["errors"] == 1);
    CHECK(replay["cvdp_copilot_w_0004"]["tests"][1]["bleu_score"] == 1.0);
    // And from a prefix of upstream's, which has no campaign.
    const fs::path theirs = scene.dir.path() / "theirs", third = scene.dir.path() / "third";
    for (const std::string sample : {"sample_1", "sample_2"}) {
      must(make_dirs(theirs / sample));
      fs::copy_file(scene.dir.path() / "work" / sample / "prompt_response.jsonl",
                    theirs / sample / "prompt_response.jsonl");
    }
    const CommandOutcome upstream =
        run_proctor({"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "--answers",
                     theirs.string(), "-n", "2", "-p", third.string()},
                    std::chrono::minutes(2));
    INFO(upstream.err);
    CHECK(upstream.exit_code == 0);
    CHECK(server.heard().size() == asked);
    for (const std::string sample : {"sample_1", "sample_2"}) {
      const Json raw =
          must(parse_json(must(read_file(third / sample / "raw_result.json", 1 << 20))));
      CHECK(raw["cvdp_agentic_good_0001"]["errors"] == 0);
      CHECK(raw["cvdp_agentic_bad_0002"]["errors"] == 1);
    }
  }

  TEST_CASE("a call that was under way when its worker was killed is charged at its ceiling") {
    if (!have_oci("a worker killed in a model's call")) return;
    const RunScene scene(Runner::kOci);
    std::atomic<bool> asked = false;
    const ChatServer server([&](const Json&, std::size_t call) {
      asked = true;
      ChatAnswer answer = chat_says("```\ny\n```", 100, 20);
      answer.hang = call == 0;
      return answer;
    });
    const fs::path prices = scene.dir.path() / "prices.csv", work = scene.dir.path() / "work";
    must(write_file(prices,
                    "action_type,unit,unit_price,notes\nllm_request,output_token,0.0001,\n"
                    "llm_request,input_token,0,\nllm_request,call,0,\n"));
    CommandSpec spec;
    spec.argv = {proctor_program().string(),
                 "cvdp",
                 "run",
                 scene.dataset(problem("cvdp_agentic_a_0001")).string(),
                 "-p",
                 work.string(),
                 "--model",
                 "m",
                 "--model-url",
                 server.url(),
                 "--max-output-tokens",
                 "1000",
                 "--prices",
                 prices.string(),
                 "--run-usd",
                 "1"};
    Child child =
        must(Child::start(spec, scene.dir.path() / "said", Child::Lifetime::kDiesWithParent));
    REQUIRE(eventually([&] { return asked.load(); }));
    const std::vector<pid_t> workers = workers_of(work);
    REQUIRE(workers.size() == 1);
    REQUIRE(::kill(workers[0], SIGKILL) == 0);
    CHECK(child.wait(std::chrono::seconds(90)) == 0);
    CHECK(server.heard().size() == 2);  // once more, and not twice
    CHECK(scene.raw()["cvdp_agentic_a_0001"]["errors"] == 0);
    const std::string charged = must(
        run_for_output({.argv = {"sqlite3", (work / "campaign/.proctor/journal.sqlite").string(),
                                 "SELECT charged FROM attempts ORDER BY attempt"},
                        .cwd = {},
                        .env = {},
                        .stdin_bytes = {}}));
    std::istringstream lines(charged);
    std::int64_t first = 0, second = 0;
    lines >> first >> second;
    REQUIRE_MESSAGE(!lines.fail(), charged);
    CHECK(100'000 <= first);  // 1,000 tokens of output, though nobody knows whether there were any
    CHECK(2'000 <= second);
    CHECK(second < 100'000);
    CHECK(run_proctor({"verify", (work / "campaign").string()}).exit_code == 0);
  }

  TEST_CASE("a run's cap holds for the calls of its model") {
    if (!have_oci("a cap on a model")) return;
    const RunScene scene(Runner::kOci);
    const ChatServer server([](const Json&, std::size_t) { return chat_says("no", 1, 1); });
    // The first call has no usage to show and takes its ceiling; a second does not fit.
    must(write_file(scene.dir.path() / "prices.csv",
                    "action_type,unit,unit_price,notes\nllm_request,output_token,0.0001,\n"
                    "llm_request,input_token,0,\nllm_request,call,0,\n"));
    Json two = must(parse_json(problem("cvdp_agentic_a_0001")));
    two["patch"]["rtl/b.sv"] = "";
    const CommandOutcome done =
        scene.run(two.dump() + "\n",
                  {"--model", "m", "--model-url", server.url(), "--max-output-tokens", "3999",
                   "--prices", (scene.dir.path() / "prices.csv").string(), "--run-usd", "0.40"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    const std::string costs = scene.text("campaign/reports/runs.csv");
    CHECK_MESSAGE(contains(costs, "budget_exceeded"), costs);
    CHECK(server.heard().size() < 4);
  }

  TEST_CASE("prompts go out to a file, and completions come in from one") {
    if (!have_oci("local export and import")) return;
    const RunScene scene(Runner::kOci);
    const fs::path prompts = scene.dir.path() / "prompts.jsonl";
    const std::string lines = problem("cvdp_agentic_a_0001") + problem("cvdp_agentic_b_0012") +
                              problem("cvdp_agentic_c_0003");
    for (int twice = 0; twice < 2; ++twice) {
      const CommandOutcome out = scene.run(
          lines, {"--model", "local_export", "--prompts-responses-file", prompts.string()});
      CHECK(out.exit_code == 0);
    }
    const std::string written = must(read_file(prompts, 1 << 20));
    CHECK(std::ranges::count(written, '\n') == 3);
    const Json first = must(parse_json(written.substr(0, written.find('\n'))));
    CHECK(first["prompt"] ==
          first["system"].get<std::string>() + "\n\n" + first["user"].get<std::string>());
    const fs::path completions = scene.dir.path() / "completions.jsonl";
    const auto completion = [](const char* id, const std::string& text) {
      return Json{{"id", id}, {"completion", text}}.dump() + "\n";
    };
    must(write_file(completions, completion("cvdp_agentic_a_0001", "y") + "nonsense\n" +
                                     completion("cvdp_agentic_b_0012", std::string(17 << 20, 'y')) +
                                     completion("cvdp_agentic_a_0001", "x")));
    const CommandOutcome done = scene.run(
        lines,
        {"--model", "local_import", "--prompts-responses-file", completions.string(), "-n", "2"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(contains(done.err, "completions.jsonl:2: left out"));
    CHECK(scene.raw("sample_1/")["cvdp_agentic_a_0001"]["errors"] == 0);
    CHECK(scene.raw("sample_2/")["cvdp_agentic_a_0001"]["errors"] == 1);
    CHECK(contains(scene.text("sample_1/raw_result.json"), "17 MiB, more than 16"));
    CHECK(contains(scene.text("sample_1/raw_result.json"), "has no answer of it for sample 1"));
  }

  TEST_CASE("the solutions of a golden run replay to its verdicts") {
    if (!have_oci("answers replay")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem second;
    second.id = "cvdp_agentic_b_0002";
    second.compose = service(kImage, "exit 4");
    const std::string lines = problem("cvdp_agentic_a_0001") + line_of(second);
    CHECK(scene.run(lines, {"--golden"}).exit_code == 0);
    const Json golden = scene.raw();
    const fs::path work = scene.dir.path() / "work", other = scene.dir.path() / "other";
    for (const fs::path& from : {work / "prompt_response.jsonl", work}) {
      CAPTURE(from.string());
      must(remove_tree(other));
      const CommandOutcome done =
          run_proctor({"cvdp", "run", (scene.dir.path() / "problems.jsonl").string(), "-a",
                       from.string(), "-p", other.string()},
                      std::chrono::minutes(2));
      INFO(done.err);
      CHECK(done.exit_code == 0);
      const Json replay = must(parse_json(must(read_file(other / "raw_result.json", 1 << 20))));
      for (const auto& [id, item] : golden.items()) CHECK(replay[id]["errors"] == item["errors"]);
    }
  }

  TEST_CASE("a program stands in for upstream's factory, and ways to a model exclude each other") {
    if (!have_oci("a program as a model")) return;
    const RunScene scene(Runner::kOci);
    const fs::path program = scene.dir.path() / "ask";
    must(write_file(program, "#!/bin/sh\nread line\necho '{\"text\": \"y\"}'\n", Durability::kLazy,
                    0755));
    const std::string lines = problem("cvdp_agentic_a_0001");
    const CommandOutcome done =
        scene.run(lines, {"-l", "-m", "mine", "--model-program", program.string()});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(scene.raw()["cvdp_agentic_a_0001"]["errors"] == 0);
    const fs::path sweep = scene.dir.path() / "sweep";
    const CommandOutcome swept =
        run_proctor({"cvdp", "sweep", (scene.dir.path() / "problems.jsonl").string(), "-m", "mine",
                     "-m", "other/one", "--model-program", program.string(), "-p", sweep.string()},
                    std::chrono::minutes(2));
    INFO(swept.err);
    CHECK(swept.exit_code == 0);
    const Json rows = must(parse_json(must(read_file(sweep / "sweep_report.json", 1 << 20))));
    REQUIRE(rows["sweep"].size() == 2);
    CHECK(rows["sweep"][1]["model_or_agent"] == "other/one");
    CHECK(rows["sweep"][1]["work_dir"] == (sweep / "problems/other_one").string());
    CHECK(rows["sweep"][1]["variant"] == "agentic");
    CHECK(rows["sweep"][1]["passed"] == 1.0);
    CHECK(rows["sweep"][1]["pass_pct"] == 100.0);
    const auto refused = [&](std::vector<std::string> more, const char* why) {
      const CommandOutcome out = scene.run(lines, std::move(more));
      CHECK(out.exit_code == 2);
      CHECK_MESSAGE(contains(out.err, why), out.err);
    };
    refused({"-l"}, "--llm needs --model, --agent or --agent-method");
    refused({"-m", "x", "-g", "y"}, "not both");
    refused({"-m", "x", "-a", "y"}, "exclude each other");
    refused({"-m", "x", "-d"}, "exclude --golden and --no-patch");
    refused({"-m", "local_import"}, "needs --prompts-responses-file");
    refused({"-m", "x", "--prompts-responses-file", "f"}, "goes with --model local_");
    refused({"-m", "local_import", "--prompts-responses-file", "/nonexistent"}, "no such file");
    refused({"-m", "x", "--model-url", "http://h/v1", "--model-key-variable", "K"},
            "https:// only");
  }
}
