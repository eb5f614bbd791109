#include "common/stats/heterogeneity.h"

#include <algorithm>

#include "tests/unit/stats/oracles.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr std::size_t kStrata = 12, kRuns = 4;
using Table = std::array<std::array<int, kRuns>, kStrata>;
constexpr Table kSuccess{{{0, 0, 0, 0},
                          {0, 0, 0, 0},
                          {1, 1, 1, 0},
                          {0, 1, 0, 1},
                          {1, 1, 0, 0},
                          {0, 1, 1, 1},
                          {1, 1, 1, 0},
                          {0, 1, 1, 1},
                          {0, 0, 1, 1},
                          {1, 1, 1, 0},
                          {1, 0, 0, 0},
                          {1, 1, 0, 1}}};
constexpr Table kTime{{{21, 33, 41, 44},
                       {17, 42, 36, 43},
                       {37, 10, 2, 29},
                       {28, 19, 4, 3},
                       {6, 15, 1, 35},
                       {23, 20, 9, 25},
                       {11, 38, 39, 26},
                       {8, 46, 16, 27},
                       {22, 7, 0, 18},
                       {30, 14, 47, 12},
                       {32, 31, 40, 13},
                       {24, 45, 34, 5}}};
constexpr Table kWorker{{{1, 0, 2, 0},
                         {1, 0, 0, 2},
                         {0, 2, 2, 1},
                         {2, 2, 2, 2},
                         {1, 0, 0, 0},
                         {1, 0, 0, 0},
                         {2, 2, 0, 0},
                         {0, 2, 1, 2},
                         {0, 0, 2, 2},
                         {1, 1, 1, 1},
                         {2, 2, 2, 0},
                         {0, 1, 1, 1}}};

std::vector<TimedOutcome> timed() {
  std::vector<TimedOutcome> out;
  for (std::uint32_t s = 0; s < kStrata; ++s)
    for (std::size_t r = 0; r < kRuns; ++r)
      out.push_back({s, kSuccess[s][r] == 1, static_cast<double>(kTime[s][r])});
  return out;
}

// Workers above `most` count as it.
std::vector<GroupedOutcome> grouped(int most) {
  std::vector<GroupedOutcome> out;
  for (std::uint32_t s = 0; s < kStrata; ++s)
    for (std::size_t r = 0; r < kRuns; ++r)
      out.push_back(
          {s, kSuccess[s][r] == 1, static_cast<std::uint32_t>(std::min(kWorker[s][r], most))});
  return out;
}

}  // namespace

// Figures by NumPy and SciPy; two workers by statsmodels' StratifiedTable as well.
TEST_SUITE("stats") {
  TEST_CASE("a trend is looked for within each task and method") {
    const Trend trend = stratified_trend(timed());
    CHECK(trend.strata == 10);
    CHECK(*trend.slope == near(-0.00042317457874894207));
    REQUIRE(trend.test.has_value());
    CHECK(trend.test->statistic == near(0.004864712740722872));
    CHECK(trend.test->p == near(0.9443946400718611));
    // In any unit and from any zero, and in any order of the runs.
    std::vector<TimedOutcome> other = timed();
    std::reverse(other.begin(), other.end());
    for (TimedOutcome& run : other) run.at = 1000 + run.at * 60;
    CHECK(stratified_trend(other).test->p == near(trend.test->p));
    // Every success before every failure is one.
    for (TimedOutcome& run : other) run.at = run.success ? 0 : 1;
    CHECK(stratified_trend(other).test->p < 1e-6);
    CHECK(*stratified_trend(other).slope == near(-1));
  }

  TEST_CASE("successes by worker are held against what its strata would have given it") {
    const Association three = stratified_association(grouped(2), 3);
    CHECK(three.strata == 8);
    REQUIRE(three.test.has_value());
    CHECK(three.test->statistic == near(6.172413793103449));
    CHECK(*three.test->df == 2);
    CHECK(three.test->p == near(0.045674875771766606));
    CHECK(three.groups[0].runs == 18);
    CHECK(three.groups[0].successes == 7);
    CHECK(three.groups[0].expected == near(8.75));
    CHECK(three.groups[2].expected == near(8.25));
    const Association two = stratified_association(grouped(1), 2);
    CHECK(two.test->statistic == near(1.7294117647058824));
    CHECK(two.test->p == near(0.18848603806737463));
    // A worker without a run adds no degree of freedom.
    CHECK(*stratified_association(grouped(1), 5).test->df == 1);
    CHECK(stratified_association(grouped(1), 5).test->p == near(two.test->p));
  }

  TEST_CASE("where runs tell nothing that is said") {
    CHECK(stratified_trend({}).why == Why::kNothing);
    CHECK(stratified_association({}, 0).why == Why::kNothing);
    const std::vector<TimedOutcome> single = {{0, true, 1}, {1, false, 2}};
    CHECK(stratified_trend(single).why == Why::kTooFew);
    const std::vector<TimedOutcome> alike = {{0, true, 1}, {0, true, 2}},
                                    once = {{0, true, 1}, {0, false, 1}};
    CHECK(stratified_trend(alike).why == Why::kNoVariance);
    CHECK(stratified_trend(once).why == Why::kNoVariance);
    CHECK_FALSE(stratified_trend(once).test.has_value());
    const std::vector<GroupedOutcome> one = {{0, true, 0}, {0, false, 0}};
    CHECK(stratified_association(one, 1).why == Why::kNoVariance);
    CHECK(stratified_association(one, 1).groups[0].expected == near(1));
  }
}
