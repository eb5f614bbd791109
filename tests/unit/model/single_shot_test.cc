// The agent that asks a model once: what it reserves, how often it asks, what it writes.
#include "worker/model/single_shot.h"

#include <doctest/doctest.h>

#include "common/answers/single_shot.h"
#include "common/base/json.h"
#include "tests/support/fake_workspace.h"
#include "worker/model/model.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

struct NoEngine final : SandboxEngine {
  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec&) override {
    return Error{Errc::kCorrupt, "a model runs in no sandbox"};
  }
  std::map<std::string, std::string> enforcement() const override { return {}; }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }
};

answers::SingleShotTask one_file() {
  answers::SingleShotTask task;
  task.expected = {"rtl/a.sv"};
  task.system = "be good";
  task.user = "make it y";
  return task;
}

// The gateway's answer; `call` counts from 0.
using Script = std::function<OwnReply(std::size_t call)>;

OwnReply says(const std::string& text) {
  return {200, Json{{"choices", {{{"message", {{"content", text}}}}}}}.dump()};
}
OwnReply own_refusal(int status, bool again) {
  OwnReply out{status, R"({"error":{"message":"proctor: budget_exceeded: usd"}})"};
  out.again = again;
  return out;
}

struct Scene {
  Scene() {
    method.name = "model";
    method.kind = Method::Kind::kSingleShot;
    method.call.model = "m";
    method.call.attempts = 3;
    method.call.timeout = 20s;
    contract.id = "t";
    contract.single_shot = "t/single-shot.json";
  }
  // The report, its program's end.
  Result<AgentReport> work(const answers::SingleShotTask& task, std::uint32_t replicate = 1) {
    contract.files = {{contract.single_shot, 0644, answers::write_task(task)}};
    AgentJob job{contract,     method,
                 workspace,    engine,
                 {},           "",
                 "t/model/r1", 1,
                 replicate,    30s,
                 temp.path(),  temp.path(),
                 [] {},        [this](const ToolUse& u) { uses.push_back(u); }};
    SingleShotTools tools{&access, [this](const std::string& body, const auto& over) {
                            heard.push_back(parse_json(body).value());
                            if (over()) return Result<OwnReply>(Error{Errc::kUnavailable, "over"});
                            return Result<OwnReply>(script(heard.size() - 1));
                          }};
    return make_single_shot(std::move(tools))->work(job, stop.get_token());
  }
  Result<AgentReport> ask(Script gateway, const answers::SingleShotTask& task = one_file()) {
    script = std::move(gateway);
    access.backoff = 1ms;
    return work(task);
  }
  std::string text(const char* name) const {
    return read_file(temp.path() / name, 1 << 20).value();
  }
  Contract contract;
  Method method;
  FakeWorkspace workspace;
  NoEngine engine;
  ModelAccess access;
  Script script;
  std::vector<Json> heard;
  TempDir temp = TempDir::create("proctor-model").value();
  std::vector<ToolUse> uses;
  std::stop_source stop;
};

}  // namespace

