#include <doctest/doctest.h>

#include "common/contract/contract_digest.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

Contract good(const std::string& yaml) {
  Diagnostics out;
  Contract c = test::parse(yaml, out);
  CHECK(out.text() == "");
  return c;
}

std::string with_policy(const std::string& network) {
  return test::replaced(test::kContractYaml, "network: false", "network: " + network);
}

std::string complaint(const std::string& yaml) {
  Diagnostics out;
  test::parse(yaml, out);
  return out.text();
}

}  // namespace

TEST_SUITE("contract network") {
  TEST_CASE("a contract without an allow-list has the digest it had before there were any") {
    CHECK(good(std::string(test::kContractYaml)).digest.hex() ==
          "124a0f156c89e5ac720e085040818cfff0d424475c8631ace0a36fdebbf70bf1");
    // The same in more words.
    CHECK(good(with_policy("{agent: false, acceptance: false}")).digest.hex() ==
          "124a0f156c89e5ac720e085040818cfff0d424475c8631ace0a36fdebbf70bf1");
    CHECK(good(with_policy("{agent: true, acceptance: true}")).digest ==
          good(with_policy("true")).digest);
  }

  TEST_CASE("each phase may reach what the contract says of it and nothing by default") {
    const Contract one =
        good(with_policy("{allow: [\"packages.example:443\", \"*.example.org:80\"]}"));
    CHECK(one.policy.agent_network.allow ==
          std::vector<std::string>{"packages.example:443", "*.example.org:80"});
    CHECK(one.policy.agent_network == one.policy.check_network);
    CHECK(one.policy.agent_network.filtered());
    const Contract apart = good(with_policy("{acceptance: {allow: [\"[fd00::1]:8080\"]}}"));
    CHECK_FALSE(apart.policy.agent_network.any());
    CHECK(apart.policy.check_network.allow == std::vector<std::string>{"[fd00::1]:8080"});
    const Contract open = good(with_policy("{agent: true, acceptance: false}"));
    CHECK(open.policy.agent_network.open);
    CHECK_FALSE(open.policy.agent_network.filtered());
    const Contract setup =
        good(test::replaced(test::kContractYaml, "network: true", "network: {allow: [a.b:1]}"));
    CHECK(setup.setup[0].network.allow == std::vector<std::string>{"a.b:1"});
    CHECK_FALSE(setup.setup[1].network.any());
  }

  TEST_CASE("allow-lists are part of the digest and survive the way to the worker") {
    std::vector<Digest> seen;
    for (const char* network :
         {"false", "true", "{allow: [a.b:1]}", "{allow: [a.b:2]}", "{allow: [a.b:1, a.b:2]}",
          "{agent: {allow: [a.b:1]}}", "{acceptance: {allow: [a.b:1]}}", "{agent: true}"}) {
      CAPTURE(network);
      const Contract c = good(with_policy(network));
      for (const Digest& d : seen) CHECK(d != c.digest);
      seen.push_back(c.digest);
      Diagnostics out;
      // The canonical form is JSON with the same keys.
      const std::string form = canonical_form(c);
      const auto document = read_document(form, Format::kJson, "form", out);
      REQUIRE(document);
      const Contract again = parse_contract(Document{"form", *document->root.find("contract")},
                                            test::given_files(), out);
      CHECK(out.text() == "");
      CHECK(canonical_form(again) == form);
    }
  }

  TEST_CASE("what is no place of an allow-list is refused with what was expected") {
    struct Row {
      const char* network;
      const char* says;
    };
    const Row rows[] = {
        {"[a.b:1]", "policy.network: found a list, expected true, false or {allow: [host:port"},
        {"{allow: []}", "policy.network.allow: found a list, expected 1 to 256 entries"},
        {"{allow: a.b}", "policy.network.allow"},
        {"{allow: [a.b]}", "policy.network.allow[0]: found \"a.b\", expected host:port"},
        {"{allow: [a.b:0]}", "allow[0]"},
        {"{allow: [a.b:65536]}", "allow[0]"},
        {"{allow: [a.b:080]}", "allow[0]"},
        {"{allow: [\"*:443\"]}", "allow[0]"},
        {"{allow: [\"*.org:443\"]}", "allow[0]"},
        {"{allow: [\"a.*.org:443\"]}", "allow[0]"},
        {"{allow: [\"*.10.0.0.1:443\"]}", "allow[0]"},
        {"{allow: [\"A.b:443\"]}", "allow[0]"},
        {"{allow: [\"a.b.:443\"]}", "allow[0]"},
        {"{allow: [\"u@a.b:443\"]}", "allow[0]"},
        {"{allow: [\"http://a.b:443\"]}", "allow[0]"},
        {"{allow: [\"10.1:443\"]}", "allow[0]"},
        {"{allow: [\"010.0.0.1:443\"]}", "allow[0]"},
        {"{allow: [\"0x7f000001:443\"]}", "allow[0]"},
        {"{allow: [\"fd00::1:443\"]}", "allow[0]"},
        {"{allow: [\"[fd00:0::1]:443\"]}", "allow[0]"},
        {"{allow: [\"[::ffff:10.0.0.1]:443\"]}", "allow[0]"},
        {"{allow: [a.b:1, a.b:1]}", "allow[1]: found \"a.b:1\", expected each entry once"},
        {"{allowed: [a.b:1]}", "policy.network.allowed"},
        {"{agent: {allow: [x]}}", "policy.network.agent.allow[0]"},
        {"{allow: [a.b:1], agent: true}", "policy.network.agent"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.network);
      const std::string said = complaint(with_policy(row.network));
      CAPTURE(said);
      CHECK(said.find(row.says) != std::string::npos);
    }
  }
}

}  // namespace proctor
