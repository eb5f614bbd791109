// schemas/registration.schema.json describes what we write, checked by a validator that is not
// ours.
#include <doctest/doctest.h>

#include <set>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/plan/registration.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using proctor::testing::JsonSchema;

namespace {

Campaign campaign() {
  Campaign c;
  c.name = "pilot";
  c.stages = {{"main", {}}};
  c.strata = {"language"};
  c.contracts.resize(1);
  c.contracts[0].id = "json-lib";
  c.methods.resize(1);
  c.methods[0].name = "noop";
  c.envelopes.stage["main"] = MicroUsd::from_micros(15'000'000);
  c.envelopes.tasks["json-lib"] = MicroUsd::from_micros(7'000'001);
  c.caps.tokens = 100'000;
  c.caps.wall = std::chrono::minutes(30);
  c.cost_model.version = "file";
  return c;
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a registration satisfies its schema and an altered one does not") {
    const JsonSchema schema("registration");

    auto registration = make_registration(campaign(), sha256("plan"), WallTime(1));
    REQUIRE(registration.ok());
    REQUIRE(add_removal(*registration, "json-lib", "flaky", WallTime(2)).ok());
    const auto file = parse_json(to_json(*registration));
    REQUIRE(file.ok());
    CHECK(schema.accepts(*file));

    // Whatever is taken away or added is noticed: the schema knows every member.
    for (const auto& member : (*file)["frozen"].items()) {
      CAPTURE(member.first);
      Json without = *file;
      without["frozen"].erase(member.first);
      // Versions of before registered none, and the digest still tells.
      const bool later = member.first == "limits" || member.first == "rubric";
      CHECK(schema.accepts(without) == later);
      CHECK(!parse_registration(without.dump()).ok());
    }
    Campaign forecast = campaign();
    forecast.cost_inputs.emplace().digest = sha256("inputs");
    const auto with =
        parse_json(to_json(*make_registration(forecast, sha256("plan"), WallTime(1))));
    REQUIRE(with.ok());
    CHECK(schema.accepts(*with));
    Json broken_inputs = *with;
    broken_inputs["frozen"]["cost_model_inputs"] = "12ab";
    CHECK(!schema.accepts(broken_inputs));
    Json more = *file;
    more["frozen"]["more"] = 1;
    CHECK(!schema.accepts(more));
    Json short_digest = *file;
    short_digest["frozen"]["plan"] = "12ab";
    CHECK(!schema.accepts(short_digest));
    Json no_reason = *file;
    no_reason["removals"][0].erase("reason");
    CHECK(!schema.accepts(no_reason));
  }

  TEST_CASE("the schema lists the members that a registration may have, and no other") {
    Registration r = make_registration(campaign(), sha256("plan"), WallTime(1)).value();
    r.cost_inputs = r.plan;
    r.stage_rules["main"] = r.distrusted["json-lib"] = "why";
    r.stage_draws["main"].replicates = 2;
    r.derived_from["campaign"] = "json-1";
    AnalysisPlan& plan = r.analysis_plan.emplace();
    plan.multiplicity = AnalysisPlan::Multiplicity::kMaxT;
    plan.draws = kMostPlanDraws;
    plan.weights_key = "language";
    plan.weights["go"] = {1'000'000};
    plan.unit = AnalysisPlan::Unit::kTask;
    REQUIRE(add_removal(r, "json-lib", "flaky", WallTime(2), "Ada").ok());
    const Json file = parse_json(to_json(r)).value();
    const JsonSchema schema("registration");
    CHECK(schema.accepts(file));
    const auto names = [](const Json& object) {
      std::set<std::string> out;
      for (const auto& [name, value] : object.items()) out.insert(name);
      return out;
    };
    const auto same = [&](const std::string& pointer, const Json& written) {
      CAPTURE(pointer);
      CHECK(names(testing::at_pointer(schema.document(), pointer + "/properties")) ==
            names(written));
    };
    const Json& frozen = file["frozen"];
    same("", file);
    same("/properties/frozen", frozen);
    same("/properties/removals/items", file["removals"][0]);
    same("/properties/frozen/properties/analysis_plan", frozen["analysis_plan"]);
    same("/properties/frozen/properties/cost_model", frozen["cost_model"]);
    same("/properties/frozen/properties/stage_draws/additionalProperties",
         frozen["stage_draws"]["main"]);
  }
}
