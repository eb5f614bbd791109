#include "common/score/graded_score.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "common/base/json_fields.h"
#include "tests/support/json_schema.h"

using namespace proctor;

namespace {
JudgeRules rules(std::uint64_t lambda = kMillion) {
  JudgeRules out;
  out.lambda = lambda;
  out.lines = 80;
  out.files = 4;
  return out;
}

// Three shares that are one million together.
RubricWeights weights(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t minimal = a % (kMillion + 1);
  const std::uint64_t trace = b % (kMillion - minimal + 1);
  return {minimal, trace, kMillion - minimal - trace};
}
}  // namespace

TEST_SUITE("score") {
  TEST_CASE("the score is that of the specification's oracles") {
    const GradedScore some = graded_score(rules(), {40, 1, true, 4, 5});
    CHECK(score_text(some.s) == "0.763265329856");
    CHECK(score_text(some.minimal) == "0.606530659713");
    CHECK(some.trace == 1);
    CHECK(score_text(some.maint) == "0.8");
    CHECK(score_text(graded_score(rules(), {40, 1, true, 5, 5}).s) == "0.803265329856");
  }

  TEST_CASE("without a check that rates it the other dimensions share the weight") {
    const GradedScore sample = graded_score(rules(), {8, 0, true, 0, 0});
    CHECK(score_text(sample.s) == "0.940523386272");
    CHECK(score_text(sample.minimal) == "0.904837418036");
    CHECK(score_text(sample.weight_minimal) == "0.625");
    CHECK(score_text(sample.weight_trace) == "0.375");
    CHECK(sample.weight_maint == 0);
    CHECK(sample.maint == 0);
    JudgeRules maint_alone = rules();
    maint_alone.weights = {0, 0, kMillion};
    CHECK(graded_score(maint_alone, {0, 0, true, 0, 0}).s == 1);
    CHECK(graded_score(maint_alone, {0, 0, false, 0, 0}).s == 0.5);
  }

  TEST_CASE("the larger of lines and files counts, and an empty patch loses nothing") {
    CHECK(graded_score(rules(), {0, 0, true, 0, 0}).minimal == 1);
    CHECK(graded_score(rules(), {0, 4, true, 0, 0}).minimal ==
          graded_score(rules(), {80, 1, true, 0, 0}).minimal);
    CHECK(graded_score(rules(), {80, 4, true, 0, 0}).minimal ==
          graded_score(rules(), {80, 0, true, 0, 0}).minimal);
    CHECK(graded_score(rules(1'000'000'000), {4000, 1, true, 0, 0}).minimal == 0);
    CHECK(score_text(graded_score(rules(), {0, 0, false, 1, 1}).s) == "0.7");
  }

  TEST_CASE("the same dimensions under other weights are what those weights would have given") {
    CHECK(rc::check("weighted",
                    [](std::uint16_t lines, std::uint8_t files, bool traced, std::uint8_t passed,
                       std::uint8_t more, std::uint32_t a, std::uint32_t b) {
                      const ScoreFacts facts{lines, files, traced, passed,
                                             static_cast<std::uint64_t>(passed) + more};
                      JudgeRules other = rules();
                      other.weights = weights(a, b);
                      RC_ASSERT(weighted(graded_score(rules(), facts), other.weights) ==
                                graded_score(other, facts).s);
                    }));
  }

  TEST_CASE("the score is from 0 to 1, and a larger change never has a higher one") {
    CHECK(rc::check("monotone", [](std::uint32_t lines, std::uint16_t more, std::uint8_t files,
                                   std::uint8_t passed, std::uint8_t failed, std::uint32_t a,
                                   std::uint32_t b, std::uint32_t lambda) {
      JudgeRules r = rules(1 + static_cast<std::uint64_t>(lambda));
      r.weights = weights(a, b);
      const ScoreFacts facts{lines, files, true, passed,
                             static_cast<std::uint64_t>(passed) + failed};
      const double s = graded_score(r, facts).s;
      RC_ASSERT(0 <= s && s <= 1);
      ScoreFacts larger = facts;
      larger.lines += more;
      RC_ASSERT(graded_score(r, larger).s <= s);
      larger.files += more;
      RC_ASSERT(graded_score(r, larger).s <= s);
      ScoreFacts untraced = facts;
      untraced.traced = false;
      RC_ASSERT(graded_score(r, untraced).s <= s);
    }));
  }

  TEST_CASE("a report holds a score as texts of 12 digits, and gives them again") {
    const GradedScore score = graded_score(rules(), {40, 1, true, 4, 5});
    const Json json = to_json(score);
    CHECK(json.at("s") == "0.763265329856");
    CHECK(json.at("weights").at("trace") == "0.3");
    const auto again = from_json<GradedScore>(json);
    REQUIRE(again.ok());
    CHECK(to_json(*again) == json);
  }

  TEST_CASE("the rubric's schema accepts the rubric, and no other gates or weights") {
    const testing::JsonSchema schema("gated_rubric");
    const Json json = rubric_schema({});
    CHECK(schema.violations(json) == "");
    CHECK(json.at("dimensions").at(0).at("weight") == "0.5");
    CHECK(schema.violations(rubric_schema({1, 999'999, 0})) == "");
    Json changed = json;
    changed["gates"][1]["name"] = "compile";
    CHECK_FALSE(schema.accepts(changed));
    changed = json;
    changed["gates"][2]["outcomes"] = Json::array({"pass", "fail"});
    CHECK_FALSE(schema.accepts(changed));
    changed = json;
    changed["gates"].list().pop_back();
    CHECK_FALSE(schema.accepts(changed));
    changed = json;
    changed["dimensions"][0]["weight"] = "-0.1";
    CHECK_FALSE(schema.accepts(changed));
    changed = json;
    changed["required_artifacts"][0] = "../manifest.json";
    CHECK_FALSE(schema.accepts(changed));
  }
}
