// Means over strata in the weights that a plan registered.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

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

using Tasks = std::vector<std::pair<std::string, int>>;  // language, successes of four runs

ReportInput campaign(const Tasks& a, int b) {
  Runs runs;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (int r = 0; r < 4; ++r) {
      const std::string task = "task-" + std::to_string(10 + i);
      const auto outcome = [&](int won) {
        return r < won ? RunOutcome::kSuccess : RunOutcome::kFailure;
      };
      runs.ended(task, a[i].first, "a", outcome(a[i].second));
      runs.ended(task, a[i].first, "b", outcome(b));
    }
  ReportInput input;
  input.campaign = "made";
  input.strata_keys = {"language"};
  input.runs = std::move(runs.records);
  input.plan.weights_key = "language";
  input.plan.weights = {{"py", {500'000}}, {"cpp", {300'000}}, {"rs", {200'000}}};
  input.plan_registered = true;
  input.contrasts = {{"a", "b"}};
  return input;
}

const Tasks kTwelve = {{"py", 4},  {"py", 3},  {"py", 2}, {"py", 1}, {"py", 4}, {"cpp", 2},
                       {"cpp", 0}, {"cpp", 1}, {"rs", 3}, {"rs", 1}, {"rs", 0}, {"rs", 2}};

}  // namespace

// Figures by NumPy and SciPy.
TEST_SUITE("aggregate") {
  TEST_CASE("a rate with registered weights is the weighted mean of the strata's") {
    const CampaignReport report = build_report(campaign(kTwelve, 1));
    REQUIRE(report.analysis->rates[0].weighted.has_value());
    const Weighted& w = *report.analysis->rates[0].weighted;
    CHECK(*w.of.estimate.value == ten_digits(0.5));
    CHECK(*w.of.estimate.standard_error == ten_digits(0.09071475440));
    CHECK(*w.of.estimate.df == ten_digits(7.380703656));
    CHECK(w.of.estimate.interval->low == ten_digits(0.2877164035));
    CHECK(w.of.estimate.interval->high == ten_digits(0.7122835965));
    CHECK(*w.of.post_stratified_error == ten_digits(0.09474777677));
    CHECK(w.worth == ten_digits(11.11111111));
    CHECK(w.tasks == 12);
    CHECK(weighted_note(w).empty());
    // The rate that was registered as the endpoint stays as it is.
    CHECK(*report.analysis->rates[0].rate.value == ten_digits(23.0 / 48));
    const std::string text = render_text(report);
    CHECK(text.find("Weighted by language (cpp 0.3, py 0.5, rs 0.2; as registered") !=
          std::string::npos);
    CHECK(text.find("[28.8, 71.2]") != std::string::npos);
  }

  TEST_CASE(
      "a comparison with registered weights is the weighted mean of the strata's differences") {
    const CampaignReport report = build_report(campaign(
        {{"py", 2}, {"py", 3}, {"py", 1}, {"cpp", 1}, {"cpp", 2}, {"rs", 2}, {"rs", 0}, {"rs", 3}},
        1));
    const Estimate& e = report.analysis->contrasts[0].weighted->of.estimate;
    CHECK(*e.value == ten_digits(0.1958333333));
    CHECK(*e.standard_error == ten_digits(0.0925150138));
    CHECK(*e.df == ten_digits(4.202600591));
    CHECK(e.interval->low == ten_digits(-0.05621886944));
    CHECK(e.interval->high == ten_digits(0.4478855361));
  }

  TEST_CASE("spreadsheets get what the text says, and empty cells where no plan has weights") {
    ReportInput input = campaign(kTwelve, 1);
    const auto columns = [](const std::string& csv, const std::string& name) {
      std::vector<std::vector<std::string>> records;
      std::istringstream lines(csv);
      for (std::string line; std::getline(lines, line);) {
        std::istringstream cells(line);
        records.emplace_back();
        for (std::string cell; std::getline(cells, cell, ',');) records.back().push_back(cell);
      }
      const auto& header = records.at(0);
      const auto at = std::find(header.begin(), header.end(), name) - header.begin();
      REQUIRE(at < static_cast<std::ptrdiff_t>(header.size()));
      return records.at(1).size() <= static_cast<std::size_t>(at)
                 ? std::string()
                 : records.at(1)[static_cast<std::size_t>(at)];
    };
    const CampaignReport with = build_report(input);
    CHECK(std::stod(columns(render_csv(with), "weighted_rate")) == ten_digits(0.5));
    CHECK(std::stod(columns(render_csv(with), "weighted_rate_low")) == ten_digits(0.2877164035));
    CHECK(std::stod(columns(render_csv(with), "weighted_rate_high")) == ten_digits(0.7122835965));
    // Every task of b is at a quarter, so the difference is the rate less that.
    const std::string contrasts = render_contrasts_csv(*with.analysis);
    CHECK(std::stod(columns(contrasts, "weighted")) == ten_digits(0.25));
    CHECK(std::stod(columns(contrasts, "weighted_low")) == ten_digits(0.0377164035));
    CHECK(std::stod(columns(contrasts, "weighted_high")) == ten_digits(0.4622835965));
    input.plan = AnalysisPlan();
    const CampaignReport without = build_report(input);
    CHECK(columns(render_csv(without), "weighted_rate").empty());
    CHECK(columns(render_contrasts_csv(*without.analysis), "weighted").empty());
  }

  TEST_CASE("tasks that are all alike have no spread, whatever rounding leaves") {
    // Differences of 3/5 - 1/5 and 4/5 - 2/5 are one number; the means of three of them are not.
    Runs runs;
    const auto task = [&](const std::string& name, const std::string& level, int a, int b) {
      for (int r = 0; r < 5; ++r) {
        const auto outcome = [&](int won) {
          return r < won ? RunOutcome::kSuccess : RunOutcome::kFailure;
        };
        runs.ended(name, level, "a", outcome(a));
        runs.ended(name, level, "b", outcome(b));
      }
    };
    for (int i = 0; i < 3; ++i) {
      task("t" + std::to_string(i), "py", 3 + i % 2, 1 + i % 2);
      task("u" + std::to_string(i), "cpp", 3, 1);
    }
    ReportInput input = campaign({}, 0);
    input.runs = std::move(runs.records);
    input.plan.weights = {{"py", {500'000}}, {"cpp", {500'000}}};
    const CampaignReport report = build_report(input);
    const Weighted& w = *report.analysis->contrasts[0].weighted;
    CHECK(*w.of.estimate.value == ten_digits(0.4));
    CHECK(*w.of.estimate.standard_error == 0);
    CHECK(w.of.estimate.why == Why::kNoVariance);
    CHECK_FALSE(w.of.estimate.interval.has_value());
  }

  TEST_CASE("a stratum that is missing is named, and weights are never made to fit") {
    Tasks one = kTwelve;
    one.resize(9);  // one task of rs
    const CampaignReport single = build_report(campaign(one, 1));
    const Weighted& w = *single.analysis->rates[0].weighted;
    CHECK(w.of.estimate.value.has_value());
    CHECK_FALSE(w.of.estimate.interval.has_value());
    CHECK(weighted_note(w) == "no interval: one task of rs");
    one.resize(8);  // none
    one.push_back({"go", 2});
    const CampaignReport none = build_report(campaign(one, 1));
    const Weighted& without = *none.analysis->rates[0].weighted;
    CHECK_FALSE(without.of.estimate.value.has_value());
    CHECK(weighted_note(without) ==
          "no estimate: no task of rs; 1 task of levels without a weight left out");
  }

  TEST_CASE("programs get the weighted estimates, and null where no plan has weights") {
    const JsonSchema schema("campaign_report");
    ReportInput input = campaign(kTwelve, 1);
    const Json with = parse_json(render_json(build_report(input))).value();
    CHECK(schema.violations(with) == "");
    CHECK(with.at("analysis").at("rates").at(0).at("weighted").at("worth_tasks").get<double>() ==
          ten_digits(11.11111111));
    CHECK(with.at("analysis").at("plan").at("weights").at("language").at("py") == "0.5");
    for (const char* member : {"value", "tasks_left_out", "post_stratified_error"}) {
      CAPTURE(member);
      Json less = with;
      less.at("analysis").at("contrasts").at(0).at("weighted").erase(member);
      CHECK(schema.violations(less) != "");
    }
    input.plan = AnalysisPlan();
    const Json without = parse_json(render_json(build_report(input))).value();
    CHECK(schema.violations(without) == "");
    CHECK(without.at("analysis").at("contrasts").at(0).at("weighted").is_null());
    // A pool whose campaigns have no such key says nothing.
    input.plan.weights_key = "owner";
    input.plan.weights = {{"x", {1'000'000}}};
    CHECK_FALSE(build_report(input).analysis->rates[0].weighted.has_value());
  }
}
