// A real worker and a real sandbox: an agent in it that works by the worker's tools, over MCP.
#include "tests/integration/tools/loop_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

using Mode = MethodGateway::Tools;

std::string request(int id, std::string_view method, const Json& params = Json::object()) {
  return Json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}.dump() + "\n";
}
std::string call(int id, const Asks& asks) {
  return request(id, "tools/call", {{"name", asks.tool}, {"arguments", asks.arguments}});
}

// An agent that says all of this to its MCP server, and then what it heard.
struct AgentScene : LoopScene {
  AgentScene() : LoopScene(in_order({chat_asks({{"submit"}})})) {}
  Method speaking(Mode mode, const std::string& lines, const std::string& first = "",
                  const std::string& after = "cat ~/answers") {
    Method m = method("agent", Method::Kind::kCommand);
    m.files = {{"lines", 0644, lines}};
    m.command =
        first + "\n$PROCTOR_MCP < \"$PROCTOR_METHOD/lines\" > ~/answers || exit 3\n" + after;
    m.gateway.emplace();
    m.gateway->models = {{"big", "acme", {}, {}}};
    m.gateway->tools = mode;
    m.digest = digest_of(m);
    return m;
  }
  static std::map<int, Json> answers(const std::string& said) {
    std::map<int, Json> out;
    std::size_t from = 0;
    for (std::size_t end = said.find('\n'); end != std::string::npos; end = said.find('\n', from)) {
      const auto line = parse_json(said.substr(from, end - from));
      from = end + 1;
      if (line.ok() && line->contains("id") && line->at("id").is_number())
        out[line->at("id").get<int>()] = *line;
    }
    return out;
  }
  static std::string text(const Json& answer) {
    return answer.at("result").at("content").at(0).at("text").get<std::string>();
  }
};

}  // namespace

