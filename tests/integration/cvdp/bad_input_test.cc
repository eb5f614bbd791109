// Everything that must not stop a run, in one dataset, and upstream's options one by one.
#include <cstdlib>

#include "tests/integration/cvdp/run_cases.h"
#include "tests/support/chat_server.h"

using namespace proctor;
using namespace proctor::testing;
using Runner = ImagesOf::Runner;

namespace {

struct Bad {
  std::string id;    // empty: the line is none
  std::string line;  // with its end
  const char* told;  // on standard error or in its result
};

std::string changed(const std::string& id, const std::function<void(Json&)>& change) {
  ShellProblem p;
  p.id = id;
  p.compose = service(kImage, kIsY);
  Json record = must(parse_json(line_of(p)));
  change(record);
  return record.dump() + "\n";
}

std::string compose_of(const std::string& more) {
  return "services:\n  direct:\n    image: " + std::string(kImage) +
         "\n    command: [sh, -c, 'true']\n" + more;
}

std::string bomb() {
  std::string out = "a0: &a0 x\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    out += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
           "]\n";
  }
  return out;
}

std::vector<Bad> bad_input() {
  std::vector<Bad> out = {{"", "\n", "a blank line"},
                          {"", "{\"id\": \n", "error"},
                          {"", std::string("\0\0\n", 3), "error"}};
  int number = 100;
  const auto add = [&](const char* told, const std::function<void(Json&)>& change) {
    const std::string id = "cvdp_agentic_bad_" + std::to_string(++number);
    out.push_back({id, changed(id, change), told});
  };
  const auto compose = [&](const char* told, const std::string& text) {
    add(told, [&](Json& r) { r["harness"]["docker-compose.yml"] = text; });
  };
  out.push_back({"", changed("cvdp_agentic_nonumber_x", [](Json&) {}), "does not end in"});
  add("categories", [](Json& r) { r.erase("categories"); });
  add("categories", [](Json& r) { r["categories"] = {"cid003"}; });
  add("categories", [](Json& r) { r["categories"] = nullptr; });
  add("context", [](Json& r) { r["context"] = nullptr; });
  add("patch", [](Json& r) { r["patch"] = nullptr; });
  add("harness", [](Json& r) { r["harness"] = nullptr; });
  add("prompt", [](Json& r) { r["prompt"] = nullptr; });
  add("context", [](Json& r) { r["context"]["../x"] = "y"; });
  add("context", [](Json& r) { r["context"]["/etc/x"] = "y"; });
  add("context", [](Json& r) { r["context"][std::string("a\0b", 3)] = "y"; });
  add("harness", [](Json& r) { r["harness"]["src/../../x"] = "y"; });
  add("patch", [](Json& r) { r["patch"]["../../x"] = "@@ -0,0 +1 @@\n+y"; });
  add("hunk header",
      [](Json& r) { r["patch"]["rtl/a.sv"] = "@@ -1,99999999999999999999 +x @@\n-x"; });
  compose("", "services: [");
  compose("anchor", bomb());
  compose("privileged", compose_of("    privileged: true\n"));
  compose("", compose_of("    volumes: ['/etc:/host']\n"));
  compose("network_mode", compose_of("    network_mode: host\n"));
  compose("", compose_of("    depends_on: [nobody]\n"));
  compose("", compose_of("    cap_add: [ALL]\n"));
  return out;
}

}  // namespace

