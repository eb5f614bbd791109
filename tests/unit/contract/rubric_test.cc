#include "common/contract/rubric.h"

#include <doctest/doctest.h>

#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {
using test::kContractYaml;
using test::replaced;

constexpr std::string_view kRubric = R"(
gates: {build: none}
rubric: {lambda: "0.5", envelope: {lines: 80, files: 4}, maint: [build]}
)";

Contract contract(const std::string& yaml) {
  Diagnostics out;
  Contract c = test::parse(yaml, out);
  CHECK(out.text() == "");
  return c;
}

// "FIELD@LINE" of each complaint.
std::string places(const Diagnostics& out) {
  std::string text;
  for (const Diagnostic& d : out.kept()) text += d.field + "@" + std::to_string(d.at.line) + " ";
  return text;
}
std::string refused(const std::string& yaml) {
  Diagnostics out;
  test::parse(yaml, out);
  return places(out);
}

constexpr std::string_view kCampaign = "name: first\nmethods: [noop]\nbudget: {global: \"9\"}\n";
constexpr std::string_view kMode =
    R"({"id":"team.slow","gate":"functional","check":"unit","exit_code":3,"attribution":"agent","severity":"low","sentence":"Slow."})";

Campaign campaign(const std::string& more, std::string_view modes, std::string& wrong) {
  GivenFiles files;
  files.add({"failure_modes.jsonl", 0644, std::string(modes)});
  Diagnostics out;
  const auto document =
      read_document(std::string(kCampaign) + more, Format::kYaml, "campaign.yaml", out);
  REQUIRE(document);
  CampaignText text = parse_campaign(*document, files, out);
  wrong = places(out);
  return std::move(text.campaign);
}
}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a contract and a campaign without these keys have the digests that they always had") {
    CHECK(contract(std::string(kContractYaml)).digest.hex() ==
          "124a0f156c89e5ac720e085040818cfff0d424475c8631ace0a36fdebbf70bf1");
    std::string wrong;
    CHECK(digest_of(settings_of(campaign("", "", wrong))).hex() ==
          "352bc8bc5813e1506568557f51b18720e8cef743c8f368703f998c2fd81f6272");
  }

  TEST_CASE("a contract declares that it has no build step, and that is part of its identity") {
    const Contract plain = contract(std::string(kContractYaml));
    CHECK_FALSE(plain.no_build);
    const Contract none = contract(std::string(kContractYaml) + "gates: {build: none}\n");
    CHECK(none.no_build);
    CHECK(none.digest != plain.digest);
    CHECK(contract(std::string(kContractYaml) + "gates: {build: checks}\n").digest == plain.digest);
    CHECK(contract(std::string(kContractYaml) + "gates: {}\n").digest == plain.digest);
    CHECK(refused("gates: {build: never}\n" + std::string(kContractYaml)) == "gates.build@1 ");
    CHECK(refused("gates: {test: none}\n" + std::string(kContractYaml)) == "gates.test@1 ");
  }

  TEST_CASE("a rubric has an envelope, and its checks decide no gate") {
    const Contract plain = contract(std::string(kContractYaml));
    CHECK_FALSE(plain.rubric);
    const Contract c = contract(std::string(kContractYaml) + std::string(kRubric));
    REQUIRE(c.rubric);
    CHECK(c.rubric->lambda == 500'000);
    CHECK(c.rubric->lines == 80);
    CHECK(c.rubric->files == 4);
    CHECK(c.checks[0].gate == Gate::kMaint);
    CHECK(c.checks[1].gate == Gate::kFunctional);
    CHECK(c.digest != plain.digest);
    for (const auto& [rubric, field] :
         {std::pair{"{lambda: \"0\", envelope: {lines: 80, files: 4}}", "rubric.lambda@1 "},
          std::pair{"{lambda: \"-1\", envelope: {lines: 80, files: 4}}", "rubric.lambda@1 "},
          std::pair{"{envelope: {lines: 80}}", "rubric.envelope@1 "},
          std::pair{"{envelope: {lines: 80, files: 4}, maint: [lint]}", "rubric.maint@1 "}}) {
      CAPTURE(rubric);
      CHECK(refused("rubric: " + std::string(rubric) + "\n" + std::string(kContractYaml)) == field);
    }
    CHECK(contract(std::string(kContractYaml) + "rubric: {envelope: {lines: 1, files: 1}}\n")
              .rubric->lambda == kMillion);
    CHECK(refused("rubric: {lambda: \"1\"}\n" + std::string(kContractYaml))
              .starts_with("rubric.envelope@1 "));
    CHECK(refused(replaced(kContractYaml, "gate: functional", "gate: maint")) != "");
  }

  TEST_CASE("acceptance is repeated as often as the contract or the campaign says, if it is more") {
    const Contract plain = contract(std::string(kContractYaml));
    const auto repeated = [](const std::string& value) {
      return "acceptance: " + value + "\n" + std::string(kContractYaml);
    };
    const Contract c = contract(repeated("{rerun: 2, tie: safety-then-correctness}"));
    CHECK(c.rerun == 2);
    CHECK(c.digest != plain.digest);
    CHECK(contract(repeated("{rerun: 2}")).digest == c.digest);
    CHECK(contract(repeated("{rerun: 0}")).digest == plain.digest);
    CHECK(refused(repeated("{rerun: 10}")) == "acceptance.rerun@1 ");
    CHECK(refused(repeated("{rerun: 2, tie: majority}")) == "acceptance.tie@1 ");
    std::string wrong;
    const Campaign often = campaign("acceptance: {rerun: 3}\n", "", wrong);
    CHECK(wrong.empty());
    CHECK(plain.rerun_in(often.rerun) == 3);
    CHECK(judge_rules(c, settings_of(often)).rerun == 3);
    CHECK(judge_rules(c, {}).rerun == 2);
    const Usage once = acceptance_worst_case(plain, 0), thrice = acceptance_worst_case(plain, 2);
    CHECK(thrice.setup_ms == 3 * once.setup_ms);
    CHECK(thrice.acceptance_ms == 3 * once.acceptance_ms);
    const auto opened = open_contract_bundle(make_bundle(c, "/base"), c.digest);
    REQUIRE(opened.ok());
    CHECK(opened->contract.rerun == 2);
    Settings settings = settings_of(often);
    settings.cost_model = fallback_cost_model();
    const auto read = open_settings_bundle(make_bundle(settings), digest_of(settings));
    REQUIRE(read.ok());
    CHECK(read->rerun == 3);
  }

  TEST_CASE("a pattern of a denied command is read where it can be, and refused at its place") {
    const auto denying = [](const std::string& patterns) {
      return replaced(kContractYaml, "policy:\n", "policy:\n  commands:\n    deny:\n" + patterns);
    };
    const Contract c = contract(denying("      - 'rm\\s+-rf\\s+/'\n      - shutdown\n"));
    CHECK(c.policy.denied_commands == std::vector<std::string>{"rm\\s+-rf\\s+/", "shutdown"});
    const Contract plain = contract(std::string(kContractYaml));
    CHECK(c.digest != plain.digest);
    CHECK(contract(replaced(kContractYaml, "policy:\n", "policy:\n  commands: {deny: []}\n"))
              .digest == plain.digest);
    CHECK(refused(denying("      - shutdown\n      - '('\n"))
              .starts_with("policy.commands.deny[1]@"));
  }

  TEST_CASE("a contract with all of these survives its bundle") {
    const Contract c = contract(replaced(std::string(kContractYaml) + std::string(kRubric),
                                         "policy:\n", "policy:\n  commands: {deny: [shutdown]}\n"));
    const std::string bundle = make_bundle(c, "/base");
    const auto opened = open_contract_bundle(bundle, c.digest);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    const Contract& again = opened->contract;
    CHECK(again.no_build);
    REQUIRE(again.rubric);
    CHECK(again.rubric->lambda == c.rubric->lambda);
    CHECK(again.rubric->maint == c.rubric->maint);
    CHECK(again.policy.denied_commands == c.policy.denied_commands);
    CHECK(again.checks[0].gate == Gate::kMaint);
    CHECK(judge_rules(again, {}) == judge_rules(c, {}));
  }

  TEST_CASE("a campaign's weights are exactly one together") {
    std::string wrong;
    CHECK(campaign("", "", wrong).weights == RubricWeights{});
    CHECK(wrong.empty());
    const Campaign c = campaign(
        "rubric: {weights: {minimal: \"0.25\", trace: \"0.75\", maint: \"0\"}}\n", "", wrong);
    CHECK(wrong.empty());
    CHECK(c.weights == RubricWeights{250'000, 750'000, 0});
    for (const char* weights : {"{minimal: \"0.6\"}", "{minimal: 1, trace: 1, maint: 1}",
                                "{minimal: \"0.5\", trace: \"0.3\", maint: \"0.199999\"}"}) {
      CAPTURE(weights);
      campaign("rubric: {weights: " + std::string(weights) + "}\n", "", wrong);
      CHECK(wrong == "rubric.weights.minimal@4 ");
    }
    campaign("rubric: {weights: {minimal: \"-0.5\"}}\n", "", wrong);
    CHECK(wrong != "");
  }

  TEST_CASE("settings have weights, safety and failure modes, and are as before without them") {
    std::string wrong;
    const Settings plain = settings_of(campaign("", "", wrong));
    const Campaign c = campaign(
        "rubric: {weights: {minimal: 0, trace: 0, maint: 1}}\n"
        "safety: {stop_run: true, stop_after: 2}\nfailure_modes: failure_modes.jsonl\n",
        std::string(kMode) + "\n", wrong);
    REQUIRE(wrong.empty());
    Settings s = settings_of(c);
    s.cost_model = fallback_cost_model();
    CHECK(s.safety == SafetyPlan{true, 2});
    const auto opened = open_settings_bundle(make_bundle(s), digest_of(s));
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    CHECK(opened->weights == s.weights);
    CHECK(opened->safety == s.safety);
    CHECK(opened->failure_modes == s.failure_modes);
    CHECK(digest_of(plain) != digest_of(s));
    CHECK(digest_of(settings_of(campaign("safety: {stop_after: 0}\n", "", wrong))) ==
          digest_of(plain));

    const JudgeRules rules =
        judge_rules(contract(std::string(kContractYaml) + std::string(kRubric)), *opened);
    CHECK(rules.scores());
    CHECK(rules.no_build);
    CHECK(rules.lambda == 500'000);
    CHECK(rules.weights == RubricWeights{0, 0, kMillion});
    CHECK(rules.checks ==
          std::vector<CheckGate>{{"build", Gate::kMaint}, {"unit", Gate::kFunctional}});
    REQUIRE(rules.tags.size() == 1);
    CHECK(rules.tags[0].id == "team.slow");
    CHECK(rules.tags[0].exit_code == 3);
    CHECK_FALSE(judge_rules(contract(std::string(kContractYaml)), plain).scores());
  }

  TEST_CASE("a file of failure modes is refused with its first bad line") {
    const std::string mode(kMode);
    const auto read = parse_tag_rules(mode + "\n\n" + replaced(mode, "team.slow", "team.slower"));
    REQUIRE(read.ok());
    CHECK(read->size() == 2);
    CHECK(parse_tag_rules("")->empty());
    for (const auto& [from, to] :
         {std::pair{"team.slow", "slow"}, std::pair{"\"functional\"", "\"patch\""},
          std::pair{"\"functional\"", "\"maint\""}, std::pair{"\"agent\"", "\"nobody\""},
          std::pair{"\"low\"", "\"bad\""}, std::pair{":3,", ":256,"},
          std::pair{"team.slow", "safety.os_risk"}, std::pair{"\"unit\"", "\"a b\""},
          std::pair{"\"check\"", "\"checks\""}, std::pair{"}", ""}}) {
      CAPTURE(to);
      const auto bad = parse_tag_rules(replaced(mode, "team.slow", "team.first") + "\n" +
                                       replaced(mode, from, to));
      REQUIRE_FALSE(bad.ok());
      CHECK(bad.error().detail.starts_with("line 2"));
    }
    CHECK_FALSE(parse_tag_rules(mode + "\n" + mode).ok());
    std::string many;
    for (std::size_t i = 0; i <= kTagRulesMost; ++i)
      many += replaced(mode, "team.slow", "team.t" + std::to_string(i)) + "\n";
    CHECK_FALSE(parse_tag_rules(many).ok());
    std::string wrong;
    campaign("failure_modes: failure_modes.jsonl\n", "{}\n", wrong);
    CHECK(wrong == "failure_modes@4 ");
  }
}
}  // namespace proctor