TEST_SUITE("agent tools worker") {
  TEST_CASE("an agent without the workspace solves its task by MCP, in both eras of it") {
    AgentScene scene;
    const Json meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}};
    const std::string lines =
        request(0, "initialize", {{"protocolVersion", "2025-06-18"}}) +
        R"({"jsonrpc":"2.0","method":"notifications/initialized"})" + "\n" +
        request(1, "tools/list") + "[]\n" + request(2, "no/such", Json::object()) +
        request(3, "server/discover", {{"_meta", meta}}) +
        call(4, {"shell", {{"command", "echo no > calc.sh; cat calc.sh; ls /proctor; env"}}}) +
        call(5, kFix) + call(6, go_on_to("write")) + call(7, kFix) +
        call(8, {"write_file", {{"path", "tests/t.sh"}, {"content", "true\n"}}}) +
        call(9, go_on_to("test")) +
        request(10, "tools/call",
                {{"_meta", meta},
                 {"name", "shell"},
                 {"arguments", {{"command", "sh calc.sh 20 3; echo kept > ~/of-tools"}}}}) +
        call(11, {"run_tests"}) + call(14, {"status"}) + call(12, {"submit"}) +
        call(13, {"list_dir"});
    scene.contract.suites = {{"own", "sh tests/t.sh && echo passed"}};
    const Method m = scene.speaking(
        Mode::kEnforced, lines,
        "test -z \"$(ls -A)\" || exit 2; echo own > calc.sh; touch /proctor/tools/x && exit 4",
        "cat ~/answers ~/of-tools; grep -c /proctor/tools/socket \"$PROCTOR_MCP_CONFIG\"");
    const auto e = scene.run(m);
    CAPTURE(e.result.rationale);
    CAPTURE(e.said);
    CAPTURE(e.complained);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kCompleted);
    CHECK(e.result.usage.tool_calls == 10);  // its own start is one, and status is none
    CHECK(e.result.usage.reported_calls == 0);
    CHECK(holds(e.said, "\nkept\n1\n"));
    auto told = scene.answers(e.said);
    REQUIRE(told.size() == 15);
    CHECK(told[0].at("result").at("protocolVersion") == "2025-06-18");
    CHECK(told[1].at("result").at("tools").size() == 11);
    CHECK(told[2].at("error").at("code") == -32601);
    CHECK(told[3].at("result").at("supportedVersions").at(0) == "2026-07-28");
    CHECK(holds(e.said, "-32600"));  // of the batch, which has no id
    // Read: nothing of the workspace can be written, and the way to the model is the agent's.
    CHECK_MESSAGE(holds(scene.text(told[4]), "Read-only file system"), told[4].dump());
    CHECK(holds(scene.text(told[4]), "echo $(($1 - $2))"));
    for (const char* hidden : {"gateway", "meter", "tools", "prk1_"})
      CHECK_MESSAGE(!holds(scene.text(told[4]), hidden), hidden);
    CHECK(holds(scene.text(told[5]), "Refused: "));
    CHECK(told[7].at("result").at("isError") == false);
    CHECK(holds(scene.text(told[8]), "protected"));
    CHECK(told[10].at("result").at("resultType") == "complete");
    CHECK(holds(scene.text(told[10]), "exit code 0\n[stdout]\n23\n"));
    CHECK(holds(scene.text(told[11]), "exit code 0\n[stdout]\npassed\n"));
    CHECK(e.result.usage.failed_cycles == 0);
    CHECK(holds(e.events, "acceptance_cycle"));
    CHECK(holds(scene.text(told[14]), "stage: test"));
    CHECK(told[13].at("result").at("structuredContent").at("refused").at("final") == true);
    CHECK(holds(e.patch, "+echo $(($1 + $2))"));
    CHECK_FALSE(holds(e.patch, "own"));
    for (const char* type : {"tools.open", "tool.call", "tool.result", "stage.changed",
                             "tools.closed", "gateway.closed", "meter.closed"})
      CHECK_MESSAGE(holds(e.events, event(type)), type);
    CHECK(holds(e.events, "\"mode\":\"enforced\""));
    scene.is_verified();
  }

  TEST_CASE("a cap on calls of tools is a result that the model reads, and ends the run") {
    AgentScene scene;
    scene.contract.caps.tool_calls = 3;
    std::string lines;
    for (int i = 1; i <= 4; ++i) lines += call(i, {"list_dir"});
    const auto e = scene.run(scene.speaking(
        Mode::kOffered, lines, "test -e calc.sh || exit 2; echo 'echo $(($1 + $2))' > calc.sh"));
    CAPTURE(e.result.rationale);
    CAPTURE(e.said);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(e.result.usage.tool_calls == 3);
    auto told = scene.answers(e.said);
    REQUIRE(told.size() == 4);
    CHECK(told[2].at("result").at("isError") == false);
    const Json refused = told[3].at("result").at("structuredContent").at("refused");
    CHECK(refused.at("cap") == "tool_calls");
    CHECK(refused.at("final") == true);
    CHECK(holds(e.events, event("tool.refused")));
    scene.is_verified();
  }

  TEST_CASE("a command that still runs when its agent has ended is ended with it") {
    AgentScene scene;
    const std::string lines =
        call(1, go_on_to("write")) + call(2, go_on_to("test")) +
        call(3, {"shell", {{"command", "echo begun > begun; exec sleep 600"}}});
    const auto e = scene.run(
        scene.speaking(Mode::kOffered, "",
                       "echo 'echo $(($1 + $2))' > calc.sh; echo '" + lines + "' > ~/lines\n" +
                           "(cat ~/lines; exec sleep 600) | $PROCTOR_MCP > /dev/null &\n"
                           "until [ -e begun ]; do sleep 0.05; done; rm begun"));
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kCompleted);
    CHECK(e.result.usage.agent_ms < 60'000);
    CHECK(holds(e.events, "\"mode\":\"offered\""));
    scene.is_verified();
  }
}
