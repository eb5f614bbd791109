// Which cap holds, and where it came from.
#include "common/contract/caps.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/document.h"

namespace proctor {
namespace {

std::string held(const CapRules& rules, const std::string& stage, const Contract& contract,
                 Cap cap) {
  const EffectiveCaps e = effective_caps(rules, stage, contract);
  return format_cap(cap, cap_value(e.caps, cap)) + " of " + e.source(cap).field;
}

CampaignText campaign(const std::string& yaml, std::string& errors) {
  Diagnostics out;
  const auto document = read_document(yaml, Format::kYaml, "campaign.yaml", out);
  REQUIRE(document);
  CampaignText text = parse_campaign(*document, GivenFiles(), out);
  errors = out.text();
  return text;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("the most particular value of the campaign holds and a contract only lowers it") {
    Contract c;
    c.id = "fix";
    c.policy.wall = std::chrono::hours(9);
    CapRules rules;
    rules.run = MicroUsd::from_micros(5'000'000);
    CHECK(held(rules, "pilot", c, Cap::kUsd) == "5.00 USD of budget.run");
    CHECK(held(rules, "pilot", c, Cap::kWall) == "30m of ");
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "none of ");
    rules.campaign.tokens = 100;
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "100 of caps.tokens");
    rules.stages["pilot"].tokens = 300;
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "300 of stages.pilot.caps.tokens");
    CHECK(held(rules, "main", c, Cap::kTokens) == "100 of caps.tokens");
    rules.tasks["fix"].tokens = 200;
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "200 of task_caps.fix.tokens");
    c.caps.tokens = 900;
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "200 of task_caps.fix.tokens");
    c.caps.tokens = 0;
    CHECK(held(rules, "pilot", c, Cap::kTokens) == "0 of caps.tokens");
    rules.tasks["fix"].usd = MicroUsd::from_micros(6'000'000);
    CHECK(held(rules, "pilot", c, Cap::kUsd) == "5.00 USD of budget.run");
    c.caps.usd = MicroUsd::from_micros(1);
    CHECK(held(rules, "pilot", c, Cap::kUsd) == "0.000001 USD of caps.usd");
    rules.campaign.wall = std::chrono::hours(9);
    CHECK(held(rules, "pilot", c, Cap::kWall) == "9h of policy.wall");
    c.policy.wall = std::chrono::hours(10);
    CHECK(held(rules, "pilot", c, Cap::kWall) == "9h of caps.wall");
    rules.campaign.active = std::chrono::seconds(90);
    CHECK(held(rules, "pilot", c, Cap::kActive) == "90s of caps.active");
  }

  TEST_CASE("no contract raises a cap") {
    CHECK(rc::check("a contract only lowers", [] {
      const auto some = [] { return *rc::gen::inRange<std::uint64_t>(0, 5); };
      CapRules rules;
      rules.run = MicroUsd::from_micros(4);
      Contract plain, own;
      plain.id = own.id = "t";
      plain.policy.wall = own.policy.wall = std::chrono::hours(1);
      for (const Cap cap : kCaps) {
        if (some() < 3) set_cap(rules.campaign, cap, some());
        if (some() < 3) set_cap(rules.stages["s"], cap, some());
        if (some() < 3) set_cap(rules.tasks["t"], cap, some());
        if (some() < 3) set_cap(own.caps, cap, some());
      }
      const EffectiveCaps before = effective_caps(rules, "s", plain);
      const EffectiveCaps after = effective_caps(rules, "s", own);
      for (const Cap cap : kCaps) {
        const auto a = cap_value(before.caps, cap), b = cap_value(after.caps, cap);
        if (a) RC_ASSERT(b && *b <= *a);
        if (const auto c = cap_value(own.caps, cap)) RC_ASSERT(b && *b <= *c);
      }
    }));
  }

  TEST_CASE("caps of stages and tasks are read with the place of each") {
    std::string errors;
    const CampaignText text = campaign(
        "name: n\nmethods: [noop]\nbudget: {global: \"9\"}\n"
        "caps: {model_calls: 4}\n"
        "stages:\n  - name: pilot\n    caps:\n      tokens: 7\n"
        "task_caps:\n  fix: {active: 5m,\n    calls_per_minute: 60}\n",
        errors);
    CHECK(errors == "");
    Contract c;
    c.id = "fix";
    const EffectiveCaps e = effective_caps(text.campaign.cap_rules(), "pilot", c);
    const auto from = [&](Cap cap) {
      return describe_source(e.source(cap), text.campaign.origin, c.origin);
    };
    CHECK(from(Cap::kModelCalls) == "campaign.yaml:4: caps.model_calls");
    CHECK(from(Cap::kTokens) == "campaign.yaml:8: stages.pilot.caps.tokens");
    CHECK(from(Cap::kActive) == "campaign.yaml:10: task_caps.fix.active");
    CHECK(from(Cap::kCallsPerMinute) == "campaign.yaml:11: task_caps.fix.calls_per_minute");
    CHECK(from(Cap::kUsd) == "default");
    CHECK(from(Cap::kInstalls) == "default");
    const Settings settings = settings_of(text.campaign);
    CHECK(effective_caps(settings.cap_rules(), "pilot", c).caps == e.caps);
  }

  TEST_CASE(
      "rates of the whole campaign are read with the place of each and go into its settings") {
    std::string errors;
    const CampaignText text = campaign(
        "name: n\nmethods: [noop]\nbudget: {global: \"9\"}\n"
        "rates:\n  calls_per_minute: 600\n  providers:\n    zeta: 20\n    acme: 1\n",
        errors);
    CHECK(errors == "");
    const Rates& rates = text.campaign.rates;
    CHECK(rates == Rates{600, {{"acme", 1}, {"zeta", 20}}});
    CHECK(settings_of(text.campaign).rates == rates);
    std::string places;
    for (const RateBucket& b : rates.buckets())
      places +=
          b.name + "@" + std::to_string(text.campaign.origin.at.at("rates." + b.name).line) + " ";
    CHECK(places == "calls_per_minute@5 providers.acme@8 providers.zeta@7 ");
    CHECK(digest_of(settings_of(text.campaign)) != digest_of(settings_of(Campaign{})));
  }

  TEST_CASE("mistakes in rates are named with their place") {
    std::string errors;
    static_cast<void>(
        campaign("name: n\nmethods: [noop]\nbudget: {global: \"9\"}\n"
                 "rates: {calls_per_minute: 0, provider: {}, providers: {a: -1, b: 1000001}}\n",
                 errors));
    CHECK(errors ==
          "campaign.yaml:4:30: rates.provider: found the unknown key \"provider\", expected "
          "calls_per_minute or providers (did you mean \"providers\"?)\n"
          "campaign.yaml:4:27: rates.calls_per_minute: found \"0\", expected a whole number from 1 "
          "to "
          "1000000\n"
          "campaign.yaml:4:59: rates.providers.a: found \"-1\", expected a whole number from 1 to "
          "1000000\n"
          "campaign.yaml:4:66: rates.providers.b: found \"1000001\", expected a whole number from "
          "1 to "
          "1000000\n");
    static_cast<void>(campaign(
        "name: n\nmethods: [noop]\nbudget: {global: \"9\"}\nrates: {providers: [acme]}\n", errors));
    CHECK(errors ==
          "campaign.yaml:4:20: rates.providers: found a list, expected a mapping of providers to "
          "calls "
          "per minute\n");
  }

  TEST_CASE("mistakes in caps are named with their place") {
    std::string errors;
    static_cast<void>(
        campaign("name: n\nmethods: [noop]\nbudget: {global: \"9\"}\n"
                 "caps: {tokens: -1, calls_per_minute: 100001}\n"
                 "stages: [{name: a, caps: {tool_call: 1}}]\n"
                 "task_caps: [1]\n",
                 errors));
    CHECK(errors ==
          "campaign.yaml:5:27: stages[0].caps.tool_call: found the unknown key \"tool_call\", "
          "expected usd, tokens, tool_calls, failed_acceptance_cycles, wall, model_calls, "
          "dependency_installs, active or calls_per_minute (did you mean \"tool_calls\"?)\n"
          "campaign.yaml:4:16: caps.tokens: found \"-1\", expected a whole number from 0 to "
          "9007199254740991\n"
          "campaign.yaml:4:38: caps.calls_per_minute: found \"100001\", expected a whole number "
          "from 0 to 100000\n"
          "campaign.yaml:6:12: task_caps: found a list, expected a mapping of contract ids to "
          "caps\n");
  }
}

}  // namespace proctor
