#include "common/contract/bundle.h"

#include <doctest/doctest.h>

#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/fields.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using test::kContractYaml;
using test::replaced;

Contract good_contract(std::string_view yaml = kContractYaml,
                       const GivenFiles& files = test::given_files()) {
  Diagnostics out;
  Contract c = test::parse(yaml, out, files);
  CHECK(out.text() == "");
  return c;
}

Method command_method() {
  Method m;
  m.name = "agent";
  m.kind = Method::Kind::kCommand;
  m.command = "\"$PROCTOR_METHOD/a b.sh\" \x7F\t\"x\"";
  m.variables = {{"A", ""}, {"B", "\xC3\xA9"}};
  m.files = {{"a b.sh", 0755, std::string("\0\n\xFF", 3)}, {"c", 0644, ""}};
  m.digest = digest_of(m);
  return m;
}

Settings some_settings() {
  Settings s;
  s.campaign = "first";
  s.caps.tokens = 12;
  s.caps.wall = std::chrono::milliseconds(1500);
  s.run_cap = MicroUsd::from_micros(1'234'567);
  s.cost_model = fallback_cost_model();
  s.seed = 7;
  s.seed_deviation = "a second draw";
  s.stages = {"pilot", "main"};
  s.stage_caps["pilot"].model_calls = 3;
  s.task_caps["fix-sum"].active = std::chrono::seconds(9);
  s.cost_model.rows.push_back({"llm_request", "token", 5, "", "acme", "big/1"});
  s.cost_model.rows.push_back({"*", "*", 7, ""});
  s.isolation = Isolation::kUserspace;
  s.rates = {600, {{"acme", 60}, {"big one", 7}}};
  return s;
}

// Every truncation and every changed byte must be refused.
template <class Open>
void check_fragile(const std::string& bundle, const Open& open) {
  std::size_t accepted = 0;
  for (std::size_t n = 0; n < bundle.size(); ++n) accepted += open(bundle.substr(0, n)) ? 1 : 0;
  for (std::size_t i = 0; i < bundle.size(); ++i) {
    std::string changed = bundle;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    accepted += open(changed) ? 1 : 0;
  }
  accepted += open(bundle + "x") ? 1 : 0;
  CHECK(accepted == 0);
  CHECK(open(bundle));
}

