#include "worker/agent/agent.h"

#include <doctest/doctest.h>

#include "tests/support/fake_workspace.h"

namespace {

using namespace proctor;
using proctor::testing::FakeWorkspace;

struct FakeEngine final : SandboxEngine {
  struct Box final : Sandbox {
    explicit Box(FakeEngine& e) : engine(e) {}
    Result<ExecOutcome> run(const ExecSpec& spec, std::stop_token cancel) override {
      engine.ran.push_back(spec);
      engine.cancellable = cancel.stop_possible();
      // What the program would see, while it is there to be seen.
      for (const SandboxMount& m : engine.opened.back().mounts) {
        for (const auto& entry : fs::recursive_directory_iterator(m.host)) {
          if (!entry.is_regular_file()) continue;
          engine.seen[m.at + "/" + fs::relative(entry.path(), m.host).string()] =
              read_file(entry.path(), 1 << 20).value();
          engine.writable = engine.writable || m.writable;
        }
      }
      if (engine.host_fails) return Error{Errc::kUnavailable, "engine gone"};
      return engine.outcome;
    }
    FakeEngine& engine;
  };
  SandboxKind kind() const override { return SandboxKind::kBubblewrap; }
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    opened.push_back(spec);
    return std::unique_ptr<Sandbox>(std::make_unique<Box>(*this));
  }
  std::map<std::string, std::string> enforcement() const override { return {}; }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }

  std::vector<SandboxSpec> opened;
  std::vector<ExecSpec> ran;
  std::map<std::string, std::string> seen;
  ExecOutcome outcome;
  bool host_fails = false, writable = false, cancellable = false;
};

struct Scene {
  Scene() {
    contract.id = "fix-parser";
    contract.files = {{"ref/fix.patch", 0644, "diff --git a/x b/x\n"}};
    contract.reference_patch = "ref/fix.patch";
    method.name = "scripted";
    method.command = "python3 $PROCTOR_METHOD/solve.py";
    method.variables = {{"MODE", "fast"}, {"PROCTOR_TASK", "forged"}};
    method.files = {{"solve.py", 0755, "print()\n"}, {"lib/a.txt", 0644, "a"}};
  }
  AgentJob job() {
    AgentJob j{contract,
               method,
               workspace,
               engine,
               {},
               "briefing text",
               "fix-parser/scripted/r2",
               77,
               2,
               std::chrono::milliseconds(1500),
               temp.path(),
               temp.path(),
               [this] { ++sandboxes; },
               [this](const ToolUse& use) { uses.push_back(use); }};
    j.sandbox.env = {{"LANG", "C.UTF-8"}};
    return j;
  }
  Contract contract;
  Method method;
  FakeWorkspace workspace;
  FakeEngine engine;
  TempDir temp = TempDir::create("proctor-agent").value();
  std::vector<ToolUse> uses;
  int sandboxes = 0;
  std::stop_source stop;
};

}  // namespace