TEST_SUITE("cvdp bad input") {
  TEST_CASE("an image that is missing is told with those that are there") {
    if (!have_oci("a missing image")) return;
    const RunScene scene(Runner::kOci);
    ShellProblem p;
    p.compose = service("__OSS_SIM_IMAGE__", kIsY);
    const CommandOutcome done = scene.run(line_of(p), {"--golden", "--image-sim", "cvdp-sim"});
    const std::string said = done.out + done.err;
    CHECK_MESSAGE(contains(said, "image cvdp-sim is neither in the store"), said);
    CHECK_MESSAGE(contains(said, std::string("there are: ")), said);
    CHECK_MESSAGE(contains(said, kImage), said);
  }

  TEST_CASE("nothing that is wrong with a record stops another") {
    if (!have_oci("bad input")) return;
    const RunScene scene(Runner::kOci);
    std::string lines =
        changed("cvdp_agentic_good_0001", [](Json& r) { r["prompt"] = "an older one"; });
    const std::vector<Bad> bad = bad_input();
    for (const Bad& b : bad) lines += b.line;
    // The same id again: the later record counts.  NUL bytes in a file are a file's own affair.
    lines += changed("cvdp_agentic_good_0001",
                     [](Json& r) { r["context"]["docs/nul"] = std::string("a\0b", 3); });
    lines +=
        changed("cvdp_agentic_null_0002", [](Json& r) { r["context"]["docs/null"] = nullptr; });
    const CommandOutcome done = scene.run(lines, {"--golden", "-t", "2"});
    INFO(done.err);
    CHECK(done.exit_code == 2);  // all that can be run has been
    const Json raw = scene.raw();
    CHECK(raw["cvdp_agentic_good_0001"]["errors"] == 0);
    CHECK(raw["cvdp_agentic_null_0002"]["errors"] == 0);
    for (const Bad& b : bad) {
      CAPTURE(b.line);
      if (b.id.empty()) {
        CHECK(contains(done.err, b.told));
        continue;
      }
      // Told with its line where the record is none, in its result where it cannot be run.
      const bool is_record = raw.contains(b.id);
      if (is_record) CHECK(raw[b.id]["errors"] == 1);
      const std::string said = is_record ? raw[b.id].dump() : done.err;
      CHECK_MESSAGE(contains(said, b.told), said);
    }
    CHECK(contains(scene.text("report.txt"), "cvdp_agentic_good_0001"));
    CHECK_FALSE(fs::exists(scene.dir.path() / "x"));
    CHECK_FALSE(fs::exists(scene.dir.path() / "work/x"));
  }

  TEST_CASE(
      "answers without a fence, with two, with 100 MB are answers or refused, each for itself") {
    if (!have_oci("bad answers")) return;
    const RunScene scene(Runner::kOci);
    const ChatServer server([](const Json& body, std::size_t) {
      const std::string user = body["messages"][1]["content"].string();
      if (contains(user, "two fences")) return chat_says("```\nx\n```\n```\ny\n```", 1, 1);
      if (contains(user, "open fence")) return chat_says("```\ny", 1, 1);
      if (contains(user, "100 MB")) return ChatAnswer{200, std::string(100'000'000, 'y')};
      return chat_says("y", 1, 1);
    });
    std::string lines;
    int number = 0;
    for (const char* prompt : {"no fence", "two fences", "open fence", "100 MB"}) {
      const std::string id =
          "cvdp_agentic_answer" + std::to_string(number) + "_000" + std::to_string(number);
      ++number;
      lines += changed(id, [&](Json& r) { r["prompt"] = prompt; });
    }
    const CommandOutcome done =
        scene.run(lines, {"-m", "m", "--model-url", server.url(), "--model-retries", "0"});
    INFO(done.err);
    const Json raw = scene.raw();
    CHECK(raw["cvdp_agentic_answer0_0000"]["errors"] == 0);
    CHECK(raw["cvdp_agentic_answer1_0001"]["errors"] == 1);
    CHECK(raw["cvdp_agentic_answer2_0002"]["errors"] == 0);
    CHECK(raw["cvdp_agentic_answer3_0003"]["errors"] == 1);
    CHECK(contains(
        scene.text("campaign/runs/cvdp_agentic_answer3_0003/model/r1/attempt-1/agent/stderr"),
        "larger than 16 MiB"));
  }

  TEST_CASE("each of upstream's options is taken, or explained in an error") {
    const TempDir dir = must(TempDir::create());
    const fs::path file = dir.path() / "none.jsonl";
    struct Row {
      std::vector<std::string> args;
      const char* said;  // all end with exit code 2: the dataset is not there
    };
    constexpr const char* kTaken = "no such file";
    const std::vector<std::string> model = {"-m", "m", "--model-url", "http://127.0.0.1:1/v1"};
    const auto with_model = [&](std::vector<std::string> more) {
      more.insert(more.end(), model.begin(), model.end());
      return more;
    };
    const Row rows[] = {
        {{"-a", "/no/such"}, kTaken},
        {{"--answers", "/no/such"}, kTaken},
        {{"-i", "x"}, kTaken},
        {{"--id", "x"}, kTaken},
        {with_model({"-l"}), kTaken},
        {with_model({"--llm"}), kTaken},
        {{"--no-llm"}, kTaken},
        {{"--model", "m", "--model-url", "http://127.0.0.1:1/v1"}, kTaken},
        {{"-t", "2"}, kTaken},
        {{"--threads", "2"}, kTaken},
        {{"-g", "image"}, kTaken},
        {{"--agent", "image"}, kTaken},
        {{"-m", "local_export", "--prompts-responses-file", (dir.path() / "p").string()}, kTaken},
        {{"-p", (dir.path() / "w").string()}, kTaken},
        {{"--prefix", (dir.path() / "w").string()}, kTaken},
        {{"-r"}, kTaken},
        {{"--regenerate-report"}, kTaken},
        {{"-d"}, kTaken},
        {{"--no-patch"}, kTaken},
        {{"-e"}, kTaken},
        {{"--external-network"}, kTaken},
        {{"--force-agentic"}, kTaken},
        {{"--force-copilot"}, kTaken},
        {{"--force-agentic-include-golden", "-g", "i"}, kTaken},
        {{"--force-agentic-include-harness", "-g", "i"}, kTaken},
        {{"--repo-url", "u"}, kTaken},
        {{"--commit-hash", "c"}, kTaken},
        {{"-n", "2", "-k", "1"}, kTaken},
        {{"--n-samples", "2", "--k-threshold", "1"}, kTaken},
        {{"-q", "5"}, "--queue-timeout: it does nothing upstream"},
        {{"--queue-timeout", "5"}, "it does nothing upstream"},
        {{"-c", "f.py"}, "--model-program runs any program"},
        {{"--custom-factory", "f.py"}, "a Python class"},
        {{"--network-name", "n"}, "no network in common"},
        {{"--copilot-refine", "m"}, "proctor cvdp refine"},
        // What upstream refuses too.
        {{"-d", "-l"}, "--llm needs --model, --agent or --agent-method"},
        {with_model({"-d", "-l"}), "exclude --golden and --no-patch"},
        {{"--force-agentic", "--force-copilot"}, "--force-"},
        {with_model({"-l", "-g", "i"}), "not both"},
        {{"-m", "local_export"}, "needs --prompts-responses-file"},
        {{"-m", "local_import", "--prompts-responses-file", "/no/such"}, kTaken},
        {with_model({"--prompts-responses-file", "f"}), "goes with --model local_"},
        {{"-g", "i", "--prompts-responses-file", "f"}, "does not go with an agent"}};
    ::unsetenv("OPENAI_USER_KEY");
    for (const Row& row : rows) {
      std::vector<std::string> args = {"cvdp", "run", "-f", file.string()};
      args.insert(args.end(), row.args.begin(), row.args.end());
      const bool has_prefix = row.args[0] == "-p" || row.args[0] == "--prefix";
      if (!has_prefix) args.insert(args.end(), {"-p", (dir.path() / "work").string()});
      const CommandOutcome done = run_proctor(args);
      CAPTURE(Json(row.args).dump());
      CHECK(done.exit_code == 2);
      CHECK_MESSAGE(contains(done.err, row.said), done.err);
    }
  }
}