TEST_SUITE("single shot") {
  TEST_CASE("an answer becomes the file it was asked for") {
    Scene scene;
    const auto report = scene.ask([](std::size_t) { return says("Sure:\n```verilog\ny\n```"); });
    REQUIRE(report.ok());
    CHECK(report->program->exit_code == 0);
    CHECK(scene.workspace.files == std::map<std::string, std::string>{{"rtl/a.sv", "y\n"}});
    REQUIRE(scene.heard.size() == 1);
    CHECK(scene.heard[0]["model"] == "m");
    CHECK(scene.heard[0]["messages"][1]["content"] == "make it y");
    CHECK(scene.text("stdout") == "Sure:\n```verilog\ny\n```");
    CHECK(scene.text("answer.json") == "{\"files\": {\"rtl/a.sv\": \"y\\n\"}, \"refused\": []}\n");
    CHECK(scene.text("call-1.reply").find("Sure") != std::string::npos);
    CHECK(parse_json(scene.text("call-1.request.json"))->at("model") == "m");
    REQUIRE(scene.uses.size() == 1);
    CHECK(scene.uses[0].tool == "model");
  }

  TEST_CASE("what may heal is asked again, and why is kept") {
    Scene scene;
    REQUIRE(
        scene
            .ask([](std::size_t call) {
              return call == 0 ? OwnReply{429, "slow down"} : call == 1 ? OwnReply{} : says("y");
            })
            .ok());
    CHECK(scene.heard.size() == 3);
    CHECK(scene.text("stderr").find("call 1: HTTP status 429: slow down") != std::string::npos);
    CHECK(scene.text("stderr").find("call 2: the call ended without an answer") !=
          std::string::npos);
  }

  TEST_CASE("what cannot be read is asked again, and counts as an empty answer at last") {
    Scene scene;
    answers::SingleShotTask two = one_file();
    two.expected.push_back("rtl/b.sv");
    const auto report = scene.ask([](std::size_t) { return says("no braces"); }, two);
    REQUIRE(report.ok());
    CHECK(report->program->exit_code == 0);
    CHECK(scene.heard.size() == 3);
    CHECK(scene.workspace.files == std::map<std::string, std::string>{{"subjective.txt", "{}"}});
  }

  TEST_CASE("a provider without room is overload, one that fails may heal, one that refuses not") {
    struct Row {
      int status;
      std::size_t asked;
      std::optional<Errc> error;
      const char* lack;
    };
    for (const Row& row : {Row{429, 3, std::nullopt, "429"}, Row{500, 3, std::nullopt, "500"},
                           Row{401, 1, std::nullopt, "401"}, Row{404, 1, std::nullopt, "404"},
                           Row{422, 1, Errc::kInvalid, ""}}) {
      CAPTURE(row.status);
      Scene scene;
      const auto report = scene.ask([&](std::size_t) { return OwnReply{row.status, ""}; });
      CHECK(scene.heard.size() == row.asked);
      CHECK(report.ok() == !row.error);
      if (report.ok()) {
        const bool busy = row.status == 429;
        CHECK(report->program->exit_code == (busy ? kModelBusyExit : 1));
        CHECK(report->no_model.busy == busy);
        CHECK(report->no_model.why == "model m: HTTP status " + std::string(row.lack));
      }
      if (row.error) CHECK(report.error().code == *row.error);
      CHECK(scene.workspace.files.empty());
    }
  }

  TEST_CASE("the gateway's own word ends it, or is waited for without a try of the method's") {
    Scene over;
    const auto stopped = over.ask([](std::size_t) { return own_refusal(401, false); });
    REQUIRE(stopped.ok());
    CHECK(stopped->program->exit_code == 1);
    CHECK(stopped->no_model.why.empty());  // the gateway says whether it was the model
    CHECK(over.heard.size() == 1);
    CHECK(over.text("stderr").find("budget_exceeded: usd") != std::string::npos);
    Scene later;
    const auto answered =
        later.ask([](std::size_t call) { return call < 5 ? own_refusal(429, true) : says("y"); });
    REQUIRE(answered.ok());
    CHECK(answered->program->exit_code == 0);
    CHECK(later.heard.size() == 6);
  }

  TEST_CASE("an answer of more than 16 MiB is none") {
    Scene scene;
    const auto report = scene.ask([](std::size_t call) {
      return call == 0 ? OwnReply{200, std::string(kModelReplyBytes + 1, ' ')} : says("y");
    });
    REQUIRE(report.ok());
    CHECK(scene.heard.size() == 2);
    CHECK(scene.text("stderr").find("larger than 16 MiB") != std::string::npos);
  }

  TEST_CASE("the run's time and its stop end a wait") {
    Scene scene;
    scene.stop.request_stop();
    const auto report = scene.ask([](std::size_t) { return OwnReply{429, ""}; });
    REQUIRE(report.ok());
    CHECK(report->program->end == ExecOutcome::End::kCancelled);
    CHECK(scene.heard.empty());
    Scene under_way;
    const auto cut = under_way.ask([&](std::size_t) {
      under_way.stop.request_stop();
      return OwnReply{};
    });
    REQUIRE(cut.ok());
    CHECK(cut->program->end == ExecOutcome::End::kCancelled);
  }

  TEST_CASE("hostile answers change nothing outside") {
    Scene scene;
    answers::SingleShotTask many = one_file();
    many.expected.clear();
    const std::string answer = Json{
        {"code",
         {{{"../x", "1"}},
          {{"/etc/x", "2"}},
          {{std::string("a\0b", 3), "3"}},
          {{".git/hooks/x", "4"}},
          {{std::string(300, 'n'), "5"}},
          {{"rtl/ok.sv", "6"}}}}}.dump();
    REQUIRE(scene.ask([&](std::size_t) { return says(answer); }, many).ok());
    CHECK(scene.workspace.files == std::map<std::string, std::string>{{"rtl/ok.sv", "6"}});
    const std::string said = scene.text("stderr");
    for (const char* part : {"../x", "/etc/x", "a\\x00b", ".git", "too long"})
      CHECK_MESSAGE(said.find(part) != std::string::npos, said);
  }

  TEST_CASE("given answers are handed in by replicate and cost nothing") {
    Scene scene;
    scene.method.call.model.clear();
    answers::SingleShotTask task = one_file();
    task.given = {answers::GivenText{"```\nfirst\n```"}, answers::GivenFiles{{{"rtl/b.sv", "b"}}},
                  answers::GivenPatch{"diff"}};
    REQUIRE(scene.work(task, 1).ok());
    CHECK(scene.workspace.files["rtl/a.sv"] == "\nfirst\n");
    REQUIRE(scene.work(task, 2).ok());
    CHECK(scene.workspace.files["rtl/b.sv"] == "b");
    REQUIRE(scene.work(task, 3).ok());
    CHECK(scene.workspace.applied == std::vector<std::string>{"diff"});
    CHECK(scene.heard.empty());
    const auto none = scene.work(task, 4);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == Errc::kInvalid);
  }

  TEST_CASE("a judge's reply becomes a score, and what is none is asked again") {
    Scene scene;
    answers::SingleShotTask judge = one_file();
    judge.answer = answers::AnswerKind::kJudgement;
    judge.expected.clear();
    const auto judged = [](std::size_t call) {
      return says(call == 0 ? "very good" : R"({"score": 1.7, "reasoning": "r"})");
    };
    REQUIRE(scene.ask(judged, judge).ok());
    CHECK(scene.workspace.files["judgement.json"] == "{\"score\": 1.0, \"reasoning\": \"r\"}\n");
  }

  TEST_CASE("tasks that are none are refused with their place") {
    struct Row {
      const char* text;
      const char* why;
    };
    for (const Row& row :
         {Row{"[]", "mapping"}, Row{R"({"format": 2})", "format"},
          Row{R"({"format": 1, "answer": "x"})", "answer"},
          Row{R"({"format": 1, "answer": "files", "expected": ["../a"]})", "expected"},
          Row{R"({"format": 1, "answer": "files", "prompt": {"system": "s"}})", "prompt"},
          Row{R"({"format": 1, "answer": "files", "given": []})", "given"},
          Row{R"({"format": 1, "answer": "files", "given": [{"files": {"/a": "x"}}]})",
              "given[0].files"}}) {
      CAPTURE(row.text);
      const auto read = answers::read_task(row.text);
      REQUIRE_FALSE(read.ok());
      CHECK_MESSAGE(read.error().detail.find(row.why) != std::string::npos, read.error().detail);
    }
    const auto back = answers::read_task(answers::write_task(one_file()));
    REQUIRE(back.ok());
    CHECK(back->user == "make it y");
  }
}
