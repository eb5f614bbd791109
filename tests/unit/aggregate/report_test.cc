#include "coordinator/aggregate/report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using proctor::testing::Runs;
using proctor::testing::small_campaign;
using proctor::testing::usd_micros;

namespace {
doctest::Approx near(double expected) {
  return doctest::Approx(expected).epsilon(1e-9);
}
}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("every planned run is counted once in each way of looking at it") {
    const CampaignReport report = build_report(small_campaign());
    REQUIRE(report.rows.size() == 2 + 2 * 2);
    const ReportRow& alpha = report.rows[0];
    CHECK(alpha.method == "alpha");
    CHECK(alpha.key.empty());
    CHECK(alpha.planned == 8);
    CHECK(alpha.success == 3);
    CHECK(alpha.failure == 1);
    CHECK(alpha.acceptance_error == 1);
    CHECK(alpha.scorable() == 5);
    CHECK(alpha.invalid == 1);
    CHECK(alpha.ended() == 6);
    CHECK(alpha.parked == 1);
    CHECK(alpha.open == 1);
    const ReportRow& beta = report.rows[1];
    CHECK(beta.open == 1);
    CHECK(beta.cancelled == 1);
    CHECK(beta.removed == 1);
    std::map<std::string, std::uint64_t> planned;
    for (const ReportRow& r : report.rows) {
      CHECK(r.planned == r.ended() + r.parked + r.open + r.cancelled + r.removed);
      CHECK(r.planned == r.runs.size());
      planned[r.key] += r.planned;
    }
    CHECK(planned[""] == 12);
    CHECK(planned["language"] == 12);
    CHECK(report.total.planned == 12);
  }

  TEST_CASE("rates are over scorable runs and invalid ones over all that ended") {
    const CampaignReport report = build_report(small_campaign());
    const ReportRow& alpha = report.rows[0];
    CHECK(*alpha.success_rate.rate == near(0.6));
    CHECK(*alpha.acceptance_error_rate.rate == near(0.2));
    CHECK(*alpha.invalid_rate.rate == near(1.0 / 6));
    CHECK(alpha.bounds->low == near(0.5));
    CHECK(alpha.bounds->high == near(5.0 / 6));
    // Task lib 2/2, task cli 1/3: the mean of tasks is not the rate of runs.
    CHECK(alpha.by_task->mean == near(2.0 / 3));
    CHECK(alpha.by_task->tasks == 2);
  }

  TEST_CASE("the worked example of STATISTICS E9 gives its rates and intervals") {
    // S=40, F=35, I=5, V=3; STATISTICS E6: Wilson of 17 of 32.
    Runs runs;
    const auto add = [&](int n, const char* method, RunOutcome outcome) {
      for (int i = 0; i < n; ++i) runs.ended("t" + std::to_string(i), "go", method, outcome);
    };
    add(40, "a", RunOutcome::kSuccess);
    add(35, "a", RunOutcome::kFailure);
    add(5, "a", RunOutcome::kAcceptanceError);
    add(3, "a", RunOutcome::kInvalid);
    add(17, "b", RunOutcome::kSuccess);
    add(15, "b", RunOutcome::kFailure);
    const CampaignReport report = build_report({"c", "USD", {"language"}, runs.records, 0.05});
    const ReportRow& a = report.rows[0];
    CHECK(*a.success_rate.rate == near(0.5));
    CHECK(*a.acceptance_error_rate.rate == near(0.0625));
    CHECK(*a.invalid_rate.rate == near(0.03614457831));
    CHECK(a.bounds->low == near(0.4819277108));
    CHECK(a.bounds->high == near(0.578313253));
    const ReportRow& b = report.rows[1];
    CHECK(b.success_rate.interval->low == near(0.3644951712));
    CHECK(b.success_rate.interval->high == near(0.6913061289));
  }

  TEST_CASE("a rate of no runs is nothing and not zero") {
    Runs runs;
    runs.add("lib", "go", "alpha");
    const CampaignReport report = build_report({"c", "USD", {"language"}, runs.records, 0.05});
    const ReportRow& row = report.rows[0];
    CHECK(!row.success_rate.rate);
    CHECK(!row.success_rate.interval);
    CHECK(!row.acceptance_error_rate.rate);
    CHECK(!row.invalid_rate.rate);
    CHECK(!row.bounds);
    CHECK(!row.by_task);
    CHECK(!row.cost_per_success);
    CHECK(!row.time.median_ms);
    CHECK(build_report({}).rows.empty());
  }

  TEST_CASE("money is summed exactly and a success is charged its share of everything") {
    const CampaignReport report = build_report(small_campaign());
    const ReportRow& alpha = report.rows[0];
    CHECK(alpha.cost.execution == usd_micros(6 * 100'001));
    CHECK(alpha.cost.model == usd_micros(7));
    CHECK(alpha.cost.total() == usd_micros(600'013));
    CHECK(*alpha.cost_per_success == usd_micros(200'005));  // 200,004.33 rounded up
    CHECK(!report.rows[1].cost_per_success);
    CHECK(report.total.cost.total() == usd_micros(700'014));
  }

  TEST_CASE("times are those of ended runs with a known time") {
    const ReportRow alpha = build_report(small_campaign()).rows[0];
    CHECK(*alpha.time.median_ms == 2000.0);
    CHECK(*alpha.time.longest_ms == 9500);
    CHECK(*alpha.time_of_success.median_ms == 2000.0);
    CHECK(*alpha.time_of_failure.longest_ms == 9500);
    CHECK(alpha.terminations.at(Termination::kCompleted) == 4);
    CHECK(alpha.terminations.at(Termination::kAgentTimeout) == 1);
    CHECK(alpha.terminations.at(Termination::kInfrastructure) == 1);
  }

  TEST_CASE("each row holds the runs behind it and no other") {
    const CampaignReport report = build_report(small_campaign());
    for (const ReportRow& row : report.rows)
      for (const std::uint32_t i : row.runs) {
        CHECK(report.runs[i].method == row.method);
        if (!row.key.empty()) CHECK(report.runs[i].strata[0] == row.value);
      }
  }

  TEST_CASE("the order in which runs are given changes nothing") {
    ReportInput input = small_campaign();
    std::ranges::reverse(input.runs);
    CHECK(render_json(build_report(std::move(input))) ==
          render_json(build_report(small_campaign())));
  }
}
