// A method's gateway, the models file that answers it, and prices that travel with the settings.
#include <doctest/doctest.h>

#include <set>

#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/host_things.h"
#include "common/contract/models_file.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

std::string gateway_campaign(const std::string& gateway, const std::string& kind = "command: a") {
  return "name: camp\nmethods:\n  - name: agent\n    " + kind + "\n    gateway: " + gateway +
         "\nbudget: {global: \"50.00\"}\n";
}

std::pair<Campaign, std::string> read_it(const std::string& yaml) {
  Diagnostics out;
  const GivenFiles files;
  const auto document = read_document(yaml, Format::kYaml, "campaign.yaml", out);
  Campaign campaign;
  if (document) campaign = parse_campaign(*document, files, out).campaign;
  return {campaign, out.text()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("method gateway") {
  TEST_CASE("a method's gateway is read, is part of its digest and survives its bundle") {
    const auto [campaign, errors] = read_it(
        gateway_campaign("{model: big, provider: acme, as: openai-responses, output_max: 500, "
                         "aliases: [gpt-5, \"gpt-5-*\"]}"));
    REQUIRE(errors.empty());
    const Method& m = campaign.methods.at(0);
    REQUIRE(m.gateway);
    CHECK(m.gateway->model().name == "big");
    CHECK(m.gateway->as == MethodGateway::As::kOpenaiResponses);
    CHECK(m.gateway->model().output_max == 500);
    CHECK(m.gateway->model().aliases.size() == 2);
    const auto opened = open_method_bundle(make_bundle(m), m.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->gateway == m.gateway);
    Method other = m;
    other.gateway->models.front().output_max = 501;
    CHECK(digest_of(other) != m.digest);
    other.gateway.reset();
    CHECK(canonical_form(other).find("gateway") == std::string::npos);
  }

  TEST_CASE("one model is written as before there were several, whichever way it is said") {
    const auto [old, errors] = read_it(
        gateway_campaign("{model: big, provider: acme, as: openai, aliases: [a], output_max: 5}"));
    const auto [now, none] = read_it(gateway_campaign(
        "{models: {big: {provider: acme, aliases: [a], output_max: 5}}, as: openai}"));
    REQUIRE_MESSAGE(errors + none == "", errors << none);
    const Method& m = old.methods.at(0);
    CHECK(canonical_form(m) ==
          R"({"files":[],"format":1,"method":{"command":"a","gateway":{"aliases":["a"],)"
          R"("as":"openai","model":"big","output_max":5,"provider":"acme"},"kind":"command",)"
          R"("name":"agent"}})");
    CHECK(m.digest == now.methods.at(0).digest);
  }

  TEST_CASE("several models are read, are part of the digest and survive the bundle in order") {
    const auto [campaign, errors] = read_it(gateway_campaign(
        "{as: anthropic, models: {opus: {provider: acme, aliases: [\"claude-*\", claude-haiku-1]}, "
        "haiku: {provider: other, aliases: [\"claude-haiku-*\"], output_max: 9}, big: {}}}"));
    REQUIRE_MESSAGE(errors.empty(), errors);
    const Method& m = campaign.methods.at(0);
    CHECK(m.gateway->names() == "opus, big, haiku");
    const auto opened = open_method_bundle(make_bundle(m), m.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->gateway == m.gateway);
    const auto named = [&](const char* asked) {
      const GatewayModel* found = m.gateway->find(asked);
      return found == nullptr ? "" : found->name;
    };
    CHECK(named("haiku") == "haiku");
    CHECK(named("claude-haiku-5") == "haiku");
    CHECK(named("claude-haiku-1") == "opus");  // exactly, before the longer beginning
    CHECK(named("claude-sonnet-5") == "opus");
    CHECK(named("gpt") == "");
    std::set<std::string> needs;
    for (const HostThing& thing : things_of(m)) needs.insert(thing.feature());
    for (const char* need : {"model:opus", "model:haiku", "model:big", "gateway:anthropic:haiku"})
      CHECK(needs.contains(need));
    const auto first =
        read_it(gateway_campaign("{as: openai, model: small, models: {big: {}, small: {}}}"));
    REQUIRE_MESSAGE(first.second.empty(), first.second);
    CHECK(first.first.methods.at(0).gateway->names() == "small, big");
  }

  TEST_CASE("tools are offered or enforced by a gateway, and a method without them is as before") {
    const auto [campaign, errors] =
        read_it(gateway_campaign("{model: big, as: anthropic, tools: enforced}"));
    REQUIRE_MESSAGE(errors.empty(), errors);
    const Method& m = campaign.methods.at(0);
    CHECK(m.gateway->tools == MethodGateway::Tools::kEnforced);
    const auto opened = open_method_bundle(make_bundle(m), m.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->gateway == m.gateway);
    Method none = m;
    none.gateway->tools.reset();
    CHECK(digest_of(none) != m.digest);
    CHECK(canonical_form(none).find("tools") == std::string::npos);
    CHECK(has(read_it(gateway_campaign("{model: big, as: anthropic, tools: none}")).second,
              "methods[0].gateway.tools"));
  }

  TEST_CASE(
      "the breakers of a campaign are its methods' with a gateway, and part of their digests") {
    const std::string plain = gateway_campaign("{model: big, as: openai}");
    const auto bare = read_it(plain).first.methods.at(0);
    CHECK_FALSE(bare.gateway->breakers.any());
    CHECK(canonical_form(bare).find("breakers") == std::string::npos);
    CHECK(read_it(plain + "breakers: off\n").first.methods.at(0).digest == bare.digest);
    const auto [on, errors] = read_it(plain + "breakers: on\n");
    REQUIRE_MESSAGE(errors.empty(), errors);
    const Method& m = on.methods.at(0);
    CHECK(m.gateway->breakers.rules.at("identical_call").at("stop") == 8);
    CHECK_FALSE(m.gateway->breakers.rules.contains("run_ceiling"));
    CHECK(m.digest != bare.digest);
    CHECK(m.digest == digest_of(m));
    const auto [some, wrong] =
        read_it(plain +
                "breakers: {no_progress: off, identical_call: {throttle: 2, stop: 3}, "
                "run_ceiling: {model_calls: 50}}\n");
    REQUIRE_MESSAGE(wrong.empty(), wrong);
    const Method& s = some.methods.at(0);
    CHECK_FALSE(s.gateway->breakers.rules.contains("no_progress"));
    CHECK(s.gateway->breakers.rules.at("identical_call").at("throttle") == 2);
    CHECK(s.gateway->breakers.rules.at("run_ceiling").at("model_calls") == 50);
    CHECK(s.gateway->breakers.rules.at("run_ceiling").at("seconds") == 0);
    CHECK(s.gateway->breakers.rules.at("burst").at("tool_calls") == 20);
    const auto opened = open_method_bundle(make_bundle(s), s.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->gateway == s.gateway);
  }

  TEST_CASE("every mistake in breakers is named with its place") {
    const std::string plain = gateway_campaign("{model: big, as: openai}");
    const auto wrong = [&](const std::string& breakers) {
      return read_it(plain + "breakers: " + breakers + "\n").second;
    };
    CHECK(has(wrong("sometimes"), "on, off, or a mapping"));
    CHECK(has(wrong("{identical_calls: off}"), "identical_call"));
    CHECK(has(wrong("{identical_call: {stops: 3}}"), "stop"));
    CHECK(has(wrong("{identical_call: {throttle: 4, stop: 4}}"), "more than throttle"));
    CHECK(has(wrong("{burst: {tool_calls: 0}}"), "breakers.burst.tool_calls"));
    CHECK(has(read_it(gateway_campaign("{model: big, as: openai, breakers: on}")).second,
              "the same for all methods"));
    CHECK(has(
        read_it("name: camp\nmethods: [noop]\nbudget: {global: \"5.00\"}\nbreakers: on\n").second,
        "a method with a gateway"));
  }

  TEST_CASE("every mistake in a gateway is named with its place") {
    struct Row {
      std::string yaml;
      const char* why;
    };
    const Row rows[] = {
        {gateway_campaign("{as: openai}"), "gateway.model"},
        {gateway_campaign("{model: big}"), "gateway.as"},
        {gateway_campaign("{model: big, as: telegraph}"), "gateway.as"},
        {gateway_campaign("{model: big, as: openai, url: x}"), "url"},
        {gateway_campaign("{model: big, as: openai, output_max: 0}"), "gateway.output_max"},
        {gateway_campaign("{model: big, as: openai, aliases: [\"a*b\"]}"), "gateway.aliases"},
        {gateway_campaign("{models: {}, as: openai}"), "gateway.models"},
        {gateway_campaign("{models: [big], as: openai}"), "gateway.models"},
        {gateway_campaign("{models: {big: {as: openai}}, as: openai}"), "gateway.models.big"},
        {gateway_campaign("{models: {big: {}}, provider: acme, as: openai}"), "gateway.provider"},
        {gateway_campaign("{model: x, models: {big: {}}, as: openai}"), "gateway.model"},
        {gateway_campaign(
             "{models: {a: {aliases: [\"x-*\"]}, b: {aliases: [\"x-*\"]}}, as: openai}"),
         "x-*, a name of a and of b"},
        {gateway_campaign("{models: {a: {aliases: [b]}, b: {}}, as: openai}"),
         "a name for one model"},
        {gateway_campaign("{model: big, as: openai}", "kind: noop"), "only the kind \"command\""},
        {gateway_campaign("big"), "gateway"}};
    for (const Row& row : rows) {
      CAPTURE(row.yaml);
      const auto [campaign, errors] = read_it(row.yaml);
      CHECK_MESSAGE(errors.find(row.why) != std::string::npos, errors);
    }
  }

  TEST_CASE("a tool_loop names its model alone, and all of it is part of its digest") {
    const auto loop = [](const std::string& keys, const std::string& more = "") {
      return "name: camp\nmethods:\n  - {name: loop, kind: tool_loop" + keys +
             "}\nbudget: {global: \"50.00\"}\n" + more;
    };
    const auto [campaign, errors] = read_it(loop(", model: big"));
    REQUIRE_MESSAGE(errors.empty(), errors);
    const Method& m = campaign.methods.at(0);
    CHECK(m.kind == Method::Kind::kToolLoop);
    REQUIRE(m.gateway);
    CHECK(m.gateway->model().name == "big");
    CHECK(m.gateway->as == MethodGateway::As::kOpenai);
    CHECK(m.gateway->model().output_max == 8'192);
    CHECK(m.turns == 80);
    CHECK(m.call.model.empty());
    const auto [other, wrong] = read_it(
        loop(", model: big, provider: acme, as: anthropic, max_output_tokens: 500, max_turns: 7",
             "breakers: on\n"));
    REQUIRE_MESSAGE(wrong.empty(), wrong);
    const Method& o = other.methods.at(0);
    CHECK(o.gateway->breakers.any());
    const auto opened = open_method_bundle(make_bundle(o), o.digest);
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->gateway == o.gateway);
    CHECK(opened->turns == 7);
    Method longer = o;
    longer.turns = 8;
    CHECK(digest_of(longer) != o.digest);
    struct Row {
      const char* keys;
      const char* why;
    };
    for (const Row& row :
         {Row{"", "methods[0].model"}, Row{", model: big, as: openai-responses", "anthropic"},
          Row{", model: big, max_turns: 0", "max_turns"},
          Row{", model: big, attempts: 2", "only the kind \"single_shot\" has it"},
          Row{", model: big, command: x", "only the kind \"command\" has it"},
          Row{", model: big, gateway: {model: big, as: openai}",
              "only the kind \"command\" has it"},
          Row{", model: big, breakers: on", "the same for all methods"}}) {
      CAPTURE(row.keys);
      const std::string said = read_it(loop(row.keys)).second;
      CHECK_MESSAGE(has(said, row.why), said);
    }
    CHECK(has(read_it("name: camp\nmethods: [{name: a, kind: noop, max_turns: 3}]\n"
                      "budget: {global: \"50.00\"}\n")
                  .second,
              "only the kind \"tool_loop\" has it"));
  }

  TEST_CASE("a models file is YAML or JSON, whichever is written") {
    const auto yaml = parse_models(R"(
models:
  big:
    url: https://api.example/v1
    key_file: /etc/key
    auth: x-api-key
    api: [messages, count_tokens]
    max_output: 32000
    errors_are_free: false
    idle_s: 60
)",
                                   "models.yaml");
    REQUIRE_MESSAGE(yaml.ok(), yaml.error().detail);
    const ModelAccess& big = yaml->at("big");
    CHECK(big.auth == ModelAuth::kXApiKey);
    CHECK(big.api == std::set<ModelApi>{ModelApi::kMessages, ModelApi::kCountTokens});
    CHECK(big.max_output == 32'000);
    CHECK_FALSE(big.errors_are_free);
    CHECK(parse_models("models:\n  a: {url: \"https://h\"}\n", "m")->at("a").errors_are_free);
    CHECK(big.idle == std::chrono::seconds(60));
    CHECK(
        parse_models(R"({"models": {"a": {"url": "https://h", "send_as": "123"}}})", "models.yaml")
            ->at("a")
            .send_as == "123");
    for (const char* bad :
         {"models:\n  a: {url: \"https://h\", api: [telex]}\n",
          "models:\n  a: {url: \"https://h\", auth: maybe}\n",
          "models:\n  a: {url: \"https://h\", max_output: -1}\n",
          "models:\n  a: {url: \"https://h\", idle_s: 0}\n",
          "models:\n  a: {url: \"https://h\", errors_are_free: 1}\n", "models: &x {}\n",
          "models:\n  a: {url: \"http://h\", key_file: k}\n"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_models(bad, "models.yaml").ok());
    }
  }

  TEST_CASE("a model that speaks nothing of what a gateway is asked for is named with both words") {
    MethodGateway gateway;
    ModelAccess access;  // of chat, as where the file says nothing
    CHECK(unspoken(gateway, access).empty());
    gateway.as = MethodGateway::As::kAnthropic;
    CHECK(has(unspoken(gateway, access), "speaks chat and not as anthropic: api: [messages]"));
    access.api = {ModelApi::kChat, ModelApi::kMessages};
    CHECK(unspoken(gateway, access).empty());
    access.api = {ModelApi::kMessages};
    for (const auto as : {MethodGateway::As::kOpenai, MethodGateway::As::kOpenaiResponses}) {
      gateway.as = as;
      CHECK(has(unspoken(gateway, access), "speaks messages and not as openai"));
    }
  }

  TEST_CASE("prices by tier, region and threshold travel with the settings, older ones unchanged") {
    Diagnostics out;
    Settings s;
    s.campaign = "c";
    s.run_cap = MicroUsd::from_micros(1);
    s.cost_model = parse_cost_model(
        "action_type,unit,unit_price,model,tier,region,above\nllm_request,token,1,m,,,\n"
        "llm_request,token,2,m,fast,us,1000\n",
        "p.csv", out);
    REQUIRE(out.text() == "");
    const auto opened = open_settings_bundle(make_bundle(s), digest_of(s));
    REQUIRE_MESSAGE(opened.ok(), opened.error().detail);
    CHECK(opened->cost_model.rows[1].tier == "fast");
    CHECK(opened->cost_model.rows[1].region == "us");
    CHECK(opened->cost_model.rows[1].above == 1000);
    s.cost_model = fallback_cost_model();
    CHECK(canonical_form(s).find("tier") == std::string::npos);
  }
}

}  // namespace proctor