TEST_SUITE("agent") {
  TEST_CASE("noop touches nothing and runs nothing") {
    Scene scene;
    const auto report = make_agent(Method::Kind::kNoop)->work(scene.job(), {});
    REQUIRE(report.ok());
    CHECK_FALSE(report->program.has_value());
    CHECK(scene.engine.opened.empty());
    CHECK(scene.workspace.applied.empty());
  }

  TEST_CASE("reference applies the contract's patch on the host and opens no sandbox") {
    Scene scene;
    const auto report = make_agent(Method::Kind::kReference)->work(scene.job(), {});
    REQUIRE(report.ok());
    CHECK(scene.workspace.applied == std::vector<std::string>{"diff --git a/x b/x\n"});
    CHECK(scene.engine.opened.empty());
  }

  TEST_CASE("a reference patch that does not apply is told and one that is not there is refused") {
    Scene scene;
    auto agent = make_agent(Method::Kind::kReference);
    scene.workspace.rung = ApplyRung::kThreeWay;
    auto report = agent->work(scene.job(), {});
    REQUIRE(report.ok());
    REQUIRE(report->applied);
    CHECK(report->applied->rung == ApplyRung::kThreeWay);
    CHECK(report->misfit.empty());
    scene.workspace.refuse = true;
    report = agent->work(scene.job(), {});
    REQUIRE(report.ok());
    CHECK_FALSE(report->applied);
    CHECK(report->misfit == "reference patch ref/fix.patch: hunk 1 does not match");
    for (const char* name : {"", "ref/other.patch"}) {
      scene.contract.reference_patch = name;
      report = agent->work(scene.job(), {});
      REQUIRE_FALSE(report.ok());
      CHECK(report.error().code == Errc::kInvalid);
    }
  }

  TEST_CASE("a command sees its briefing and files and variables and reports one tool use") {
    Scene scene;
    scene.engine.outcome.exit_code = 3;
    const auto report =
        make_agent(Method::Kind::kCommand)->work(scene.job(), scene.stop.get_token());
    REQUIRE(report.ok());
    REQUIRE(report->program.has_value());
    CHECK(report->program->exit_code == 3);  // what the program does is a report, not an error
    REQUIRE(scene.engine.opened.size() == 1);
    const auto& env = scene.engine.opened[0].env;
    CHECK(env.at("LANG") == "C.UTF-8");
    CHECK(env.at("MODE") == "fast");
    CHECK(env.at("PROCTOR_TASK") == "fix-parser");  // a method cannot forge ours
    CHECK(env.at("PROCTOR_RUN") == "fix-parser/scripted/r2");
    CHECK(env.at("PROCTOR_REPLICATE") == "2");
    CHECK(env.at("PROCTOR_BRIEFING") == "briefing text");
    CHECK(scene.engine.seen.at(env.at("PROCTOR_BRIEFING_FILE")) == "briefing text");
    CHECK(scene.engine.seen.at(env.at("PROCTOR_METHOD") + "/solve.py") == "print()\n");
    CHECK(scene.engine.seen.at(env.at("PROCTOR_METHOD") + "/lib/a.txt") == "a");
    CHECK_FALSE(scene.engine.writable);
    CHECK(scene.engine.cancellable);
    REQUIRE(scene.engine.ran.size() == 1);
    CHECK(scene.engine.ran[0].timeout == std::chrono::milliseconds(1500));
    REQUIRE(scene.uses.size() == 1);
    CHECK(scene.uses[0].command == scene.method.command);
    CHECK(scene.sandboxes == 1);
  }

  TEST_CASE("nothing of the contract's acceptance is in a command's sandbox") {
    Scene scene;
    REQUIRE(make_agent(Method::Kind::kCommand)->work(scene.job(), {}).ok());
    for (const auto& [path, bytes] : scene.engine.seen) {
      CAPTURE(path);
      CHECK(bytes.find("diff --git") == std::string::npos);
    }
    CHECK(scene.engine.seen.size() == 3);
  }

  TEST_CASE("a long briefing is whole in the file and cut between characters in the variable") {
    Scene scene;
    AgentJob job = scene.job();
    job.briefing = "x";
    while (job.briefing.size() < 2 * kBriefingVariableBytes) job.briefing += "\xC3\xA9";  // e acute
    REQUIRE(make_agent(Method::Kind::kCommand)->work(job, {}).ok());
    const auto& env = scene.engine.opened[0].env;
    CHECK(env.at("PROCTOR_BRIEFING").size() == kBriefingVariableBytes - 1);
    CHECK(scene.engine.seen.at(env.at("PROCTOR_BRIEFING_FILE")) == job.briefing);
  }

  TEST_CASE("a host that fails under a command is an error and not a tool use") {
    Scene scene;
    scene.engine.host_fails = true;
    const auto report = make_agent(Method::Kind::kCommand)->work(scene.job(), {});
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().code == Errc::kUnavailable);
    CHECK(scene.uses.empty());
  }

  TEST_CASE("a file of a method that would leave its folder is refused") {
    Scene scene;
    scene.method.files = {{"../escape", 0644, "x"}};
    const auto report = make_agent(Method::Kind::kCommand)->work(scene.job(), {});
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().code == Errc::kInvalid);
    CHECK_FALSE(fs::exists(scene.temp.path() / "escape"));
    CHECK(scene.engine.ran.empty());
  }

  TEST_CASE("a program takes the time that the budget allows and without any it does not start") {
    Scene scene;
    AgentJob job = scene.job();
    job.sandbox.env["PROCTOR_METER"] = "/proctor/meter/socket";
    scene.method.variables["PROCTOR_METER"] = "/workspace/forged";
    job.start_program = [] { return std::optional(std::chrono::milliseconds(70)); };
    REQUIRE(make_agent(Method::Kind::kCommand)->work(job, {}).ok());
    CHECK(scene.engine.ran.at(0).timeout == std::chrono::milliseconds(70));
    CHECK(scene.engine.opened.at(0).env.at("PROCTOR_METER") == "/proctor/meter/socket");
    job.start_program = [] { return std::optional<std::chrono::milliseconds>(); };
    const auto report = make_agent(Method::Kind::kCommand)->work(job, {});
    REQUIRE(report.ok());
    CHECK_FALSE(report->program.has_value());
    CHECK(scene.engine.ran.size() == 1);
  }
}