// What a forger can do: a body of his own under a digest that fits it.
std::string signed_body(const std::string& body) {
  return sha256(body).hex() + "\n" + body;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("any change of a contract is a new digest") {
    struct Row {
      const char* from;
      const char* to;
    };
    const Row rows[] = {
        {"id: fix-sum", "id: fix-sum2"},
        {"one too small", "two too small"},
        {"type: bug_fix", "type: feature"},
        {"returns 3", "returns 5"},
        {"runtime: fast", "runtime: slow"},
        {"source: ../repos/sum", "source: ../repos/sum2"},
        {"commit: 0", "commit: 1"},
        {"tree: 1", "tree: 2"},
        {"submodules: false", "submodules: true"},
        {"sandbox: bubblewrap", "sandbox: auto"},
        {"LANGUAGE: en", "LANGUAGE: de"},
        {"locale: C.UTF-8", "locale: C"},
        {"timezone: UTC", "timezone: CET"},
        {"TEST_TOKEN", "TEST_TOKEN2"},
        {"at: /opt/go", "at: /opt/go2"},
        {"make deps", "make deps2"},
        {"timeout: 2m", "timeout: 3m"},
        {"network: true", "network: false"},
        {"network: true", "network: true\n    cache: false"},
        {"network: true", "network: true\n    inputs: [deps]"},
        {"kind: build", "kind: static"},
        {"gate: functional", "gate: safety"},
        {"unit.xml", "unit2.xml"},
        {"result: junit", "result: tap"},
        {"[tests::sum]", "[tests::sum2]"},
        {"[tests::zero]", "[]"},
        {"others_may_fail: true", "others_may_fail: false"},
        {"to: tests/hidden_test.py", "to: tests/hidden.py"},
        {"\"src/**\"", "\"src/*\""},
        {"\"tests/**\"", "\"tests/*\""},
        {"wall: 10m", "wall: 11m"},
        {"512MiB", "513MiB"},
        {"processes: 64", "processes: 65"},
        {"disk: 1GiB", "disk: 2GiB"},
        {"cpu: 5m", "cpu: 6m"},
        {"cpus: 1.5", "cpus: 1.501"},
        {"usd: \"2.50\"", "usd: \"2.500001\""},
        {"tokens: 100000", "tokens: 100001"},
        {"tool_calls: 50", "tool_calls: 51"},
        {"cycles: 3", "cycles: 4"},
        {"wall: 8m", "wall: 9m"},
        {"reference_patch: fix.patch", "files_gone: 1"},
        {"  - echo ready\n", ""},
    };
    const Digest original = good_contract().digest;
    std::vector<Digest> seen{original};
    for (const Row& row : rows) {
      CAPTURE(row.to);
      std::string yaml = replaced(kContractYaml, row.from, row.to);
      if (std::string_view(row.to) == "files_gone: 1")
        yaml = replaced(kContractYaml, "reference_patch: fix.patch\n", "");
      REQUIRE(yaml != "");
      const Digest digest = good_contract(yaml).digest;
      for (const Digest& d : seen) CHECK(d != digest);
      seen.push_back(digest);
    }
  }

  TEST_CASE("any change of a file is a new digest") {
    const Digest original = good_contract().digest;
    for (const char* path : {"run-tests.sh", "hidden_test.py", "fix.patch", "data/input.bin"}) {
      GivenFiles files = test::given_files();
      ReferencedFile file = *files.read(path);
      file.bytes += "\n";
      files.add(file);
      CHECK(good_contract(kContractYaml, files).digest != original);
    }
    GivenFiles files = test::given_files();
    files.add({"fix.patch", 0755, files.read("fix.patch")->bytes});
    CHECK(good_contract(kContractYaml, files).digest != original);
  }

  TEST_CASE("comments and layout and order of keys are not in the digest") {
    const Digest original = good_contract().digest;
    CHECK(good_contract(replaced(kContractYaml, "# every key once\n", "")).digest == original);
    CHECK(good_contract(replaced(kContractYaml, "id: fix-sum\ntitle: The sum is one too small\n",
                                 "title:   'The sum is one too small' # x\nid: \"fix-sum\"\n"))
              .digest == original);
    CHECK(good_contract(replaced(kContractYaml, "network: true",
                                 "network: true\n    cache: true\n    inputs: []"))
              .digest == original);
    CHECK(good_contract(replaced(kContractYaml, "timeout: 90s", "timeout: 1m30s")).digest ==
          original);
    CHECK(good_contract(replaced(kContractYaml, "memory: 512MiB", "memory: 524288KiB")).digest ==
          original);
    CHECK(good_contract(replaced(kContractYaml, "usd: \"2.50\"", "usd: 2.5")).digest == original);
    CHECK(good_contract(replaced(kContractYaml, "  submodules: false\n", "")).digest == original);
    CHECK(good_contract(replaced(kContractYaml, "id: fix-sum",
                                 "$schema: ../contract.schema.json\nid: fix-sum"))
              .digest == original);
  }

  TEST_CASE("a contract survives its bundle") {
    const Contract c = good_contract();
    const std::string bundle = make_bundle(c, "/srv/campaign/contracts");
    const auto opened = open_contract_bundle(bundle, c.digest);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    CHECK(opened->base == "/srv/campaign/contracts");
    CHECK(opened->contract.digest == c.digest);
    CHECK(canonical_form(opened->contract) == canonical_form(c));
    REQUIRE(opened->contract.files.size() == c.files.size());
    for (std::size_t i = 0; i < c.files.size(); ++i)
      CHECK(opened->contract.files[i].bytes == c.files[i].bytes);
    CHECK(make_bundle(opened->contract, opened->base) == bundle);
    CHECK(opened->contract.origin.folder == "/srv/campaign/contracts");
    CHECK(open_contract_bundle(bundle, sha256("another")).error().code == Errc::kCorrupt);
    CHECK(open_contract_bundle(make_bundle(c, "relative"), c.digest).error().code ==
          Errc::kInvalid);
    CHECK_FALSE(open_method_bundle(bundle, c.digest).ok());
  }

  TEST_CASE("a method survives its bundle") {
    const Method m = command_method();
    const std::string bundle = make_bundle(m);
    const auto opened = open_method_bundle(bundle, m.digest);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    CHECK(opened->command == m.command);
    CHECK(opened->variables == m.variables);
    CHECK(opened->files.at(0).bytes == m.files[0].bytes);
    CHECK(opened->digest == m.digest);
    CHECK(make_bundle(*opened) == bundle);
  }

  TEST_CASE("settings survive their bundle") {
    const Settings s = some_settings();
    const std::string bundle = make_bundle(s);
    const auto opened = open_settings_bundle(bundle, digest_of(s));
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    CHECK(opened->caps.wall == s.caps.wall);
    CHECK(opened->run_cap == s.run_cap);
    CHECK(opened->cost_model.version == "fallback-1");
    CHECK(opened->cost_model.digest == s.cost_model.digest);
    CHECK(opened->cost_model.output_token == s.cost_model.output_token);
    CHECK(opened->seed == 7);
    CHECK(opened->rates == s.rates);
    CHECK(opened->isolation == Isolation::kUserspace);
    CHECK(opened->infrastructure_retries == 3);
    CHECK(make_bundle(*opened) == bundle);
    Settings none = s;
    none.infrastructure_retries = 0;
    CHECK(digest_of(none) != digest_of(s));
    const auto again = open_settings_bundle(make_bundle(none), digest_of(none));
    REQUIRE(again.ok());
    CHECK(again->infrastructure_retries == 0);
  }

  TEST_CASE("every truncation and every changed byte of a bundle is refused") {
    const Method m = command_method();
    check_fragile(make_bundle(m),
                  [&](const std::string& b) { return open_method_bundle(b, m.digest).ok(); });
    const Settings s = some_settings();
    check_fragile(make_bundle(s),
                  [&](const std::string& b) { return open_settings_bundle(b, digest_of(s)).ok(); });
    Contract c = good_contract();
    check_fragile(make_bundle(c, "/x"),
                  [&](const std::string& b) { return open_contract_bundle(b, c.digest).ok(); });
  }

  TEST_CASE("a forged bundle obeys the rules of the parser") {
    Contract c = good_contract();
    struct Row {
      const char* what;
      void (*forge)(Contract&);
    };
    const Row rows[] = {
        {"no check", [](Contract& x) { x.checks.clear(); }},
        {"no command", [](Contract& x) { x.checks[0].command.clear(); }},
        {"two checks of one id", [](Contract& x) { x.checks[1].id = x.checks[0].id; }},
        {"a file outside", [](Contract& x) { x.files[0].path = "../../etc/passwd"; }},
        {"a place outside", [](Contract& x) { x.acceptance_files[0].to = "/etc/passwd"; }},
        {"a git helper", [](Contract& x) { x.repository.source = "ext::sh -c id"; }},
        {"an option", [](Contract& x) { x.repository.source = "--upload-pack=id"; }},
        {"no time", [](Contract& x) { x.checks[0].timeout = std::chrono::milliseconds(0); }},
        {"a broken id", [](Contract& x) { x.id = "../x"; }},
        {"a loader's variable", [](Contract& x) { x.environment.variables["A=B"] = "x"; }},
        {"another order", [](Contract& x) { std::swap(x.files[0], x.files[1]); }},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      Contract forged = c;
      row.forge(forged);
      const auto opened = open_contract_bundle(make_bundle(forged, "/x"), digest_of(forged));
      REQUIRE_FALSE(opened.ok());
      CHECK(opened.error().code == Errc::kInvalid);
    }
    const std::string form = R"({"format":1,"method":{"kind":"noop","name":"n"},"files":[]})";
    const std::string head =
        "proctor-bundle 1 method " + std::to_string(form.size()) + " 0\n" + form;
    const auto unordered = open_method_bundle(signed_body(head), sha256(form));
    REQUIRE_FALSE(unordered.ok());
    CHECK(unordered.error().detail == "bundle: not in canonical form");
    for (const char* body :
         {"", "\n", "proctor-bundle 2 method 1 0\n{", "proctor-bundle 1 method -1 0\n{}",
          "proctor-bundle 1 method 99999999999999999999 0\n{}", "proctor-bundle 1 method 2 0\n[]",
          "proctor-bundle 1 method 2 5\n{}", "proctor-bundle 1 method 2 0\n{}x"})
      CHECK_FALSE(open_method_bundle(signed_body(body), sha256("{}")).ok());
  }

  TEST_CASE("quantities are written as they are read") {
    using std::chrono::milliseconds;
    for (const std::int64_t ms : {0, 1, 999, 1000, 1500, 60'000, 90'000, 3'600'000, 5'400'001}) {
      const std::string text = format_duration(milliseconds(ms));
      CAPTURE(text);
      CHECK(*parse_duration(text) == milliseconds(ms));
    }
    for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1023},
                                  std::uint64_t{1} << 20, (std::uint64_t{1} << 40) + 1})
      CHECK(*parse_size(format_size(n)) == n);
    CHECK(parse_duration("1h30m")->count() == 5'400'000);
    for (const char* bad : {"", "m", "30", "30 m", "-5m", "1.5m", "30m1h", "5m5m", "9e9h", "1d",
                            "99999999999999999999s", "400000h"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_duration(bad).ok());
    }
    for (const char* bad : {"", "MiB", "1 MiB", "-1B", "1.5GiB", "9007199254740992B", "99999TiB"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_size(bad).ok());
    }
    CHECK(*parse_decimal("0.5", 3, 1000) == 500);
    CHECK(*parse_decimal("1", 3, 1000) == 1000);
    CHECK(format_decimal(1500, 3) == "1.5");
    for (const char* bad : {"", ".", ".5", "5.", "1.0001", "1.001", "2", "+1", "1e1", "1.-1"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_decimal(bad, 3, 1000).ok());
    }
  }
}

}  // namespace proctor
