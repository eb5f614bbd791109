#include <doctest/doctest.h>

#include "worker/tools/tool_session.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;

// A run whose meter, sandbox and trace write down what they are asked.
class RunScene {
 public:
  explicit RunScene(ToolSessionRules rules = {}) : dir_(TempDir::create("tools").value()) {
    ToolHooks hooks;
    hooks.reserve = [this](const std::string& id, const ToolKind&,
                           milliseconds most) -> std::optional<ToolRefusal> {
      if (no) return no;
      open.push_back(id);
      asked = most;
      return std::nullopt;
    };
    hooks.charge = [this](const std::string& id, const ToolKind&, milliseconds used,
                          std::optional<bool> failed) {
      if (failed) suites_failed.push_back(*failed);
      REQUIRE(open.size() == 1);
      CHECK(open.front() == id);
      open.clear();
      charged += used;
    };
    hooks.note = [this](std::string_view type, const Json& payload) {
      CHECK(canonical_json(payload).ok());
      events.emplace_back(type, payload);
      return hears ? hears(type) : ToolHeard{};
    };
    hooks.status = [] { return std::string("tool calls: 3 of 10"); };
    hooks.shell = [this](const std::string& command, bool writes,
                         milliseconds) -> Result<ProgramRun> {
      commands.emplace_back(command, writes);
      now += milliseconds(250);
      return ran;
    };
    hooks.state = [] { return std::string("state-1"); };
    hooks.wait = [this](milliseconds ms) { waited += ms; };
    hooks.now = [this] { return now; };
    hooks.command = [this](const std::string& id, const std::string& command) {
      handed.emplace_back(id, command, types().back());
    };
    files = std::make_unique<WorkspaceTools>(WorkspaceTools::open(dir_.path(), {}).value());
    session = std::make_unique<ToolSession>(std::move(rules), *files, std::move(hooks));
  }

  McpResult call(std::string_view tool, const Json& arguments = Json::object()) const {
    return session->call({Json(1U), false, std::string(tool), arguments});
  }
  std::vector<std::string> types() const {
    std::vector<std::string> out;
    for (const auto& [type, payload] : events) out.push_back(type);
    return out;
  }

  std::vector<std::pair<std::string, Json>> events;
  std::vector<std::pair<std::string, bool>> commands;
  // To the shell: id, command, and the event before it.
  std::vector<std::tuple<std::string, std::string, std::string>> handed;
  std::vector<std::string> open;
  std::optional<ToolRefusal> no;
  std::function<ToolHeard(std::string_view)> hears;
  Result<ProgramRun> ran = ProgramRun{0, "out", ""};
  milliseconds now{0}, waited{0}, charged{0}, asked{0};
  std::vector<bool> suites_failed;  // of those that were run
  std::unique_ptr<WorkspaceTools> files;
  std::unique_ptr<ToolSession> session;

 private:
  TempDir dir_;
};

const Json kToWrite = {{"to", "write"}, {"reason", "r"}},
           kToTest = {{"to", "test"}, {"reason", "r"}};
const Json kWrite = {{"path", "a.txt"}, {"content", "x\n"}};
using Types = std::vector<std::string>;

}  // namespace

