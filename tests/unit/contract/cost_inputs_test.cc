#include "common/contract/cost_inputs.h"

#include <doctest/doctest.h>

#include "tests/support/price_table.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

const char* kPrices =
    "sandbox,minute,0.01,,\ntool_call,call,0.0005,,\nhuman,minute,0.8,,\n"
    "llm_request,input_token,0.000003,acme,large-2\nllm_request,output_token,0.000015,acme,large-"
    "2\n"
    "llm_request,token,0.00002,,*\nweb_search,query,0.005,,\n*,*,0.25,,\n";

constexpr const char* kInputs = R"({
  "notes": "from the pilot",
  "lost_attempts_per_run": 0.02,
  "usage": [
    {"actions": [{"action_type": "sandbox", "unit": "minute", "per_run": 3.5}]},
    {"method": "my-agent", "actions": [
      {"action_type": "llm_request", "unit": "input_token", "provider": "acme", "model": "large-2",
       "per_run": "120000"}]},
    {"task": "sum", "actions": []},
    {"task": "sum", "method": "noop", "actions": [
      {"action_type": "human", "unit": "minute", "per_run": 0.000001}]}
  ]
})";

struct Read {
  CostInputs inputs;
  std::string errors;
};
Read read(std::string_view json, const std::string& prices = kPrices, bool names_known = true) {
  const CostModel table = proctor::testing::price_table(prices);
  Diagnostics out;
  CostInputs inputs = parse_cost_inputs(
      json, "i.json", {table, 3, names_known, {"add", "sum"}, {"noop", "my-agent"}}, out);
  return {std::move(inputs), out.text()};
}

