// A real worker and a real sandbox: a model of our own that works by the worker's tools.
#include "tests/integration/tools/loop_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("tool loop worker") {
  TEST_CASE("a task is solved by tools, and what they did is counted, paid for and on the record") {
    LoopScene scene(in_order(
        {chat_asks({{"list_dir"}, {"read_file", {{"path", "calc.sh"}}}}),
         chat_asks({{"shell", {{"command", "echo overwritten > calc.sh; cat calc.sh"}}},
                    {"write_file", {{"path", "calc.sh"}, {"content", "x"}}},
                    go_on_to("write")}),
         chat_asks({kFix,
                    {"write_file", {{"path", "tests/t.sh"}, {"content", "true\n"}}},
                    go_on_to("test")}),
         chat_asks({{"shell", {{"command", "sh calc.sh 20 3; pwd; ls /proctor; env; id -u"}}},
                    {"shell", {{"command", "ln -s /etc/passwd out; echo more > made.txt"}}},
                    {"read_file", {{"path", "out"}}},
                    {"shell", {{"command", "rm out made.txt"}}},
                    {"status"}}),
         chat_asks({{"submit", {{"note", "done"}}}})}));
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CAPTURE(e.complained);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kCompleted);
    CHECK(scene.provider.heard().size() == 5);
    const Usage& u = e.result.usage;
    CHECK(u.model_calls == 5);
    CHECK(u.priced_micros == 5 * (20 + 300));
    CHECK(u.tool_calls == 14);  // its own start is one, and status is none
    CHECK(u.reported_calls == 0);
    const std::vector<std::string> told = scene.told();
    REQUIRE(told.size() == 13);
    CHECK(holds(told[0], "calc.sh"));
    CHECK(holds(told[1], "1\techo $(($1 - $2))"));
    // Read: nothing of the workspace can be written, by whatever way.
    CHECK(holds(told[2], "Read-only file system"));
    CHECK(holds(told[2], "echo $(($1 - $2))"));
    CHECK(holds(told[3], "Refused: "));
    CHECK(holds(told[6], "protected"));
    CHECK(holds(told[8], "exit code 0"));
    CHECK(holds(told[8], "23\n/workspace"));
    CHECK_FALSE(holds(told[8], "gateway"));
    CHECK_FALSE(holds(told[8], "prk1_"));
    CHECK(holds(told[10], "a link, which is not followed"));
    CHECK(holds(told[12], "stage: test"));
    CHECK(holds(e.patch, "+echo $(($1 + $2))"));
    CHECK_FALSE(holds(e.patch, "made.txt"));
    CHECK_FALSE(holds(e.patch, "tests/t.sh"));
    for (const char* type :
         {"gateway.open", "model.request", "model.response", "tool.call", "tool.result",
          "stage.changed", "tool_loop.closed", "gateway.closed", "meter.closed"})
      CHECK_MESSAGE(holds(e.events, event(type)), type);
    CHECK(holds(e.events, "\"why\":\"submitted\""));
    CHECK(holds(e.said, "t1 list_dir"));
    scene.is_verified();
  }

  TEST_CASE("command patterns find what a model says and what its shell is handed") {
    LoopScene scene(
        in_order({chat_asks({{"shell", {{"command", "echo a; mkfs /dev/none"}}}}),
                  chat_answer("So:\n```\nmkfs b\n```\nmkfs c", 20, 30), chat_asks({{"submit"}})}));
    scene.contract.policy.denied_commands = {"\\bmkfs\\b"};
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    std::vector<std::pair<std::string, std::string>> seen;
    std::string_view rest = e.events;
    while (!rest.empty()) {
      const Json line = parse_json(rest.substr(0, rest.find('\n'))).value();
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
      if (line.at("type") != "monitor.alert") continue;
      CHECK(line.at("actor") == "monitor");
      const Json& payload = line.at("payload");
      CHECK(payload.at("code") == "os_risk");
      CHECK(payload.at("signals").at("pattern") == "\\bmkfs\\b");
      // Where the kernel tells of programs, the shell is seen once more.
      if (payload.at("signals").at("form") != "executed")
        seen.emplace_back(payload.at("signals").at("form").string(),
                          payload.at("signals").at("segment").string());
    }
    // A client may be faster than the gateway's word on its answer.
    std::ranges::sort(seen);
    CHECK(seen == std::vector<std::pair<std::string, std::string>>{
                      {"code", "echo a; mkfs /dev/none"},
                      {"code", "mkfs b"},
                      {"text", "mkfs c"},
                      {"tool call", "echo a; mkfs /dev/none"}});
    scene.is_verified();
  }

  TEST_CASE("a model that speaks messages works by the same tools") {
    LoopScene scene(
        in_order({messages_asks({go_on_to("write"), kFix}), messages_asks({{"submit"}})}),
        1'000'000, MethodGateway::As::kAnthropic);
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CAPTURE(e.complained);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.usage.model_calls == 2);
    CHECK(scene.provider.heard().back().body.at("max_tokens") == 500);
  }

  TEST_CASE("money that ends in the middle ends the loop at once, and what it left is judged") {
    LoopScene scene(
        [](const ProviderServer::Heard& h, std::size_t call) {
          return chat_asks(call == 0 ? std::vector<Asks>{go_on_to("write"), kFix}
                                     : std::vector<Asks>{{"list_dir"}},
                           20, h.body["max_completion_tokens"].get<std::uint64_t>());
        },
        60'000);
    const auto e = scene.run(scene.loop(80, 1'000));
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    std::uint64_t bill = 0;
    for (const auto& h : scene.provider.heard())
      bill += 20 + 10 * h.body["max_completion_tokens"].get<std::uint64_t>();
    CHECK(e.result.usage.priced_micros == bill);  // the provider's own
    CHECK(bill <= 60'000);
    CHECK(2 <= scene.provider.heard().size());
    CHECK(holds(e.complained, "budget_exceeded"));
    CHECK(holds(e.events, "\"final\":true"));
    scene.is_verified();
  }

  TEST_CASE("breakers hear what tools did: edits that fail suspend writing, and verify agrees") {
    const Asks wrong = {"edit_file",
                        {{"path", "calc.sh"}, {"old_text", "nowhere"}, {"new_text", "x"}}};
    LoopScene scene(in_order({chat_asks({go_on_to("write"), wrong, wrong}), chat_asks({kFix}),
                              chat_asks({{"submit"}})}));
    Method m = scene.loop();
    m.gateway->breakers.rules["failed_writes"] = {{"suspend", 2}, {"reads", 1}};
    m.digest = digest_of(m);
    const auto e = scene.run(m);
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kFailure);
    const std::vector<std::string> told = scene.told();
    REQUIRE(told.size() == 4);
    CHECK_FALSE(holds(told[1], "suspended"));
    CHECK(holds(told[2], "Writing is suspended: 2 edits in a row did not apply"));
    CHECK(holds(told[3], "Refused: "));
    CHECK(holds(e.events, "\"by\":\"breaker\""));
    scene.is_verified();
  }

  TEST_CASE("a cap on calls of tools ends it likewise") {
    LoopScene scene(in_order({chat_asks({{"list_dir"}})}));
    scene.contract.caps.tool_calls = 4;
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CHECK(e.result.termination == Termination::kBudgetExceeded);
    CHECK(holds(e.result.rationale, "tool_calls"));
    CHECK(e.result.usage.tool_calls == 4);
    CHECK(scene.provider.heard().size() == 4);
    CHECK(holds(e.events, event("tool.refused")));
  }

  TEST_CASE("all turns used is an end of its own, and is judged") {
    LoopScene scene(in_order({chat_asks({go_on_to("write"), kFix}), chat_asks({{"list_dir"}})}));
    const auto e = scene.run(scene.loop(3));
    CHECK(e.result.outcome == RunOutcome::kSuccess);
    CHECK(e.result.termination == Termination::kCompleted);
    CHECK(scene.provider.heard().size() == 3);
    CHECK(holds(e.complained, "all 3 turns are used"));
  }

  TEST_CASE("the run's time ends a command of its, and the loop with it") {
    LoopScene scene(in_order({chat_asks({{"shell", {{"command", "sleep 600"}}}})}));
    scene.contract.policy.wall = std::chrono::seconds(3);
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CHECK(e.result.termination == Termination::kAgentTimeout);
    CHECK(scene.provider.heard().size() == 1);
    CHECK(holds(e.events, event("tool.result")));
  }

  TEST_CASE("a provider that fails every time is no failure of the agent") {
    using Then = ProviderSays::Then;
    for (const Then then : {Then::kGoOn, Then::kCloseFirst}) {
      LoopScene scene([then](const auto&, std::size_t) {
        ProviderSays says;
        says.status = 500;
        says.body = R"({"error":{"message":"broken"}})";
        says.then = then;
        return says;
      });
      const auto e = scene.run(scene.loop());
      CAPTURE(e.result.rationale);
      CHECK(e.result.outcome == RunOutcome::kInvalid);
      CHECK(holds(e.result.rationale, "model"));
      CHECK(holds(e.result.rationale, then == Then::kGoOn ? "500" : "closed the connection"));
      CHECK(scene.provider.heard().size() == 4);
    }
  }

  TEST_CASE("a provider without room is an overload, for which the run is tried later") {
    LoopScene scene([](const auto&, std::size_t) {
      ProviderSays says;
      says.status = 429;
      says.headers = "retry-after: 0\r\n";
      says.body = R"({"error":{"message":"busy"}})";
      return says;
    });
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CHECK(e.result.overload);
    CHECK(e.result.usage.priced_micros == 0);
  }

  TEST_CASE("a request that its provider refuses for what it is makes the run invalid") {
    LoopScene scene([](const auto&, std::size_t) {
      ProviderSays says;
      says.status = 400;
      says.body = R"({"error":{"message":"tools are not for this model"}})";
      return says;
    });
    const auto e = scene.run(scene.loop());
    CAPTURE(e.result.rationale);
    CHECK(e.result.outcome == RunOutcome::kInvalid);
    CHECK(holds(e.result.rationale, "tools are not for this model"));
    CHECK(scene.provider.heard().size() == 1);
  }
}