TEST_SUITE("tool session") {
  TEST_CASE("a call is reserved, told, done, charged and told") {
    RunScene scene;
    CHECK(scene.call("list_dir").text == "[nothing is in it]\n");
    CHECK(scene.open.empty());
    CHECK(scene.types() == Types{"tool.call", "tool.result"});
    const Json& asked = scene.events[0].second;
    CHECK(asked.at("id") == "t1");
    CHECK(asked.at("tool") == "list_dir");
    CHECK(asked.at("arguments") == "{}");
    CHECK(asked.at("arguments_digest") == sha256("{}").hex());
    CHECK(asked.at("stage") == "read");
    const Json& told = scene.events[1].second;
    CHECK(told.at("id") == "t1");
    CHECK(told.at("ok") == true);
    CHECK(told.at("refused") == false);
    CHECK(told.at("exit").is_null());
    CHECK(told.at("state") == "state-1");
    CHECK(told.at("output") == "[nothing is in it]\n");
    CHECK(told.at("changes") == Json::array());
  }

  TEST_CASE("a command that the agent hands to its shell is told before it runs, and no other") {
    ToolSessionRules rules;
    rules.suites = {{"own", "make test"}};
    RunScene scene(rules);
    scene.call("shell", {{"command", "rm -rf /"}});
    scene.call("advance_stage", kToWrite);
    scene.call("write_file", kWrite);
    scene.call("advance_stage", kToTest);
    scene.call("run_tests");
    scene.call("shell", {{"command", 5}});
    scene.no = ToolRefusal{"tool_calls", "no more", true, 0};
    scene.call("shell", {{"command", "sudo"}});
    CHECK(scene.commands.size() == 2);
    using Handed = std::vector<std::tuple<std::string, std::string, std::string>>;
    CHECK(scene.handed == Handed{{"t1", "rm -rf /", "tool.call"}});
  }

  TEST_CASE("a stage that was not reached refuses, in a result that says how to get there") {
    RunScene scene;
    const McpResult no = scene.call("write_file", kWrite);
    CHECK(no.failed);
    CHECK(no.text.find("call advance_stage") != std::string::npos);
    CHECK(scene.events[1].second.at("refused") == true);
    CHECK(scene.call("advance_stage", kToWrite).text == "The stage is \"write\" now.");
    CHECK(scene.types() ==
          Types{"tool.call", "tool.result", "tool.call", "stage.changed", "tool.result"});
    const McpResult done = scene.call("write_file", kWrite);
    CHECK_FALSE(done.failed);
    const Json& change = scene.events.back().second.at("changes").at(0);
    CHECK(change.at("path") == "a.txt");
    CHECK(change.at("before").is_null());
    CHECK(change.at("after") == sha256("x\n").hex());
    CHECK(scene.session->refused() == 1);
    CHECK(scene.open.empty());
  }

  TEST_CASE("a command sees a workspace that it may write in the last stage alone") {
    RunScene scene;
    scene.ran = ProgramRun{3, "out", "err\n"};
    const McpResult done = scene.call("shell", {{"command", "make"}, {"timeout_ms", 5'000U}});
    CHECK(done.failed);
    CHECK(done.text == "exit code 3\n[stdout]\nout\n[stderr]\nerr\n");
    CHECK(scene.asked == milliseconds(5'000));
    CHECK(scene.charged == milliseconds(250));
    CHECK(scene.events[1].second.at("exit") == 3);
    CHECK(scene.events[1].second.at("wall_ms") == 250U);
    scene.call("advance_stage", kToWrite);
    scene.call("shell", {{"command", "make"}});
    CHECK(scene.asked == milliseconds(120'000));
    scene.call("advance_stage", kToTest);
    scene.ran = ProgramRun{std::nullopt, "", ""};
    CHECK(scene.call("shell", {{"command", "make"}}).text == "ended after 120000 ms\n");
    scene.ran = Error{Errc::kUnavailable, "no sandbox"};
    CHECK(scene.call("shell", {{"command", "make"}}).text.find("could not be run: no sandbox") !=
          std::string::npos);
    using Commands = std::vector<std::pair<std::string, bool>>;
    CHECK(scene.commands ==
          Commands{{"make", false}, {"make", false}, {"make", true}, {"make", true}});
    CHECK(scene.open.empty());
  }

  TEST_CASE("tests are the task's, by their names, and of a stage of their own") {
    ToolSessionRules rules;
    rules.suites = {{"unit", "make unit"}, {"lint", "make lint"}};
    RunScene scene(rules);
    CHECK(scene.call("run_tests").failed);
    CHECK(scene.commands.empty());
    scene.call("advance_stage", kToTest);
    CHECK_FALSE(scene.call("run_tests").failed);
    CHECK_FALSE(scene.call("run_tests", {{"name", "lint"}}).failed);
    CHECK(scene.call("run_tests", {{"name", "rm"}}).text.find("unit, lint") != std::string::npos);
    REQUIRE(scene.commands.size() == 2);
    CHECK(scene.commands[0].first == "make unit");
    CHECK(scene.commands[1].first == "make lint");
    CHECK(scene.suites_failed == std::vector<bool>{false, false});  // and none where none was run
    scene.ran = ProgramRun{1, "", ""};
    scene.call("run_tests");
    scene.call("shell", {{"command", "make"}});
    CHECK(scene.suites_failed == std::vector<bool>{false, false, true});
    RunScene none;
    none.call("advance_stage", kToTest);
    CHECK(none.call("run_tests").text == "the task names no tests");
  }

  TEST_CASE("a cap refuses by a result, for good without asking again") {
    RunScene scene;
    scene.no = ToolRefusal{"calls_per_minute", "10 calls a minute", false, 1};
    const McpResult later = scene.call("list_dir");
    CHECK(later.failed);
    CHECK(later.structured.at("refused").at("final") == false);
    scene.no.reset();
    CHECK_FALSE(scene.call("list_dir").failed);
    scene.no = ToolRefusal{"tool_calls", "tool_calls: 200 of 200 used", true, 1};
    const McpResult no = scene.call("list_dir");
    CHECK(no.text ==
          "Refused: tool_calls: 200 of 200 used. Nothing more will be granted; finish your work "
          "now.");
    CHECK(no.structured ==
          Json{{"refused", {{"cap", "tool_calls"}, {"final", true}, {"short_by", 1U}}}});
    scene.no.reset();
    const std::size_t events = scene.events.size();
    for (int i = 0; i < 100; ++i) CHECK(scene.call("list_dir").text == no.text);
    CHECK(scene.events.size() == events);
    // What costs nothing still answers.
    CHECK(scene.call("status").text == "stage: read\ntool calls: 3 of 10");
    CHECK(scene.session->refused() == 102);
    CHECK(scene.events.back().first == "tool.refused");
  }

  TEST_CASE("arguments that are none cost a call and are told") {
    RunScene scene;
    const McpResult no = scene.call("read_file", {{"path", "../x"}, {"offset", 1.5}});
    CHECK(no.failed);
    CHECK(scene.events[0].second.at("arguments") == R"({"offset":1.5,"path":"../x"})");
    CHECK(scene.events[1].second.at("ok") == false);
    CHECK(scene.session->calls() == 1);
    CHECK(scene.open.empty());
    // Of large ones the beginning and the digest.
    scene.call("write_file", {{"path", "a"}, {"content", std::string(200'000, 'x')}});
    CHECK(scene.events[2].second.at("arguments").get<std::string>().size() == 65'536);
  }

  TEST_CASE("a breaker suspends writing and slows down, and the answer says so") {
    RunScene scene;
    scene.call("advance_stage", kToWrite);
    scene.hears = [](std::string_view type) {
      return type == "tool.result" ? ToolHeard{"5 edits did not apply", true, milliseconds(4'000)}
                                   : ToolHeard{};
    };
    scene.events.clear();
    const McpResult last = scene.call("write_file", kWrite);
    CHECK_FALSE(last.failed);
    CHECK(last.text.find("Writing is suspended: 5 edits did not apply") != std::string::npos);
    CHECK(last.text.find("[waited 4 s: 5 edits did not apply]") != std::string::npos);
    CHECK(scene.waited == milliseconds(4'000));
    CHECK(scene.types() == Types{"tool.call", "tool.result", "stage.changed"});
    CHECK(scene.events.back().second.at("by") == "breaker");
    scene.hears = nullptr;
    CHECK(scene.call("write_file", kWrite).failed);
    for (int i = 0; i < 3; ++i) scene.call("list_dir");
    CHECK(scene.call("advance_stage", kToWrite).failed);
    scene.now += milliseconds(10'000);
    CHECK_FALSE(scene.call("advance_stage", kToWrite).failed);
    CHECK_FALSE(scene.call("write_file", kWrite).failed);
  }

  TEST_CASE("nothing is done after the work was handed in") {
    RunScene scene;
    CHECK_FALSE(scene.session->submitted());
    CHECK(scene.call("submit", {{"note", "done"}}).text == "The work is handed in.");
    CHECK(scene.session->submitted());
    const std::size_t events = scene.events.size();
    CHECK(scene.call("shell", {{"command", "make"}}).failed);
    CHECK(scene.call("status").failed);
    CHECK(scene.commands.empty());
    CHECK(scene.events.size() == events);
  }
}

}  // namespace proctor
