// The agent that asks a model once: what it reserves, how often it asks, what it writes.
#include "worker/model/single_shot.h"

#include <doctest/doctest.h>

#include "common/base/json.h"
#include "common/base/overload.h"
#include "common/cvdp/single_shot.h"
#include "tests/support/chat_server.h"
#include "tests/support/fake_workspace.h"
#include "worker/model/call_rules.h"

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

cvdp::SingleShotTask one_file() {
  cvdp::SingleShotTask task;
  task.expected = {"rtl/a.sv"};
  task.system = "be good";
  task.user = "make it y";
  return task;
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
  Result<AgentReport> work(const cvdp::SingleShotTask& task, std::uint32_t replicate = 1) {
    contract.files = {{contract.single_shot, 0644, cvdp::write_task(task)}};
    AgentJob job{contract,     method,
                 workspace,    engine,
                 {},           "",
                 "t/model/r1", 1,
                 replicate,    30s,
                 temp.path(),  temp.path(),
                 [] {},        [this](const ToolUse& u) { uses.push_back(u); }};
    const auto meter = [this](const MeteredCall& call) { return act(call); };
    return make_single_shot({&models, meter})->work(job, stop.get_token());
  }
  Result<AgentReport> ask(const ChatServer& server, const cvdp::SingleShotTask& task = one_file()) {
    models["m"].url = server.url();
    models["m"].backoff = 1ms;
    return work(task);
  }
  Result<MeterAnswer> act(const MeteredCall& call) {
    calls.push_back(call);
    if (std::holds_alternative<MeterReserve>(call)) {
      if (denied) return MeterAnswer(*denied);
      return MeterAnswer(MeterGranted{});
    }
    return MeterAnswer(MeterReleased{});
  }
  std::string text(const char* name) const {
    return read_file(temp.path() / name, 1 << 20).value();
  }
  template <class T>
  std::vector<T> metered() const {
    std::vector<T> out;
    for (const MeteredCall& c : calls)
      if (const auto* one = std::get_if<T>(&c)) out.push_back(*one);
    return out;
  }

  Contract contract;
  Method method;
  FakeWorkspace workspace;
  NoEngine engine;
  ModelsFile models;
  TempDir temp = TempDir::create("proctor-model").value();
  std::vector<ToolUse> uses;
  std::vector<MeteredCall> calls;
  std::optional<MeterDenied> denied;
  std::stop_source stop;
};

}  // namespace

