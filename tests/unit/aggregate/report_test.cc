#include "coordinator/aggregate/report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/warnings.h"
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
    CHECK(alpha.bounds_by_task->low == near(0.5));
    CHECK(alpha.bounds_by_task->high == near(5.0 / 6));
  }

  TEST_CASE("an estimate lies within its bounds, whatever number of runs each task has") {
    constexpr double kRounding = 1e-12;
    const auto holds = [&](const Interval& bounds, double value) {
      return bounds.low - kRounding <= value && value <= bounds.high + kRounding;
    };
    std::mt19937 random(34);
    for (int campaign = 0; campaign < 300; ++campaign) {
      CAPTURE(campaign);
      Runs runs;
      const auto tasks = 1 + random() % 6;
      for (std::size_t t = 0; t < tasks; ++t)
        for (const char* method : {"a", "b"})
          for (auto n = random() % 8; 0 < n; --n)
            runs.ended(
                "t" + std::to_string(t), t % 2 == 0 ? "go" : "rust", method,
                std::array{RunOutcome::kSuccess, RunOutcome::kFailure, RunOutcome::kAcceptanceError,
                           RunOutcome::kInvalid}[random() % 4]);
      ReportInput input;
      input.campaign = "unequal";
      input.strata_keys = {"language"};
      input.runs = runs.records;
      input.contrasts = {{"a", "b"}};
      for (const auto estimand :
           {AnalysisPlan::Estimand::kTaskMean, AnalysisPlan::Estimand::kRunMean}) {
        input.plan.estimand = estimand;
        const CampaignReport report = build_report(input);
        for (const ReportRow& row : report.rows) {
          if (!row.by_task) continue;
          CHECK(holds(*row.bounds, *row.success_rate.rate));
          CHECK(holds(*row.bounds_by_task, row.by_task->mean));
        }
        for (const MethodRate& rate : report.analysis->rates)
          if (rate.rate.value) CHECK(holds(*rate.bounds, *rate.rate.value));
        for (const Contrast& c : report.analysis->contrasts)
          if (const auto& value = c.difference.estimate.value)
            CHECK(holds(c.bounds->identified, *value));
      }
    }
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

  TEST_CASE(
      "a task that noop passes or its reference fails is named, and so is why nothing was "
      "measured") {
    Runs runs;
    using Baseline = RunRecord::Baseline;
    const auto baseline = [&](const char* task, const char* method, Baseline b, RunOutcome o) {
      runs.ended(task, "go", method, o).baseline = b;
    };
    baseline("sound", "noop", Baseline::kNoop, RunOutcome::kFailure);
    baseline("sound", "reference", Baseline::kReference, RunOutcome::kSuccess);
    baseline("idle", "noop", Baseline::kNoop, RunOutcome::kSuccess);
    baseline("idle", "noop", Baseline::kNoop, RunOutcome::kFailure);
    baseline("stale", "reference", Baseline::kReference, RunOutcome::kFailure);
    baseline("slow", "reference", Baseline::kReference, RunOutcome::kAcceptanceError);
    baseline("lost", "reference", Baseline::kReference, RunOutcome::kInvalid);
    runs.ended("sound", "go", "agent", RunOutcome::kSuccess);
    CampaignReport report = build_report({"c-1", "USD", {"language"}, std::move(runs.records)});
    CHECK(broken_tasks(report.runs).size() == 3);
    // Repetitions show that two are flaky.
    std::vector<RunRecord> torn = report.runs;
    for (RunRecord& run : torn)
      run.passes = run.task == "stale" ? 2 : run.outcome == RunOutcome::kAcceptanceError ? 1 : 0;
    const std::vector<std::string> flaky = broken_tasks(torn);
    REQUIRE(flaky.size() == 3);
    CHECK(flaky[0].starts_with("task idle is broken: "));
    CHECK(flaky[1].starts_with("task slow is flaky: reference ended with acceptance_error in 1 "));
    CHECK(flaky[2].find("task stale is flaky: ") == 0);
    CHECK(flaky[2].find(" passed 2 times with its own reference patch ") != std::string::npos);
    CHECK(flaky[2].find("proctor screen") != std::string::npos);
    CHECK(flaky[2].find("no agent can pass") == std::string::npos);
    const std::vector<std::string> broken = broken_tasks(report.runs);
    REQUIRE(broken.size() == 3);
    CHECK(broken[0].starts_with(
        "task idle is broken: noop ended with success in 1 of 2 runs (idle/noop/r1): "));
    CHECK(broken[1].starts_with("task slow is broken: reference ended with acceptance_error"));
    CHECK(
        broken[2].starts_with("task stale is broken: reference ended with failure in 1 of 1 run"));
    CHECK(render_text(report).find("Broken tasks") != std::string::npos);
    CHECK(render_progress_text(report).find("task idle is broken") != std::string::npos);
    CHECK(why_worthless(report.runs) == "a control came out wrong: " + broken[0]);
    std::vector<RunRecord> sound = report.runs;
    std::erase_if(sound, [](const RunRecord& run) { return run.task != "sound"; });
    CHECK(why_worthless(sound).empty());
    CHECK(why_worthless({}).empty());
  }

  TEST_CASE("runs without a verdict are counted by cause, the most frequent first") {
    Runs runs;
    const auto invalid = [&](const char* method, const std::string& why) {
      RunRecord& run = runs.ended("t", "go", method, RunOutcome::kInvalid);
      run.termination = Termination::kAgentUnavailable;
      run.rationale = why;
      run.no_model = why.starts_with(no_model(""));
    };
    invalid("a", "the agent could not start: exit 127 after 12 ms, without a change");
    invalid("b", "its model could not be had: the variable K has no key");
    invalid("a", "the agent could not start: exit 127 after 9 ms, without a change");
    runs.ended("t", "go", "a", RunOutcome::kAcceptanceError).rationale = "the agent ended: exit 0";
    RunRecord& full = runs.ended("t", "go", "c", RunOutcome::kInvalid);
    full.termination = Termination::kModelOverloaded;
    full.rationale = "a provider of models had no room: its provider answers 429";
    const CampaignReport report =
        build_report({"c-1", "USD", {"language"}, std::move(runs.records)});
    const std::vector<EndCause> causes = end_causes(report);
    REQUIRE(causes.size() == 4);
    CHECK(causes[0].runs == 2);
    CHECK(causes[0].first == "t/a/r1");
    CHECK(causes[0].why == "the agent could not start: exit 127 after 12 ms, without a change");
    CHECK(why_worthless(report.runs).starts_with("no run came to a verdict"));
    CHECK(report.total.agent_unavailable == 3);
    CHECK(report.total.model_unavailable == 1);
    CHECK(report.total.model_overloaded == 1);
    CHECK(report.total.success_rate_started.n == 5);
    const std::string text = render_text(report);
    CHECK(text.find("Runs that came to no verdict, by cause") != std::string::npos);
    CHECK(text.find("b: 1 of 1 run (1 for want of a model)") != std::string::npos);
    CHECK(text.find("c: 1 of 1 run (1 whose provider had no room)") != std::string::npos);
    CHECK(text.find("1 acceptance_error of a: a check could not be completed") !=
          std::string::npos);
  }

  TEST_CASE("a method that ended at once in every judged run is named, and no other") {
    Runs runs;
    const auto ended = [&](const std::string& method, RunOutcome outcome, std::optional<int> exit,
                           std::uint64_t agent_ms) -> RunRecord& {
      RunRecord& run = runs.ended("lib", "go", method, outcome);
      run.agent_exit = exit;
      run.agent_ms = agent_ms;
      return run;
    };
    ended("dead", RunOutcome::kFailure, 1, 50).last_words = "no module";
    ended("dead", RunOutcome::kAcceptanceError, 1, 1'999);
    ended("dead", RunOutcome::kInvalid, std::nullopt, 9'000);  // the host's: says nothing of it
    ended("once", RunOutcome::kFailure, 1, 50);
    ended("once", RunOutcome::kSuccess, 0, 50);
    ended("slow", RunOutcome::kFailure, 1, 2'000);
    ended("torn", RunOutcome::kFailure, 1, 50);
    ended("torn", RunOutcome::kFailure, 2, 50);
    ended("torn", RunOutcome::kFailure, 2, 50);
    ended("mild", RunOutcome::kFailure, 0, 50);
    ended("noop", RunOutcome::kFailure, 1, 50).baseline = RunRecord::Baseline::kNoop;
    const std::vector<EarlyEnd> early = early_ends(runs.records);
    REQUIRE(early.size() == 1);
    CHECK(early_end_text(early[0], runs.records) ==
          "2 of 2 runs of dead ended within 2 s with exit code 1, and none succeeded: no module "
          "(lib/dead/r1)");
  }
}
