// Several comparisons at one level: max-t as a plan may register it.
#include "coordinator/aggregate/family.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "common/base/json.h"
#include "coordinator/aggregate/analysis.h"
#include "tests/support/json_schema.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx ten_digits(double expected) {
  return doctest::Approx(expected).epsilon(2e-9);
}

// Three methods, four runs of each task, of c two or three and of some tasks none; now and then a
// does better than b, and c worse.  `errors`: so many of a's failures ended in acceptance errors.
Runs made(std::size_t tasks, int errors = 0) {
  Runs runs;
  const auto add = [&](std::size_t task, const std::string& method, int success, int of) {
    const std::string name = "task-" + std::to_string(1000 + task);
    for (int r = 0; r < of; ++r) {
      const bool error = method == "a" && success <= r && 0 < errors;
      errors -= error ? 1 : 0;
      runs.ended(name, "c", method,
                 r < success ? RunOutcome::kSuccess
                 : error     ? RunOutcome::kAcceptanceError
                             : RunOutcome::kFailure);
    }
  };
  for (std::size_t i = 0; i < tasks; ++i) {
    const int base = static_cast<int>(i * 7 % 5);
    add(i, "a", std::clamp(base + (i % 4 == 0 ? 2 : 0) - (i % 7 == 0 ? 1 : 0), 0, 4), 4);
    add(i, "b", base, 4);
    const int of = 2 + static_cast<int>(i % 2);
    if (i % 29 != 28)
      add(i, "c", std::clamp(base - (i % 3 == 0 ? 1 : 0) + (i % 5 == 1 ? 1 : 0), 0, of), of);
  }
  return runs;
}

ReportInput campaign(Runs runs, AnalysisPlan::Estimand estimand) {
  ReportInput input;
  input.campaign = "made";
  input.strata_keys = {"language"};
  input.runs = std::move(runs.records);
  input.plan.multiplicity = AnalysisPlan::Multiplicity::kMaxT;
  input.plan.draws = 1'000;
  input.plan.estimand = estimand;
  input.plan_registered = true;
  input.contrasts = {{"a", "b"}, {"b", "c"}, {"a", "c"}};
  return input;
}

}  // namespace

