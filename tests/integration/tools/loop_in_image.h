#pragma once
// The reference agent in an image, whoever runs it: what its commands may write, and that commands
// and the worker's own tools read and change each other's files.
#include "tests/integration/tools/loop_scene.h"

namespace proctor::testing {

struct ImageLoopScene : LoopScene {
  ImageLoopScene()
      : LoopScene(in_order(
            {chat_asks({{"shell", {{"command", "echo no > calc.sh; echo home > ~/kept; pwd"}}},
                        go_on_to("write"),
                        kFix,
                        {"write_file", {{"path", "by/tool.txt"}, {"content", "one\n"}}},
                        go_on_to("test")}),
             chat_asks({{"shell",
                         {{"command",
                           "sh calc.sh 20 3; cat ~/kept; echo two >> by/tool.txt; umask 077; "
                           "mkdir own; echo three > own/file.txt; sleep 600 & ls /proctor"}}},
                        {"read_file", {{"path", "by/tool.txt"}}},
                        {"edit_file",
                         {{"path", "own/file.txt"}, {"old_text", "three"}, {"new_text", "four"}}},
                        {"shell", {{"command", "cat own/file.txt; rm -r own by"}}}}),
             chat_asks({{"submit"}})})) {}

  void is_solved_in(const std::string& image, const std::string& kind) {
    contract.environment.image = image;
    contract.environment.variables["PATH"] = "/usr/bin:/bin";
    const Ended e = run(loop());
    CAPTURE(e.result.rationale);
    CAPTURE(e.complained);
    CAPTURE(log());
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.usage.model_calls == 3);
    REQUIRE(provider.heard().size() == 3);
    const std::vector<std::string> t = told();
    REQUIRE(t.size() == 9);
    CHECK_MESSAGE(holds(t[0], "Read-only file system"), t[0]);
    CHECK_MESSAGE(holds(t[0], "\n/workspace\n"), t[0]);
    CHECK_MESSAGE(holds(t[5], "exit code 0\n[stdout]\n23\nhome\n"), t[5]);
    CHECK_FALSE(holds(t[5], "gateway"));
    CHECK_MESSAGE(t[6] == "1\tone\n2\ttwo\n", t[6]);
    CHECK_MESSAGE(holds(t[8], "exit code 0\n[stdout]\nfour\n"), t[8]);
    CHECK(holds(e.patch, "+echo $(($1 + $2))"));
    CHECK_FALSE(holds(e.patch, "by/tool.txt"));
    const Json manifest = parse_json(read_file(got() / "manifest.json", 1 << 20).value()).value();
    CHECK(manifest["environment"]["sandbox"] == kind);
    is_verified();
  }
};

// A program in an image that has no workspace of its own and works by the tools, whose commands run
// beside it.
struct ImageAgentScene : LoopScene {
  ImageAgentScene() : LoopScene(in_order({chat_asks({{"submit"}})})) {}

  void is_solved_in(const std::string& image) {
    contract.environment.image = image;
    contract.environment.variables["PATH"] = "/usr/bin:/bin";
    Method m = method("agent", Method::Kind::kCommand,
                      "test -z \"$(ls -A)\" || exit 2; echo own > own.txt\n"
                      "$PROCTOR_MCP < \"$PROCTOR_METHOD/lines\"");
    m.gateway.emplace();
    m.gateway->models = {{"big", "acme", {}, {}}};
    m.gateway->tools = MethodGateway::Tools::kEnforced;
    std::string lines;
    for (const Asks& asks :
         {Asks{"shell", {{"command", "echo no > calc.sh"}}}, go_on_to("write"), kFix,
          go_on_to("test"), Asks{"shell", {{"command", "sh calc.sh 20 3; ls"}}}})
      lines += Json{{"jsonrpc", "2.0"},
                    {"id", 1},
                    {"method", "tools/call"},
                    {"params", {{"name", asks.tool}, {"arguments", asks.arguments}}}}
                   .dump() +
               "\n";
    m.files = {{"lines", 0644, lines}};
    m.digest = digest_of(m);
    const Ended e = run(m);
    CAPTURE(e.result.rationale);
    CAPTURE(e.complained);
    CAPTURE(e.said);
    CAPTURE(log());
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(holds(e.said, "Read-only file system"));
    CHECK(holds(e.said, "[stdout]\\n23\\n"));
    CHECK_FALSE(holds(e.said, "own.txt"));
    CHECK(holds(e.patch, "+echo $(($1 + $2))"));
    CHECK(e.result.usage.tool_calls == 6);
    is_verified();
  }
};

}  // namespace proctor::testing
