// What comparisons rest on: chance alone, repositories, outcomes that nobody knows.
#include <doctest/doctest.h>

#include "common/base/json.h"
#include "coordinator/aggregate/analysis.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx ten_digits(double expected) {
  return doctest::Approx(expected).epsilon(2e-9);
}

struct Counts {
  int success = 0, failure = 0, error = 0, invalid = 0;
};

void add(Runs& runs, std::size_t task, const std::string& method, const Counts& n) {
  const std::string name = "task-" + std::to_string(task);
  for (int i = 0; i < n.success; ++i) runs.ended(name, "c", method, RunOutcome::kSuccess);
  for (int i = 0; i < n.failure; ++i) runs.ended(name, "c", method, RunOutcome::kFailure);
  for (int i = 0; i < n.error; ++i) runs.ended(name, "c", method, RunOutcome::kAcceptanceError);
  for (int i = 0; i < n.invalid; ++i) runs.ended(name, "c", method, RunOutcome::kInvalid);
}

ReportInput campaign(Runs runs) {
  ReportInput input;
  input.campaign = "made";
  input.strata_keys = {"language"};
  input.runs = std::move(runs.records);
  input.contrasts = {{"a", "b"}};
  return input;
}

// Eight tasks of four runs: successes 4 3 0 2 4 1 0 3 and 3 1 0 2 3 0 1 1.
Runs eight_tasks() {
  const std::vector<int> a = {4, 3, 0, 2, 4, 1, 0, 3}, b = {3, 1, 0, 2, 3, 0, 1, 1};
  Runs runs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    add(runs, i, "a", {a[i], 4 - a[i], 0, 0});
    add(runs, i, "b", {b[i], 4 - b[i], 0, 0});
  }
  return runs;
}

const Contrast& only_contrast(const CampaignReport& report) {
  REQUIRE(report.analysis->contrasts.size() == 1);
  return report.analysis->contrasts.front();
}

// A solves all but one run; of b some runs ended in errors and some are invalid.
Runs with_unknowns() {
  Runs runs;
  for (std::size_t i = 0; i < 8; ++i) {
    add(runs, i, "a", i < 7 ? Counts{2, 0, 0, 0} : Counts{1, 1, 0, 0});
    add(runs, i, "b", i < 3 ? Counts{0, 0, 2, 0} : i < 6 ? Counts{0, 2, 0, 0} : Counts{0, 1, 0, 1});
  }
  return runs;
}

}  // namespace

