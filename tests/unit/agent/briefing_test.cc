#include "worker/agent/agent.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("agent") {
  TEST_CASE("a briefing sets the issue apart from acceptance and leaks nothing of it") {
    Contract contract;
    contract.title = "Parser loses the last line";
    contract.briefing = "Files without a final newline lose their last line.";
    Check check;
    check.id = "unit-tests";
    check.command = "pytest tests/hidden_test.py";
    check.fail_to_pass = {"test_last_line"};
    contract.checks = {check};
    contract.acceptance_files = {{"secret/hidden_test.py", "tests/hidden_test.py"}};
    contract.files = {{"secret/hidden_test.py", 0644, "assert 42"},
                      {"ref.patch", 0644, "+the answer"}};
    contract.reference_patch = "ref.patch";
    contract.policy.protected_ = {"tests/**"};
    const std::string text = briefing_text(contract, {}, std::chrono::minutes(30));
    CHECK(text ==
          "# Task\n\nParser loses the last line\n\nFiles without a final newline lose their last "
          "line.\n"
          "\n# Acceptance\n\nYour change to /workspace is taken as a patch and judged in a fresh "
          "checkout by:\n"
          "- unit-tests (unit tests)\nPut back before acceptance, whatever you do to them:\n  - "
          "tests/**\n"
          "\n# Limits\n\n- wall clock: 1800 s\n- network: none\n");
    for (const char* leak : {"hidden", "answer", "test_last_line", "pytest", "42"}) {
      CAPTURE(leak);
      CHECK(text.find(leak) == std::string::npos);
    }
  }

  TEST_CASE("the caps an agent can count are told") {
    Contract contract;
    Caps caps;
    caps.usd = MicroUsd::from_micros(1);
    caps.tokens = 1000;
    caps.active = std::chrono::minutes(2);
    const std::string text = briefing_text(contract, {}, std::chrono::minutes(5), caps);
    CHECK(text.find("- wall clock: 300 s\n- tokens: 1000\n- active: 2m\n- network: none\n") !=
          std::string::npos);
  }

  TEST_CASE("what the method adds to an agent's network is told") {
    Contract contract;
    contract.policy.agent_network.allow = {"packages.example:443"};
    NetworkAccess own;
    own.allow = {"api.example.com:443"};
    const NetworkAccess all = joined(contract.policy.agent_network, own);
    const std::string text = briefing_text(contract, all, std::chrono::minutes(5));
    CHECK(text.find("- network: only " + describe(all) + ", through the proxy") !=
          std::string::npos);
    CHECK(text.find("api.example.com:443") != std::string::npos);
    CHECK(text.find("packages.example:443") != std::string::npos);
    CHECK(briefing_text(contract, {.open = true, .allow = {}}, std::chrono::minutes(5))
              .ends_with("- network: available\n"));
    // A gateway is a way out of no network, and who is told "none" would not take it.
    CHECK(briefing_text(contract, {}, std::chrono::minutes(5), {}, "OPENAI_BASE_URL")
              .ends_with("- network: none, but for the model at $OPENAI_BASE_URL\n"));
    CHECK(briefing_text(contract, own, std::chrono::minutes(5), {}, "OPENAI_BASE_URL")
              .ends_with("$http_proxy, and the model at $OPENAI_BASE_URL\n"));
  }
}
