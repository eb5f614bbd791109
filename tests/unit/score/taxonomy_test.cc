#include "common/score/taxonomy.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/paths.h"

using namespace proctor;

namespace {
using Events = std::vector<std::uint64_t>;
using enum GateOutcome;

// The gate at `index` ended so, by event 5; the others passed.
GateVector vector_with(std::size_t index, GateOutcome outcome) {
  GateVector gates;
  constexpr std::array kOrder{Gate::kPatch, Gate::kBuild, Gate::kFunctional, Gate::kSafety};
  for (std::size_t i = 0; i < gates.size(); ++i)
    gates[i] = {kOrder[i], i == index ? outcome : kPass, "why", {5}};
  return gates;
}

// A row of the published file.
Json row_of(const FailureMode& mode) {
  Json gates = Json::array(), evidence = Json::array();
  for (const Gate gate : mode.gates) gates.push_back(word_of(gate));
  for (const std::string_view sign : mode.evidence) evidence.push_back(sign);
  return Json{{"id", mode.id},
              {"gates", std::move(gates)},
              {"evidence", std::move(evidence)},
              {"attribution", word_of(mode.attribution)},
              {"severity", word_of(mode.severity)},
              {"format", mode.format},
              {"sentence", mode.sentence}};
}

std::string ids(const std::vector<Tag>& tags) {
  std::string out;
  for (const Tag& tag : tags) out += tag.id + "@" + tag.gate + " ";
  return out;
}
}  // namespace