std::string action(const std::string& members) {
  return R"({"usage": [{"actions": [{)" + members + "}]}]}";
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("inputs of a projection are read exactly and the most particular entry holds") {
    const Read r = read(kInputs);
    REQUIRE(r.errors == "");
    CHECK(r.inputs.digest == sha256(kInputs));
    CHECK(r.inputs.lost_micro == 20'000);
    const auto one = [&](const char* task, const char* method) {
      const auto* actions = r.inputs.find(task, method);
      REQUIRE(actions != nullptr);
      REQUIRE(actions->size() == 1);
      return actions->front();
    };
    CHECK(one("add", "noop").micro_units == 3'500'000);
    CHECK(one("add", "noop").pico_usd == 10'000'000'000);
    CHECK(one("add", "my-agent").micro_units == 120'000'000'000);
    CHECK(one("add", "my-agent").pico_usd == 3'000'000);
    CHECK(one("add", "my-agent").category == CostCategory::kModel);
    CHECK(one("sum", "noop").category == CostCategory::kHuman);
    CHECK(one("sum", "noop").micro_units == 1);
    // A task's entry goes before a method's.
    REQUIRE(r.inputs.find("sum", "my-agent") != nullptr);
    CHECK(r.inputs.find("sum", "my-agent")->empty());
  }

  TEST_CASE("an expected action is priced as the real one would be") {
    const auto price = [](const char* type, const char* unit, const char* more = "",
                          const char* prices = kPrices) {
      const Read r = read(action(std::string("\"action_type\": \"") + type + "\", \"unit\": \"" +
                                 unit + "\", \"per_run\": 1" + more),
                          prices);
      REQUIRE(r.errors == "");
      return r.inputs.usage.at(0).at(0);
    };
    using Price = ExpectedAction::Price;
    CHECK(price("web_search", "query").pico_usd == 5'000'000'000);
    CHECK(price("web_search", "query").price == Price::kRow);
    CHECK(price("painting", "stroke").pico_usd == 250'000'000'000);
    CHECK(price("painting", "stroke").price == Price::kDefault);
    CHECK(price("llm_request", "output_token", ", \"model\": \"other\"").pico_usd == 20'000'000);
    CHECK(price("llm_request", "output_token", ", \"model\": \"other\"").price == Price::kDefault);
    CHECK(price("llm_request", "call", ", \"model\": \"large-2\", \"provider\": \"acme\"").price ==
          Price::kNone);
    // Counted by Proctor itself: free without a row, and no default row prices them.
    for (const auto& [type, unit] :
         {std::pair{"artifact_storage", "gigabyte"}, std::pair{"acceptance_cycle", "call"},
          std::pair{"dependency_install", "call"}}) {
      CAPTURE(type);
      CHECK(price(type, unit).price == Price::kNone);
      CHECK(price(type, unit).pico_usd == 0);
    }
    CHECK(price("artifact_storage", "gigabyte").category == CostCategory::kOverhead);
  }

  TEST_CASE("hostile inputs of a projection each have an exact error") {
    const auto says = [](const std::string& json, const std::string& expected,
                         const std::string& prices = kPrices) {
      CHECK(read(json, prices).errors == expected);
    };
    const auto quantity = [](const std::string& text) {
      return action("\"action_type\": \"sandbox\", \"unit\": \"minute\", \"per_run\": " + text);
    };
    const std::string field = "usage[0].actions[0].per_run: found ";
    const std::string expected =
        ", expected a non-negative decimal with at most 6 digits after the point\n";
    says(quantity("-1"), "i.json:1:81: " + field + "\"-1\"" + expected);
    says(quantity("1e300"), "i.json:1:81: " + field + "\"1e300\"" + expected);
    says(quantity("\"NaN\""), "i.json:1:81: " + field + "\"NaN\"" + expected);
    says(quantity("0.0000001"), "i.json:1:81: " + field + "\"0.0000001\"" + expected);
    says(quantity("null"), "i.json:1:81: " + field + "nothing" + expected);
    says(quantity("[1]"), "i.json:1:81: " + field + "a list" + expected);
    says(quantity("1000000000001"),
         "i.json:1:81: " + field + "\"1000000000001\", expected at most 1000000000000\n");
    says(quantity("NaN"), "i.json:1:81: document: found \"N\", expected a JSON value\n");
    says(quantity("1, \"per_run\": 2"),
         "i.json:1:84: usage[0].actions[0].per_run: found the key \"per_run\" a second time, "
         "expected each key once\n");
    says(action("\"action_type\": \"sandbox\", \"unit\": \"minute\", \"per_rum\": 1"),
         "i.json:1:70: usage[0].actions[0].per_rum: found the unknown key \"per_rum\", expected "
         "action_type, unit, provider, model, per_run or notes (did you mean \"per_run\"?)\n"
         "i.json:1:25: usage[0].actions[0].per_run: found nothing, expected how many units a run "
         "is expected to use, such as 3.5\n");
    const std::string painting =
        action("\"action_type\": \"painting\", \"unit\": \"stroke\", \"per_run\": 1");
    says(painting,
         "i.json:1:41: usage[0].actions[0].action_type: found \"painting\" in strokes, expected an "
         "action with a price: no price for \"painting,stroke\": the price table has neither that "
         "row nor a default row *,*\n",
         "sandbox,minute,0.01,,\n");
    says(action("\"action_type\": \"human\", \"unit\": \"minute\", \"per_run\": 1"),
         "i.json:1:41: usage[0].actions[0].action_type: found \"human\", expected an action with a "
         "price: the price table (pilot_cost_model.csv) has no row human,minute\n",
         "*,*,0.01,,\n");
    says(action("\"action_type\": \"llm_request\", \"unit\": \"token\", \"per_run\": 1"),
         "i.json:1:64: usage[0].actions[0].unit: found \"token\", expected call, input_token or "
         "output_token: input and output may differ in price\n");
    says(action("\"action_type\": \"run\", \"unit\": \"run\", \"per_run\": 1"),
         "i.json:1:41: usage[0].actions[0].action_type: found \"run\", expected another action: "
         "each run counts once by itself\n");
    says(
        action(
            "\"action_type\": \"sandbox\", \"unit\": \"minute\", \"model\": \"m\", \"per_run\": 1"),
        "i.json:1:79: usage[0].actions[0].model: found a model or provider of sandbox, expected "
        "none: only llm_request has them\n");
    says("{}", "i.json:1:1: usage: found nothing, expected a list of at least one entry\n");
    says("[]",
         "i.json:1:1: document: found a list, expected a mapping with $schema, notes, "
         "lost_attempts_per_run or usage\n");
    says("", "i.json:1:1: document: found the end of the file, expected a JSON value\n");
    says(R"({"lost_attempts_per_run": 3.000001, "usage": [{"actions": []}]})",
         "i.json:1:27: lost_attempts_per_run: found \"3.000001\", expected at most 3\n");
    says(std::string(limits::kConfigFileBytes, ' ') + "{}",
         "i.json:1:1: document: found 4194306 bytes, expected at most 4194304\n");
  }

  TEST_CASE("inputs must name what the campaign has and leave out no run") {
    CHECK(
        read(R"({"usage": [{"task": "ad", "actions": []}]})").errors ==
        "i.json:1:21: usage[0].task: found \"ad\", expected a task of this campaign (did you mean "
        "\"add\"?)\n"
        "i.json:1:11: usage: found no entry for add under noop and 3 more, expected an entry for "
        "every run; one without task and method holds for all the others\n");
    CHECK(read(R"({"usage": [{"task": "add", "actions": []}, {"method": "noop", "actions": []}]})")
              .errors ==
          "i.json:1:11: usage: found no entry for sum under my-agent, expected an entry for every "
          "run; one without task and method holds for all the others\n");
    CHECK(read(R"({"usage": [{"actions": []}, {"actions": []}]})").errors ==
          "i.json:1:29: usage[1]: found a second entry for every task, expected each task and "
          "method once\n");
    // With errors elsewhere the names are not all known, and nothing is said of them.
    CHECK(read(R"({"usage": [{"task": "ad", "actions": []}]})", kPrices, false).errors == "");
  }

  TEST_CASE("a run that no envelope could hold is refused") {
    const std::string huge = R"({"action_type": "a", "unit": "u", "per_run": 1000000000000},)"
                             R"({"action_type": "b", "unit": "u", "per_run": 1000000000000})";
    const Read r = read(R"({"usage": [{"actions": [)" + huge + "]}]}", "*,*,1000000,,\n");
    CHECK(r.errors ==
          "i.json:1:25: usage[0].actions[0].per_run: found a run that costs more than "
          "9007199254.740991, expected an amount that an envelope can hold\n");
    CHECK(read(action("\"action_type\": \"a\", \"unit\": \"u\", \"per_run\": 9007199254.740991"),
               "*,*,1,,\n")
              .errors == "");
    CHECK(read(action("\"action_type\": \"a\", \"unit\": \"u\", \"per_run\": 9007199254.740992"),
               "*,*,1,,\n")
              .errors != "");
  }
}

}  // namespace proctor
