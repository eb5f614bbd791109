// What the difference between two methods costs: REPORT S23 per run, and what is said of it.
#include "coordinator/aggregate/details.h"

#include <doctest/doctest.h>

#include <array>

#include "coordinator/aggregate/analysis.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx near(double expected) {
  return doctest::Approx(expected).epsilon(1e-9);
}

// The specification's costs, and its successes of four runs.
constexpr std::array<double, 8> kCostA = {3.2, 2.5, 4.8, 3.9, 2.1, 4.4, 5, 3};
constexpr std::array<double, 8> kCostB = {2.0, 1.1, 2.2, 1.9, 1.5, 1.2, 2.6, 1.4};
constexpr std::array<double, 8> kSolvedA = {4, 3, 0, 2, 4, 1, 0, 3};
constexpr std::array<double, 8> kSolvedB = {3, 1, 0, 2, 3, 0, 1, 1};

std::vector<PricedTask> side(const std::array<double, 8>& cost,
                             const std::array<double, 8>& solved) {
  std::vector<PricedTask> out;
  for (std::size_t i = 0; i < cost.size(); ++i) out.push_back({cost[i], solved[i] / 4, true});
  out.push_back({100, 1, false});  // a task that the method did not end
  return out;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Six tasks; `solved` of them by the method, each run at that price.
void add(Runs& runs, const std::string& method, int solved, std::int64_t micros) {
  for (int i = 0; i < 6; ++i)
    runs.ended("task-" + std::to_string(i), "c", method,
               i < solved ? RunOutcome::kSuccess : RunOutcome::kFailure)
        .cost.execution = usd_micros(micros + 1000 * i);
}

CampaignReport reported(Runs runs,
                        std::vector<std::pair<std::string, std::string>> contrasts = {}) {
  ReportInput input{"c", "USD", {"language"}, std::move(runs.records), 0.05};
  input.contrasts = std::move(contrasts);
  return detailed(std::move(input));
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("prices of two methods are compared over tasks as the specification has it") {
    const PriceContrast c =
        price_contrast("a", "b", side(kCostA, kSolvedA), side(kCostB, kSolvedB), 0.05);
    CHECK(c.tasks == 8);
    CHECK(*c.difference.cost.value == near(1.875));
    CHECK(*c.difference.success.value == near(0.75 / 4));
    CHECK(*c.difference.ratio.estimate.value == near(2.5 * 4));
    CHECK(!c.other_way.estimate.value);
    // By NumPy.
    CHECK(c.difference.cost.interval->low == near(1.17162009728));
    CHECK(c.difference.cost.interval->high == near(2.57837990272));
    CHECK(*c.ratio.value == near(2.07913669065));
    CHECK(c.ratio.interval->low == near(1.67278039854));
    CHECK(c.ratio.interval->high == near(2.5881253138));
    const std::string said = words(c, "USD");
    CHECK(has(said, "a run of a costs 1.88 USD more than one of b [1."));
    CHECK(has(said, "x2.08 [1."));
    CHECK(has(said, "points more [-"));
    CHECK(has(said, ": one more solved task costs 10.00 USD (no interval"));

    const PriceContrast turned =
        price_contrast("b", "a", side(kCostB, kSolvedB), side(kCostA, kSolvedA), 0.05);
    CHECK(*turned.difference.cost.value == near(-1.875));
    CHECK(!turned.difference.ratio.estimate.value);
    CHECK(*turned.other_way.estimate.value == near(10));
    CHECK(has(words(turned, "USD"), "a run of b costs 1.88 USD less than one of a [1."));
    CHECK(has(words(turned, "USD"), "; a solves 18.8 points more"));
  }

  TEST_CASE("rates that sum to the same solve as much, whatever doubles make of them") {
    const std::vector<PricedTask> a = {{3, .1, true}, {2, .2, true}, {3, 0, true}};
    const std::vector<PricedTask> b = {{1, 0, true}, {1, 0, true}, {1, .3, true}};
    const PriceContrast c = price_contrast("a", "b", a, b, 0.05);
    CHECK(*c.difference.success.value == 0);
    CHECK_FALSE(c.difference.ratio.estimate.value.has_value());
    CHECK(has(words(c, "USD"), "; they solve as much"));
  }

  TEST_CASE("a report compares prices of agents, in the plan's direction, and of no baseline") {
    Runs runs;
    add(runs, "careful", 5, 20'000);
    add(runs, "noop", 0, 10);
    add(runs, "quick", 2, 5'000);
    for (RunRecord& run : runs.records)
      if (run.method == "noop") run.baseline = RunRecord::Baseline::kNoop;
    const CampaignReport report = reported(runs, {{"quick", "careful"}});
    REQUIRE(report.details->price_contrasts.size() == 1);
    const PriceContrast& c = report.details->price_contrasts[0];
    CHECK(c.a == "quick");
    CHECK(c.tasks == 6);
    // 0.015 USD more a run for half of the tasks more: 0.03 each.
    CHECK(*c.other_way.estimate.value == near(0.03));
    const std::string text = render_text(report);
    CHECK(has(text, "What the difference costs (exploratory"));
    CHECK(has(text, "a run of quick costs 0.0150 USD less than one of careful"));
    CHECK(has(text, "one more solved task costs 0.0300 USD"));
    CHECK(has(render_json(report), R"("price_contrasts":[{"a":"quick","b":"careful","tasks":6)"));
  }

  TEST_CASE("who costs less and solves more has no price, and nothing is compared before the end") {
    Runs runs;
    add(runs, "good", 5, 5'000);
    add(runs, "poor", 2, 20'000);
    CHECK(has(words(reported(runs).details->price_contrasts.at(0), "USD"),
              "; good solves 50.0 points more [-7.5, +100.0], and costs less"));
    Runs alike;
    add(alike, "one", 5, 5'000);
    add(alike, "other", 4, 5'000);
    CHECK(has(words(reported(alike).details->price_contrasts.at(0), "USD"),
              "a run of one costs as much as one of other; one solves 16.7 points more"));
    runs.add("task-0", "c", "good");
    CHECK(reported(runs).details->price_contrasts.empty());
  }
}