TEST_SUITE("single shot") {
  TEST_CASE("an answer becomes the file it was asked for, and costs what the provider says") {
    Scene scene;
    const ChatServer server(
        [](const Json&, std::size_t) { return chat_says("Sure:\n```verilog\ny\n```", 40, 9); });
    const auto report = scene.ask(server);
    REQUIRE(report.ok());
    CHECK(report->program->exit_code == 0);
    CHECK(scene.workspace.files == std::map<std::string, std::string>{{"rtl/a.sv", "y\n"}});
    const auto reserved = scene.metered<MeterReserve>();
    REQUIRE(reserved.size() == 1);
    CHECK(reserved[0].action.model == "m");
    CHECK(reserved[0].most.input_tokens == std::string("be goodmake it y").size() + 64);
    CHECK(reserved[0].most.output_tokens == 16'384);
    CHECK(reserved[0].witness == Witness::kMeasured);
    const auto charged = scene.metered<MeterCharge>();
    REQUIRE(charged.size() == 1);
    CHECK(charged[0].actual.input_tokens == 40);
    CHECK(charged[0].actual.output_tokens == 9);
    CHECK(scene.text("stdout") == "Sure:\n```verilog\ny\n```");
    CHECK(scene.text("answer.json") == "{\"files\": {\"rtl/a.sv\": \"y\\n\"}, \"refused\": []}\n");
    CHECK(scene.text("call-1.reply").find("Sure") != std::string::npos);
    CHECK(parse_json(scene.text("call-1.request.json"))->at("model") == "m");
    REQUIRE(scene.uses.size() == 1);
    CHECK(scene.uses[0].tool == "model");
  }

  TEST_CASE("without the provider's word a call costs its ceiling, and a refused one nothing") {
    Scene scene;
    const ChatServer server([](const Json&, std::size_t call) {
      return call == 0 ? ChatAnswer{429, ""} : call == 1 ? ChatAnswer{500, ""} : chat_says("y");
    });
    REQUIRE(scene.ask(server).ok());
    CHECK(scene.metered<MeterReserve>().size() == 3);
    CHECK(scene.metered<MeterRelease>().size() == 1);
    const auto charged = scene.metered<MeterCharge>();
    REQUIRE(charged.size() == 2);
    for (const MeterCharge& c : charged) CHECK(c.unknown);
    CHECK(scene.text("stderr").find("call 1: HTTP status 429") != std::string::npos);
  }

  TEST_CASE("what cannot be read is asked again, and counts as an empty answer at last") {
    Scene scene;
    cvdp::SingleShotTask two = one_file();
    two.expected.push_back("rtl/b.sv");
    const ChatServer server([](const Json&, std::size_t) { return chat_says("no braces", 1, 1); });
    const auto report = scene.ask(server, two);
    REQUIRE(report.ok());
    CHECK(report->program->exit_code == 0);
    CHECK(server.heard().size() == 3);
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
      const ChatServer server([&](const Json&, std::size_t) { return ChatAnswer{row.status, ""}; });
      const auto report = scene.ask(server);
      CHECK(server.heard().size() == row.asked);
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

  TEST_CASE("no call is made without leave") {
    const ChatServer server([](const Json&, std::size_t) { return chat_says("y"); });
    Scene over;
    over.denied = MeterDenied{"usd", 1, 0, true, "budget_exceeded: usd"};
    const auto stopped = over.ask(server);
    REQUIRE(stopped.ok());
    CHECK(stopped->program->exit_code == 1);
    CHECK(over.text("stderr") == "budget_exceeded: usd\n");
    Scene large;
    large.denied = MeterDenied{"tokens", 1, 0, false, "larger than the cap"};
    const auto refused = large.ask(server);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::kInvalid);
    CHECK(server.heard().empty());
  }

  TEST_CASE("the run's time and its stop end a wait") {
    const ChatServer server([](const Json&, std::size_t) { return ChatAnswer{429, ""}; });
    Scene scene;
    scene.stop.request_stop();
    const auto report = scene.ask(server);
    REQUIRE(report.ok());
    CHECK(report->program->end == ExecOutcome::End::kCancelled);
    CHECK(server.heard().empty());
  }

  TEST_CASE("hostile answers change nothing outside") {
    Scene scene;
    cvdp::SingleShotTask many = one_file();
    many.expected.clear();
    const std::string answer = Json{
        {"code",
         {{{"../x", "1"}},
          {{"/etc/x", "2"}},
          {{std::string("a\0b", 3), "3"}},
          {{".git/hooks/x", "4"}},
          {{std::string(300, 'n'), "5"}},
          {{"rtl/ok.sv", "6"}}}}}.dump();
    const ChatServer server([&](const Json&, std::size_t) { return chat_says(answer, 1, 1); });
    REQUIRE(scene.ask(server, many).ok());
    CHECK(scene.workspace.files == std::map<std::string, std::string>{{"rtl/ok.sv", "6"}});
    const std::string said = scene.text("stderr");
    for (const char* part : {"../x", "/etc/x", "a\\x00b", ".git", "too long"})
      CHECK_MESSAGE(said.find(part) != std::string::npos, said);
  }

  TEST_CASE("given answers are handed in by replicate and cost nothing") {
    Scene scene;
    scene.method.call.model.clear();
    cvdp::SingleShotTask task = one_file();
    task.given = {cvdp::GivenText{"```\nfirst\n```"}, cvdp::GivenFiles{{{"rtl/b.sv", "b"}}},
                  cvdp::GivenPatch{"diff"}};
    REQUIRE(scene.work(task, 1).ok());
    CHECK(scene.workspace.files["rtl/a.sv"] == "\nfirst\n");
    REQUIRE(scene.work(task, 2).ok());
    CHECK(scene.workspace.files["rtl/b.sv"] == "b");
    REQUIRE(scene.work(task, 3).ok());
    CHECK(scene.workspace.applied == std::vector<std::string>{"diff"});
    CHECK(scene.calls.empty());
    const auto none = scene.work(task, 4);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == Errc::kInvalid);
  }

  TEST_CASE("a worker that does not know the model leaves it to another") {
    Scene scene;
    const auto report = scene.work(one_file());
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().code == Errc::kUnavailable);
  }

  TEST_CASE("a judge's reply becomes a score, and what is none is asked again") {
    Scene scene;
    cvdp::SingleShotTask judge = one_file();
    judge.answer = cvdp::AnswerKind::kJudgement;
    judge.expected.clear();
    const ChatServer server([](const Json&, std::size_t call) {
      return chat_says(call == 0 ? "very good" : R"({"score": 1.7, "reasoning": "r"})", 1, 1);
    });
    REQUIRE(scene.ask(server, judge).ok());
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
      const auto read = cvdp::read_task(row.text);
      REQUIRE_FALSE(read.ok());
      CHECK_MESSAGE(read.error().detail.find(row.why) != std::string::npos, read.error().detail);
    }
    const auto back = cvdp::read_task(cvdp::write_task(one_file()));
    REQUIRE(back.ok());
    CHECK(back->user == "make it y");
  }
}