// Figures by NumPy and SciPy, all ways tried.
TEST_SUITE("aggregate") {
  TEST_CASE("a difference that chance alone gives two equal methods is a tie") {
    const CampaignReport report = build_report(campaign(eight_tasks()));
    const Contrast& c = only_contrast(report);
    REQUIRE(c.equals.has_value());
    CHECK(*c.difference.estimate.value == ten_digits(0.1875));
    CHECK(c.equals->gap95 == ten_digits(0.1875));
    CHECK(c.equals->p == ten_digits(0.12425182215743441));
    CHECK(c.is_tie());
    CHECK(*report.analysis->rates[0].rerun.standard_error == ten_digits(0.06505206248331664));
    // Nobody said which repositories they are of.
    CHECK_FALSE(c.by_repository.has_value());
    const std::string text = render_text(report);
    CHECK(text.find("What the comparisons rest on") != std::string::npos);
    CHECK(text.find("chance alone (95 %)") != std::string::npos);
  }

  TEST_CASE("tasks of one repository are one unit where repositories are known") {
    Runs runs = eight_tasks();
    const std::vector<std::uint32_t> of = {1, 1, 1, 2, 2, 3, 3, 4};
    for (RunRecord& run : runs.records)
      run.repository = of[static_cast<std::size_t>(run.task.back() - '0')];
    const Contrast& c = only_contrast(build_report(campaign(runs)));
    REQUIRE(c.by_repository.has_value());
    CHECK(c.by_repository->mean.groups == 4);
    CHECK(*c.by_repository->mean.estimate.standard_error == ten_digits(0.07666796065160589));
    CHECK(c.by_repository->mean.estimate.interval->low == ten_digits(-0.07893503907853655));
    CHECK(c.by_repository->flips.p == ten_digits(0.25));
    // The verdict is the registered one.
    CHECK(c.flips->p == ten_digits(0.15625));
  }

  TEST_CASE("a verdict is turned by as many unknown outcomes as were tried, and not by fewer") {
    const CampaignReport report = build_report(campaign(with_unknowns()));
    const Contrast& c = only_contrast(report);
    CHECK(c.verdict == ContrastVerdict::kBetter);
    REQUIRE(c.tipping.has_value());
    CHECK(c.tipping->unknown == 8);
    REQUIRE(c.tipping->turned.has_value());
    CHECK(*c.tipping->turned == 5);
    CHECK_FALSE(c.tipping->for_a);
    CHECK(c.tipping->becomes == ContrastVerdict::kNotInferior);
    CHECK(render_text(report).find("5 of 8 for b: not inferior") != std::string::npos);
    const std::string csv = render_contrasts_csv(*report.analysis);
    CHECK(csv.find(",8,5,not inferior,,,,,,no\n") != std::string::npos);
  }

  TEST_CASE("a verdict that stands whatever became of all of them is said to") {
    Runs runs;
    for (std::size_t i = 0; i < 8; ++i) {
      add(runs, i, "a", {2, 0, 0, 0});
      add(runs, i, "b", i < 7 ? Counts{0, 2, 0, 0} : Counts{0, 1, 0, 1});
    }
    const CampaignReport report = build_report(campaign(runs));
    const Contrast& c = only_contrast(report);
    CHECK(c.verdict == ContrastVerdict::kBetter);
    CHECK(c.tipping->unknown == 1);
    CHECK_FALSE(c.tipping->turned.has_value());
    CHECK(render_text(report).find("none of 1") != std::string::npos);
    CHECK(only_contrast(build_report(campaign(eight_tasks()))).tipping->unknown == 0);
  }

  TEST_CASE("many unknown outcomes are tried at distances, and what is said suffices") {
    Runs runs;
    for (std::size_t i = 0; i < 2'000; ++i) {
      add(runs, i, "a", {3, 0, 0, 0});
      add(runs, i, "b", {1, 0, 1, 1});
    }
    const Contrast& c = only_contrast(build_report(campaign(runs)));
    REQUIRE(c.tipping.has_value());
    CHECK(c.tipping->unknown == 4'000);
    REQUIRE(c.tipping->turned.has_value());
    CHECK(*c.tipping->turned <= 4'000);
    CHECK(c.tipping->becomes != c.verdict);
  }

  TEST_CASE("the schema knows what the comparisons rest on") {
    const JsonSchema schema("campaign_report");
    Runs runs = with_unknowns();
    for (RunRecord& run : runs.records)
      run.repository = 1 + static_cast<std::uint32_t>(run.task.back()) % 3;
    const Json report = parse_json(render_json(build_report(campaign(runs)))).value();
    CHECK(schema.violations(report) == "");
    const Json& contrast = report["analysis"]["contrasts"][0];
    CHECK(contrast["by_repository"]["repositories"] == 3);
    CHECK(contrast["tipping"]["turned_by"] == 5);
    CHECK(contrast["tie"] == false);
    for (const char* at : {"/analysis/contrasts/0", "/analysis/contrasts/0/by_repository",
                           "/analysis/contrasts/0/tipping", "/analysis/rates/0/rerun"})
      for (const auto& member : at_pointer(report, at).items()) {
        CAPTURE(member.first);
        Json less = report;
        at_pointer(less, at).erase(member.first);
        CHECK(schema.violations(less) != "");
      }
  }
}