// Figures by NumPy, from its own Philox.
TEST_SUITE("aggregate") {
  TEST_CASE("intervals that hold together, and p values by flips that all contrasts share") {
    struct Row {
      AnalysisPlan::Estimand estimand;
      double critical;
      std::vector<Interval> intervals;
      std::vector<double> p;
    };
    const std::vector<Row> rows = {{AnalysisPlan::Estimand::kTaskMean,
                                    2.3430655440845425,
                                    {{-0.0016852815799929255, 0.11001861491332626},
                                     {-0.19963351545740388, -0.06760786385294094},
                                     {-0.1644507515683904, 0.000657648120114554}},
                                    {0.038, 0.0001, 0.038}},
                                   {AnalysisPlan::Estimand::kRunMean,
                                    2.3192805122257103,
                                    {{-0.001118314782252862, 0.10945164811558625},
                                     {-0.19448144298684356, -0.05551855701315646},
                                     {-0.156380500950155, 0.009828776812223952}},
                                    {0.0607, 0.0002, 0.0607}}};
    for (const Row& row : rows) {
      const CampaignReport report = build_report(campaign(made(60), row.estimand));
      const Analysis& analysis = *report.analysis;
      REQUIRE(analysis.contrasts.size() == 3);
      CHECK(analysis.adjustment.used == AnalysisPlan::Multiplicity::kMaxT);
      CHECK(analysis.adjustment.critical == ten_digits(row.critical));
      for (std::size_t j = 0; j < 3; ++j) {
        CAPTURE(j);
        const Contrast& c = analysis.contrasts[j];
        REQUIRE(c.simultaneous.has_value());
        CHECK(c.simultaneous->low == ten_digits(row.intervals[j].low));
        CHECK(c.simultaneous->high == ten_digits(row.intervals[j].high));
        CHECK(*c.adjusted == ten_digits(row.p[j]));
        CHECK(c.difference.estimate.interval->low > c.simultaneous->low);
        CHECK((*c.adjusted <= 0.05) ==
              (c.verdict == ContrastVerdict::kBetter || c.verdict == ContrastVerdict::kWorse));
      }
      const std::string text = render_text(report);
      CHECK(text.find("holding together") != std::string::npos);
      CHECK(
          text.find("adjusted by max-t (1000 joint replicates of tasks, 9999 common sign flips)") !=
          std::string::npos);
      const Json json = parse_json(render_json(report)).value();
      CHECK(JsonSchema("campaign_report").violations(json) == "");
      CHECK(json.at("analysis").at("adjustment").at("rule") == "max_t");
      CHECK(json.at("analysis").at("adjustment").at("flips") == 9999);
      CHECK(json.at("analysis").at("contrasts").at(0).at("simultaneous").at(0).get<double>() ==
            ten_digits(row.intervals[0].low));
    }
  }

  TEST_CASE("the order of comparisons changes none of them") {
    ReportInput input = campaign(made(60), AnalysisPlan::Estimand::kTaskMean);
    const CampaignReport before = build_report(input);
    std::ranges::reverse(input.contrasts);
    const CampaignReport after = build_report(input);
    for (std::size_t j = 0; j < 3; ++j) {
      const Contrast &x = before.analysis->contrasts[j], &y = after.analysis->contrasts[2 - j];
      REQUIRE(x.a == y.a);
      CHECK(*x.adjusted == *y.adjusted);
      CHECK(x.simultaneous->low == y.simultaneous->low);
    }
  }

  TEST_CASE("with fewer tasks than replicates need the report falls back to Holm, and says so") {
    // 51 tasks, of which c has 50; with one task less it has 49.
    for (const std::size_t tasks : {std::size_t{51}, std::size_t{50}}) {
      CAPTURE(tasks);
      const CampaignReport report =
          build_report(campaign(made(tasks), AnalysisPlan::Estimand::kTaskMean));
      const bool joint = tasks == 51;
      CHECK(report.analysis->contrasts[0].simultaneous.has_value() == joint);
      CHECK((report.analysis->adjustment.used == AnalysisPlan::Multiplicity::kMaxT) == joint);
      const std::string text = render_text(report);
      CHECK((text.find("adjusted by Holm, for max-t needs 50 tasks in every comparison") ==
             std::string::npos) == joint);
      const Json json = parse_json(render_json(report)).value();
      CHECK(JsonSchema("campaign_report").violations(json) == "");
    }
  }

  TEST_CASE("a contrast without any difference has no part in the family") {
    ReportInput input = campaign(made(60), AnalysisPlan::Estimand::kTaskMean);
    for (RunRecord& run : input.runs)
      if (run.method == "b") run.outcome = RunOutcome::kFailure;
    for (std::size_t i = 0; i < 60; ++i)
      for (int r = 0; r < 4; ++r) {
        RunRecord run = input.runs.front();
        run.task = "task-" + std::to_string(1000 + i);
        run.method = "d";
        run.outcome = RunOutcome::kFailure;
        run.name = run.task + "/d/r" + std::to_string(r);
        input.runs.push_back(run);
      }
    input.contrasts = {{"d", "b"}, {"a", "b"}};
    const CampaignReport report = build_report(input);
    CHECK_FALSE(report.analysis->contrasts[0].simultaneous.has_value());
    CHECK(report.analysis->contrasts[1].simultaneous.has_value());
    CHECK(*report.analysis->contrasts[0].adjusted == 1);
  }

  TEST_CASE("what would turn a verdict is judged by the rule of the plan") {
    ReportInput input = campaign(made(60, 40), AnalysisPlan::Estimand::kTaskMean);
    const CampaignReport report = build_report(input);
    const Contrast& c = report.analysis->contrasts[2];
    REQUIRE(c.tipping.has_value());
    CHECK(c.tipping->tried);
    CHECK(c.tipping->unknown == 40);
    REQUIRE(c.tipping->turned.has_value());
    CHECK(c.tipping->becomes != c.verdict);
    CHECK(c.tipping->for_a);
  }

  TEST_CASE("where a single question takes long none is asked") {
    const std::vector<TaskCell> cells(5'000, TaskCell{4, 2, 0, 0});
    const aggregate::Sides sides{cells, cells};
    using Rule = AnalysisPlan::Multiplicity;
    CHECK(aggregate::Family({sides, sides}, {.5, .5}, Rule::kMaxT, Weighing::kTasks)
              .most_questions(0) == 0);
    CHECK(aggregate::Family({sides}, {.5}, Rule::kMaxT, Weighing::kTasks).most_questions(0) == 20);
    CHECK(aggregate::Family({sides, sides}, {.5, .5}, Rule::kHolm, Weighing::kTasks)
              .most_questions(0) == 256);
  }
}