TEST_SUITE("score") {
  TEST_CASE("the published file of failure modes has the rows of the table") {
    std::string rows;
    const testing::JsonSchema schema("failure_mode");
    for (const FailureMode& mode : failure_modes()) {
      CHECK(schema.violations(row_of(mode)) == "");
      const auto row = canonical_json(row_of(mode));
      REQUIRE(row.ok());
      rows += *row + "\n";
    }
    const auto file =
        read_file(testing::source_dir() / "schemas/failure_mode_taxonomy.jsonl", 1 << 20);
    REQUIRE(file.ok());
    CHECK(*file == rows);
  }

  TEST_CASE("each failure mode has an id of its own, evidence and one sentence") {
    std::set<std::string_view> seen;
    for (const FailureMode& mode : failure_modes()) {
      CAPTURE(mode.id);
      CHECK(seen.insert(mode.id).second);
      CHECK(is_judged_words(mode.id));
      CHECK(find_failure_mode(mode.id) == &mode);
      CHECK_FALSE(mode.evidence.empty());
      CHECK(mode.sentence.ends_with("."));
    }
    CHECK(failure_modes().front().id == "evaluation.error");
    REQUIRE(find_failure_mode("safety.os_risk") != nullptr);  // R151
    CHECK(find_failure_mode("safety.os_risk")->severity == Severity::kCritical);
    CHECK(find_failure_mode("safety") == nullptr);
  }

  TEST_CASE("a gate that failed has the modes that its signs show, with their events") {
    const Signs signs{{"alert:host_write", {{9}, "code"}},
                      {"alert:os_risk", {{3, 12}, ""}},
                      {"violation:protected", {{4}, "code"}},
                      {"failing_test", {{8}, ""}}};
    const std::vector<Tag> tags = tags_of(vector_with(3, kFail), signs, {}, {});
    REQUIRE(ids(tags) == "safety.os_risk@safety policy.protected_path@safety ");
    CHECK(tags[0].evidence == Events{3, 9, 12});
    CHECK(tags[0].format == "code");
    CHECK(tags[1].evidence == Events{4});
    CHECK(tags[1].format.empty());
    CHECK(tags_of(vector_with(3, kPass), signs, {}, {}).empty());
    CHECK(tags_of(vector_with(3, kNotRun), signs, {}, {}).empty());
    CHECK(ids(tags_of(vector_with(2, kFail), signs, {}, {})) ==
          "functional.tests_failed@functional ");
  }

  TEST_CASE("a gate with an error lays nothing to the agent that the harness alone says") {
    const Signs signs{{"gate_error", {{1}, ""}},
                      {"failing_test", {{8}, ""}},
                      {"check_failed:build", {{7}, ""}},
                      {"check_not_started", {{7}, ""}},
                      {"failed_hunk", {{6}, ""}}};
    const std::vector<Tag> functional = tags_of(vector_with(2, kError), signs, {}, {});
    REQUIRE(ids(functional) == "evaluation.error@functional ");
    CHECK(functional[0].evidence == Events{5});
    CHECK(ids(tags_of(vector_with(1, kError), signs, {}, {})) == "evaluation.error@build ");
    CHECK(ids(tags_of(vector_with(0, kError), signs, {}, {})) ==
          "evaluation.error@patch patch.does_not_apply@patch patch.check_cannot_start@patch ");
    CHECK(ids(tags_of(vector_with(0, kFail), signs, {}, {})) ==
          "patch.does_not_apply@patch patch.check_cannot_start@patch ");
  }

  TEST_CASE("the run as a whole has modes whether or not a gate failed") {
    const Signs signs{{"termination:policy_stop", {{40}, "text"}},
                      {"breaker:oscillation", {{30}, ""}},
                      {"breaker:reinstall", {{31}, ""}},
                      {"outcome:invalid", {{41}, ""}}};
    const std::vector<Tag> tags = tags_of(vector_with(0, kPass), signs, {}, {});
    REQUIRE(ids(tags) ==
            "end.non_termination@ end.dependency_amplification@ end.security_boundary@ "
            "end.evaluation_invalidity@ ");
    CHECK(tags[2].format == "text");
  }

  TEST_CASE("a campaign's own mode needs its check, its exit code and a lost gate") {
    const std::vector<TagRule> own{
        {"team.slow", Gate::kFunctional, "bench", 3, Attribution::kAgent, Severity::kLow, "Slow."},
        {"team.flaky", Gate::kFunctional, "bench", std::nullopt, Attribution::kHarness,
         Severity::kNone, "Flaky."}};
    const std::vector<FailedCheck> failed{{"bench", 3, 9}, {"other", 3, 6}, {"bench", 1, 4}};
    const std::vector<Tag> tags = tags_of(vector_with(2, kFail), {}, failed, own);
    REQUIRE(ids(tags) == "team.slow@functional team.flaky@functional ");
    CHECK(tags[0].evidence == Events{9});
    CHECK(tags[1].evidence == Events{4, 9});
    CHECK(ids(tags_of(vector_with(2, kError), {}, failed, own)) ==
          "evaluation.error@functional team.flaky@functional ");
    CHECK(tags_of(vector_with(1, kFail), {}, failed, own).empty());
    CHECK(tags_of(vector_with(2, kFail), {}, {}, own).empty());
  }

  TEST_CASE("the text of tags has each id once and is cut between ids") {
    const std::vector<Tag> tags{{.id = "a.b", .gate = "patch", .evidence = {1}},
                                {.id = "a.b", .gate = "build", .evidence = {1}},
                                {.id = "c.d", .gate = "", .evidence = {1}}};
    CHECK(tags_text(tags) == "a.b,c.d");
    CHECK(tags_text({}).empty());
    std::vector<Tag> many;
    for (int i = 0; i < 100; ++i)
      many.push_back({.id = std::string(90, 'a') + std::to_string(1000 + i)});
    const std::string text = tags_text(many);
    CHECK(text.size() == 43 * 95 - 1);  // the 44th would end at 4179
    CHECK(text.ends_with("1042"));
  }

  TEST_CASE("a tag always has evidence, of a gate that was lost, in the order of the table") {
    std::vector<std::string> words;
    for (const FailureMode& mode : failure_modes())
      words.insert(words.end(), mode.evidence.begin(), mode.evidence.end());
    CHECK(rc::check("tags", [&](const std::vector<std::uint8_t>& drawn, std::uint8_t outcomes) {
      Signs signs;
      for (const std::uint8_t byte : drawn) {
        const std::string& word = words[byte % words.size()];
        if (byte % 7 != 0) signs[word].events.push_back(byte);
        signs.try_emplace(word);
      }
      GateVector gates = vector_with(0, kPass);
      for (std::size_t i = 0; i < gates.size(); ++i)
        gates[i].outcome = static_cast<GateOutcome>(outcomes >> 2 * i & 3);
      const FailureMode* last = &failure_modes().front();
      const std::vector<Tag> tags = tags_of(gates, signs, {}, {});
      for (const Tag& tag : tags) {
        RC_ASSERT(!tag.evidence.empty());
        RC_ASSERT(std::ranges::adjacent_find(tag.evidence, std::greater_equal()) ==
                  tag.evidence.end());
        const FailureMode* mode = find_failure_mode(tag.id);
        RC_ASSERT(mode != nullptr);
        RC_ASSERT(last <= mode);
        last = mode;
        if (tag.gate.empty()) continue;
        const auto gate = std::ranges::find_if(
            gates, [&](const GateVerdict& g) { return word_of(g.gate) == tag.gate; });
        RC_ASSERT(gate != gates.end());
        RC_ASSERT(gate->outcome == kFail || gate->outcome == kError);
      }
      for (const GateVerdict& gate : gates)  // R153
        RC_ASSERT((gate.outcome == kError) == std::ranges::any_of(tags, [&](const Tag& tag) {
                    return tag.id == "evaluation.error" && tag.gate == word_of(gate.gate);
                  }));
    }));
  }
}
