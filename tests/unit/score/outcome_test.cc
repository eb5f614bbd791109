#include "common/score/outcome.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace proctor;

namespace {
using Checks = std::vector<std::optional<CheckOutcome>>;
constexpr auto kPass = CheckOutcome::kPass;
constexpr auto kFail = CheckOutcome::kFail;
constexpr auto kError = CheckOutcome::kError;
}  // namespace

TEST_SUITE("score") {
  TEST_CASE("a run ends as R057 to R061 say") {
    struct Row {
      const char* what;
      bool identity;
      Checks checks;
      RunOutcome expected;
    };
    const std::vector<Row> rows{
        {"all pass", true, {kPass, kPass}, RunOutcome::kSuccess},
        {"one pass", true, {kPass}, RunOutcome::kSuccess},
        {"one fail", true, {kPass, kFail}, RunOutcome::kFailure},
        {"one error", true, {kPass, kError}, RunOutcome::kAcceptanceError},
        {"fail and error", true, {kFail, kError}, RunOutcome::kAcceptanceError},
        {"error then fail", true, {kError, kFail}, RunOutcome::kAcceptanceError},
        {"one missing", true, {kPass, std::nullopt}, RunOutcome::kInvalid},
        {"missing beats fail", true, {kFail, std::nullopt}, RunOutcome::kInvalid},
        {"missing beats error", true, {std::nullopt, kError}, RunOutcome::kInvalid},
        {"no check at all", true, {}, RunOutcome::kInvalid},
        {"identity broken", false, {kPass}, RunOutcome::kInvalid},
        {"identity broken and fail", false, {kFail}, RunOutcome::kInvalid},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CHECK(decide(row.identity, row.checks) == row.expected);
    }
  }

  TEST_CASE("every suite of four checks agrees with the definitions read one by one") {
    const std::array<std::optional<CheckOutcome>, 4> values{std::nullopt, kPass, kFail, kError};
    for (std::size_t code = 0; code < 256; ++code) {
      Checks checks;
      std::array<int, 4> seen{};
      for (std::size_t i = 0, rest = code; i < 4; ++i, rest /= 4) {
        checks.push_back(values[rest % 4]);
        ++seen[rest % 4];
      }
      const bool scorable = seen[0] == 0;
      const RunOutcome outcome = decide(true, checks);
      CHECK((outcome == RunOutcome::kInvalid) == !scorable);
      CHECK((outcome == RunOutcome::kSuccess) == (seen[1] == 4));
      CHECK((outcome == RunOutcome::kFailure) == (scorable && seen[2] > 0 && seen[3] == 0));
      CHECK((outcome == RunOutcome::kAcceptanceError) == (scorable && seen[3] > 0));
    }
  }

  TEST_CASE("how a patch fitted and what was broken are said in few words") {
    CHECK(patch_words({}).empty());
    CHECK(patch_words({"exact"}).empty());
    CHECK(patch_word({}).empty());
    CHECK(patch_word({"exact"}).empty());
    CHECK(patch_word({"exact", "", {"a:1", "b:2"}}) == "conflict_markers");
    CHECK(patch_word({"three_way", "", {"a:1"}}) == "three_way, conflict_markers");
    CHECK(patch_word({"", "a; patch: exact: line 3", {"a:1"}}) == "refused");
    CHECK(patch_words({"three_way", "", {"a:1"}}) == "; patch: three_way, conflict_markers (a:1)");
    CHECK(violation_words(0, "").empty());
    CHECK(violation_words(3, "protected: tests/a.py") == "; violations: 3 (protected: tests/a.py)");
    CHECK(violation_words(1, std::string(9'000, 'x')).size() < 300);
    CHECK(worse_rung("", "exact") == "exact");
    CHECK(worse_rung("three_way", "whitespace") == "three_way");
    CHECK(worse_rung("exact", "whitespace") == "whitespace");
  }
}
