#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "common/base/json.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/method_parser.h"
#include "common/contract/rules.h"
#include "common/contract/scaffold.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using testing::csv_rows;
using testing::JsonSchema;

// As an editor's YAML reader would type it.
Json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kScalar: {
      const auto plain = parse_json(node.text);
      if (!node.quoted && plain.ok()) return *plain;
      return node.text;
    }
    case Node::Kind::kSequence: {
      Json out = Json::array();
      for (const Node& n : node.items) out.push_back(to_json(n));
      return out;
    }
    case Node::Kind::kMapping: {
      Json out = Json::object();
      for (const Entry& e : node.entries) out[e.key] = to_json(e.value);
      return out;
    }
  }
  return nullptr;
}

std::string violations(const JsonSchema& schema, std::string_view yaml) {
  Diagnostics out;
  const auto document = read_document(yaml, Format::kYaml, "f", out);
  REQUIRE(document);
  return schema.violations(to_json(document->root));
}

// A node of the schema where a mapping is described, following references.
const Json& at(const Json& root, const std::string& pointer) {
  const Json* node = &testing::at_pointer(root, pointer);
  while (node->contains("$ref"))
    node = &testing::at_pointer(root, node->at("$ref").string().substr(1));
  return *node;
}

void check_keys(const Json& root, const std::string& pointer, Keys keys) {
  CAPTURE(pointer);
  const Json& node = at(root, pointer);
  CHECK(node.at("additionalProperties") == false);
  std::set<std::string> described;
  for (const auto& [key, value] : node.at("properties").items()) {
    described.insert(key);
    CAPTURE(key);
    const bool says = value.contains("description") || value.contains("$ref");
    CHECK(says);
  }
  CHECK(described == std::set<std::string>(keys.begin(), keys.end()));
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("the schemas describe exactly the keys that the parsers read") {
    const Json contract = JsonSchema("contract").document();
    check_keys(contract, "", keys_of<Contract>());
    check_keys(contract, "/properties/repository", keys_of<Repository>());
    check_keys(contract, "/properties/environment", keys_of<Environment>());
    check_keys(contract, "/properties/environment/properties/toolchains/items",
               keys_of<Toolchain>());
    check_keys(contract, "/properties/environment/properties/image/anyOf/1", keys_of<ImageBuild>());
    check_keys(contract, "/properties/setup/items/anyOf/1", keys_of<SetupStep>());
    check_keys(contract, "/properties/checks/items", keys_of<Check>());
    check_keys(contract, "/properties/checks/items/properties/container",
               keys_of<ProgramContainer>());
    check_keys(contract, "/properties/checks/items/properties/container/properties/mounts/items",
               keys_of<ProgramContainer::Mount>());
    check_keys(contract, "/properties/services/items", keys_of<Service>());
    check_keys(contract, "/properties/services/items/properties/ready", keys_of<Readiness>());
    check_keys(contract, "/properties/acceptance_files/items/anyOf/1", keys_of<AcceptanceFile>());
    check_keys(contract, "/properties/policy", keys_of<Policy>());
    check_keys(contract, "/properties/policy/properties/commands", keys_of<PolicyCommands>());
    check_keys(contract, "/properties/gates", keys_of<ContractGates>());
    check_keys(contract, "/properties/rubric", keys_of<Rubric>());
    check_keys(contract, "/properties/rubric/properties/envelope", keys_of<RubricEnvelope>());
    check_keys(contract, "/properties/policy/properties/network/anyOf/1",
               keys_of<NetworkOfPhases>());
    check_keys(contract, "/definitions/network/anyOf/1", keys_of<NetworkAccess>());
    check_keys(contract, "/properties/caps", keys_of<Caps>());
    const Json campaign = JsonSchema("campaign").document();
    check_keys(campaign, "", campaign_keys(""));
    check_keys(campaign, "/properties/policy", campaign_keys("policy"));
    check_keys(campaign, "/properties/derived_from", campaign_keys("derived_from"));
    check_keys(campaign, "/properties/rubric", keys_of<CampaignRubric>());
    check_keys(campaign, "/properties/rubric/properties/weights", keys_of<RubricWeights>());
    check_keys(campaign, "/properties/safety", keys_of<SafetyPlan>());
    check_keys(campaign, "/properties/methods/items/anyOf/1", keys_of<Method>());
    const std::string method = "/properties/methods/items/anyOf/1/properties";
    check_keys(campaign, method + "/container", keys_of<ProgramContainer>());
    check_keys(campaign, method + "/environment", keys_of<MethodEnvironment>());
    check_keys(campaign, method + "/gateway", keys_of<MethodGateway>());
    check_keys(campaign, method + "/gateway/properties/models/additionalProperties",
               keys_of<GatewayModel>());
    for (const BreakerKind& kind : kBreakerKinds) {
      std::vector<std::string_view> parameters;
      for (const BreakerParameter& p : kind.all()) parameters.push_back(p.name);
      check_keys(campaign,
                 "/definitions/breakers/oneOf/1/properties/" + std::string(kind.code) + "/oneOf/1",
                 parameters);
    }
    check_keys(campaign, "/definitions/breakers/oneOf/1", keys_of<Breakers>());
    const std::string environment = method + "/environment/properties";
    check_keys(campaign, environment + "/toolchains/items", keys_of<Toolchain>());
    check_keys(campaign, environment + "/setup/items/anyOf/1", keys_of<MethodStep>());
    CHECK(campaign.at("definitions").at("network") == contract.at("definitions").at("network"));
    check_keys(campaign, "/properties/stages/items", campaign_keys("stages"));
    check_keys(campaign, "/properties/stages/items/properties/tasks/oneOf/0",
               campaign_keys("stages.tasks"));
    check_keys(campaign, "/properties/stages/items/properties/approval/oneOf/1",
               campaign_keys("stages.approval"));
    check_keys(campaign, "/properties/budget", campaign_keys("budget"));
    check_keys(campaign, "/properties/budget/properties/dominance",
               keys_of<BudgetWatch::Dominance>());
    check_keys(campaign, "/properties/budget/properties/shared", keys_of<SharedEnvelope>());
    check_keys(campaign, "/properties/caps", keys_of<Caps>());
    const Json inputs = JsonSchema("pilot_cost_model_inputs").document();
    check_keys(inputs, "", kCostInputsKeys);
    check_keys(inputs, "/properties/usage/items", kExpectedUsageKeys);
    check_keys(inputs, "/properties/usage/items/properties/actions/items", kExpectedActionKeys);
    CHECK(contract.at("definitions").at("caps") == campaign.at("definitions").at("caps"));
  }

  TEST_CASE("what the parsers read is valid by the schemas and a misspelt key is not") {
    const JsonSchema contract("contract");
    const JsonSchema campaign("campaign");
    const JsonSchema inputs("pilot_cost_model_inputs");
    CHECK(violations(contract, test::kContractYaml) == "");
    const std::string served = test::replaced(test::kContractYaml, "checks:\n", test::kServices);
    CHECK(violations(contract, served) == "");
    const std::string rated = std::string(test::kContractYaml) +
                              "gates: {build: none}\n"
                              "rubric: {lambda: \"0.5\", envelope: {lines: 80, files: 4}, maint: "
                              "[build]}\n";
    CHECK(violations(contract, rated) == "");
    CHECK(violations(contract, test::replaced(rated, "build: none}", "build: never}")) != "");
    CHECK(violations(contract, test::replaced(rated, ", files: 4", "")) != "");
    for (const auto& [from, to] :
         {std::pair{"name: web", "name: localhost"}, std::pair{"port: 8080", "port: 0"},
          std::pair{"ready: {port", "ready: {command: x, port"},
          std::pair{"depends_on", "depends"}})
      CHECK(violations(contract, test::replaced(served, from, to)) != "");
    for (const auto& [path, text] : scaffold_files("first")) {
      CAPTURE(path);
      const std::string yaml = path == "contracts/fix-greeting.yaml"
                                   ? test::replaced(text, kCommitPlaceholder, std::string(40, 'a'))
                                   : text;
      if (path == "campaign.yaml") CHECK(violations(campaign, yaml) == "");
      if (path == "pilot_cost_model_inputs.json") {
        CHECK(violations(inputs, yaml) == "");
        CHECK(violations(inputs, test::replaced(yaml, "\"per_run\": 0.02", "\"per_run\": -1")) !=
              "");
        CHECK(violations(inputs, test::replaced(yaml, "\"usage\"", "\"usages\"")) != "");
      }
      if (path.ends_with("greeting.yaml")) CHECK(violations(contract, yaml) == "");
      if (path != "campaign.yaml") continue;
      CHECK(violations(campaign, test::replaced(yaml, "budget:", "bugdet:")) != "");
      for (const auto& [more, fits] :
           {std::pair{"methods: {noop: \"8.00\"}", true}, std::pair{"methods: [noop]", false},
            std::pair{"strata: {language: {shell: \"15.00\"}}", true},
            std::pair{"strata: {language: \"15.00\"}", false}, std::pair{"alerts: [50, 80]", true},
            std::pair{"alerts: [0]", false},
            std::pair{"dominance: {action: stop, percent: 60}", true},
            std::pair{"dominance: {action: kill}", false}}) {
        CAPTURE(more);
        const std::string changed =
            test::replaced(yaml, "  run: \"1.00\"", "  run: \"1.00\"\n  " + std::string(more));
        CHECK((violations(campaign, changed) == "") == fits);
      }
    }
    CHECK(parse_json(kCampaignSchema).value() == campaign.document());
    CHECK(parse_json(kContractSchema).value() == contract.document());
    CHECK(parse_json(kCostInputsSchema).value() == inputs.document());
    for (const auto& [from, to] :
         {std::pair{"timeout: 90s", "timeuot: 90s"}, std::pair{"timeout: 90s", "timeout: 90"},
          std::pair{"kind: build", "kind: built"}, std::pair{"id: fix-sum", "id: Fix"},
          std::pair{"    command: make\n", ""}, std::pair{"usd: \"2.50\"", "usd: \"-1\""},
          std::pair{"memory: 512MiB", "memory: 512"}, std::pair{"fix.patch", "../fix.patch"},
          std::pair{"network: true", "network: \"yes\""}}) {
      CAPTURE(to);
      CHECK(violations(contract, test::replaced(test::kContractYaml, from, to)) != "");
    }
  }

  TEST_CASE("a price table satisfies its schema when the parser takes its prices") {
    const JsonSchema prices("pilot_cost_model");
    for (const auto& [path, text] : scaffold_files("first"))
      if (path == "pilot_cost_model.csv") CHECK(prices.accepts(csv_rows(text)));
    for (const auto& [price, good] :
         {std::pair{"0", true}, std::pair{"0.000000000001", true}, std::pair{"1000000", true},
          std::pair{"12.50000000000000", true}, std::pair{"-1", false}, std::pair{"", false},
          std::pair{"nan", false}, std::pair{"1e3", false}, std::pair{"0.0000000000001", false},
          std::pair{"1,5", false}, std::pair{"$1", false}, std::pair{".5", false}}) {
      CAPTURE(price);
      CHECK(parse_price(price).ok() == good);
      const Json row = {{"action_type", "run"}, {"unit", "run"}, {"unit_price", price}};
      CHECK(prices.accepts(Json::array({row})) == good);
    }
    CHECK(!prices.accepts(csv_rows("action_type,unit\nrun,run\n")));
  }
}

}  // namespace proctor
