#include "coordinator/aggregate/analysis.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string_view>

#include "common/base/csv.h"
#include "common/base/json.h"
#include "coordinator/aggregate/details.h"
#include "tests/support/json_tools.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

doctest::Approx ten_digits(double expected) {
  return doctest::Approx(expected).epsilon(2e-9);
}

// The quickstart: eight tasks, of which the last never gives a scorable run.
ReportInput quickstart() {
  Runs runs;
  const std::vector<std::vector<RunOutcome>> scripted = {
      {RunOutcome::kFailure, RunOutcome::kFailure},
      {RunOutcome::kFailure, RunOutcome::kFailure},
      {RunOutcome::kAcceptanceError, RunOutcome::kAcceptanceError},
      {RunOutcome::kFailure, RunOutcome::kSuccess},
      {RunOutcome::kSuccess, RunOutcome::kSuccess},
      {RunOutcome::kSuccess},
      {RunOutcome::kFailure, RunOutcome::kFailure},
      {RunOutcome::kInvalid, RunOutcome::kInvalid}};
  for (std::size_t i = 0; i < scripted.size(); ++i) {
    const std::string task = "task-" + std::to_string(i);
    for (const RunOutcome outcome : scripted[i]) {
      const bool invalid = outcome == RunOutcome::kInvalid;
      runs.ended(task, "c", "scripted", outcome);
      runs.ended(task, "c", "reference", invalid ? outcome : RunOutcome::kSuccess);
      runs.ended(task, "c", "noop", invalid ? outcome : RunOutcome::kFailure);
    }
  }
  ReportInput input;
  input.campaign = "quickstart";
  input.strata_keys = {"language"};
  input.runs = runs.records;
  input.contrasts =
      contrasts_of(input.plan, {"noop", "reference", "scripted"}, {true, false, false});
  return input;
}

const Contrast& contrast(const Analysis& a, const std::string& name) {
  for (const Contrast& c : a.contrasts)
    if (c.a == name) return c;
  FAIL("no such contrast");
  return a.contrasts.front();
}

// Equal methods whose difference varies from unit to unit: how often a verdict says better or
// worse, and how often the interval leaves out the truth.
struct Errors {
  double verdicts = 0, intervals = 0;
};
Errors errors_of_equal_methods(std::optional<AnalysisPlan::Unit> unit,
                               std::span<const std::uint32_t> repositories, double of_repository,
                               double of_task, int campaigns, std::mt19937& random) {
  AnalysisPlan plan;
  plan.unit = unit;
  std::normal_distribution<double> normal;
  Errors out;
  for (int campaign = 0; campaign < campaigns; ++campaign) {
    std::map<std::uint32_t, double> effects;
    std::vector<TaskCell> a, b;
    for (const std::uint32_t r : repositories) {
      const double effect = effects.try_emplace(r, of_repository * normal(random)).first->second +
                            of_task * normal(random);
      const double level = 0.35 + 0.3 * std::generate_canonical<double, 53>(random);
      const auto cell = [&](int runs, double chance) {
        std::binomial_distribution<int> draw(runs, std::clamp(chance, 0.0, 1.0));
        TaskCell c;
        c.scorable = static_cast<std::uint64_t>(runs);
        c.success = static_cast<std::uint64_t>(draw(random));
        return c;
      };
      // With unequal runs a p can be nearly any number: the test has its level, not less.
      a.push_back(cell(7, level + effect / 2));
      b.push_back(cell(6, level - effect / 2));
    }
    const Contrast c = judged_contrast(a, b, plan, repositories);
    const bool differs =
        c.verdict == ContrastVerdict::kBetter || c.verdict == ContrastVerdict::kWorse;
    const Interval i = *c.difference.estimate.interval;
    out.verdicts += (differs ? 1.0 : 0.0) / campaigns;
    out.intervals += (0 < i.low || i.high < 0 ? 1.0 : 0.0) / campaigns;
  }
  return out;
}

}  // namespace

// Figures by NumPy and SciPy.
TEST_SUITE("aggregate") {
  TEST_CASE("each method has one rate over tasks, with an interval that holds near 0 and 1") {
    const CampaignReport report = build_report(quickstart());
    const std::vector<MethodRate>& rates = report.analysis->rates;
    REQUIRE(rates.size() == 3);
    CHECK(rates[0].method == "noop");
    CHECK(*rates[0].rate.value == 0);
    CHECK(rates[1].rate.interval->low == ten_digits(0.6456695649));
    CHECK(rates[2].tasks == 7);
    CHECK(rates[2].runs == 13);
    CHECK(*rates[2].rate.value == ten_digits(0.3571428571));
    CHECK(*rates[2].rate.standard_error == ten_digits(0.1797579627));
    CHECK(rates[2].rate.interval->low == ten_digits(0.04707541201));
    CHECK(rates[2].rate.interval->high == ten_digits(0.8056755697));
    CHECK(rates[2].reliability.always == 2);
    CHECK(rates[2].reliability.sometimes == 1);
    REQUIRE(rates[2].pass.size() == 3);
    // One try is the rate, so it has the rate's interval.
    CHECK(rates[2].pass[0].at_least_one.interval == rates[2].rate.interval);
    CHECK(rates[2].pass[0].all.interval == rates[2].rate.interval);
    CHECK(report.rows[2].interval == rates[2].rate.interval);
    CHECK(*rates[2].pass[1].at_least_one.value == ten_digits(0.3333333333));
    CHECK(*rates[2].pass[1].all.value == ten_digits(0.1666666667));
    CHECK(rates[2].pass[1].all.interval->low == 0);
    CHECK(rates[2].pass[1].all.interval->high < 1);
  }

  TEST_CASE("methods are compared over the tasks that both tried, as a family") {
    ReportInput input = quickstart();
    input.contrasts = {{"reference", "scripted"}, {"scripted", "noop"}};
    const CampaignReport report = build_report(input);
    const Contrast& c = contrast(*report.analysis, "reference");
    CHECK(c.tasks == 7);
    CHECK(*c.difference.estimate.value == ten_digits(0.6428571429));
    CHECK(*c.difference.p == ten_digits(0.01169596364));
    CHECK(c.difference.estimate.interval->low == ten_digits(0.2030052535));
    CHECK(c.difference.estimate.interval->high == ten_digits(1.082709032));
    CHECK(c.flips->p == ten_digits(0.0625));
    CHECK(c.flips->exact);
    CHECK(*c.adjusted == ten_digits(0.125));
    CHECK(c.a_better == 5);
    CHECK(c.b_better == 0);
    CHECK(c.verdict == ContrastVerdict::kNotInferior);
    CHECK(
        contrast_sentence(c, report.analysis->plan) ==
        "reference - scripted: not inferior by its lower bound +29.4 at one-sided 0.05, which is "
        "above the margin -5.0 (the interval in the table is two-sided); its interval, Student's t "
        "for this comparison alone, leaves out 0; whether it is better or worse is by the adjusted "
        "p of sign flips, 0.1250");
    CHECK_FALSE(report.analysis->registered);
    const std::string text = render_text(report);
    CHECK(text.find("reference - scripted") != std::string::npos);
    CHECK(text.find("+64.3") != std::string::npos);
    CHECK(text.find("no plan of analysis was registered") != std::string::npos);
  }

  TEST_CASE("controls are the last rows, and the end of a run shows tasks by methods on a screen") {
    const CampaignReport report = build_report(with_controls(quickstart(), "noop", "reference"));
    CHECK(report.rows[0].method == "scripted");
    CHECK(report.rows[1].method == "noop");
    CHECK(report.rows[3].method == "scripted");
    CHECK(report.analysis->rates[0].method == "scripted");
    CHECK(report.analysis->rates[2].method == "reference");
    // The comparison of two controls is the last, and no agent's.
    CHECK(report.analysis->contrasts.back().a == "reference");
    REQUIRE(of_agents(report.analysis->contrasts).size() == 1);
    CHECK(of_agents(report.analysis->contrasts)[0].a == "scripted");
    CHECK(report.costs[1].name == "scripted");
    const Json json = parse_json(render_json(report)).value();
    using At = std::pair<const char*, bool>;
    for (const auto& [at, control] :
         {At{"/rows/0", false}, At{"/rows/1", true}, At{"/analysis/rates/0", false},
          At{"/analysis/rates/2", true}, At{"/analysis/contrasts/0", false},
          At{"/analysis/contrasts/1", true}}) {
      CAPTURE(at);
      CHECK(at_pointer(json, at).at("control").boolean() == control);
    }
    for (const std::string& csv : {render_csv(report), render_contrasts_csv(*report.analysis)}) {
      CsvReader reader(csv);
      std::vector<std::string_view> cells;
      REQUIRE(reader.next(cells).ok());
      const auto place = std::ranges::find(cells, "control") - cells.begin();
      for (const std::string_view control : {"no", "yes"}) {
        REQUIRE(reader.next(cells).ok());
        CHECK(cells.at(static_cast<std::size_t>(place)) == control);
      }
    }
    const std::string end = render_end(report);
    CHECK_MESSAGE(std::ranges::count(end, '\n') <= 21, end);
    CHECK_MESSAGE(end.find("scripted - noop: not inferior, +35.7") != std::string::npos, end);
    CHECK_MESSAGE(end.find("reference - noop") == std::string::npos, end);
    const std::string svg = render_svg(report);
    std::size_t bars = 0;
    for (std::size_t at = svg.find("class=\"bar\""); at != std::string::npos;
         at = svg.find("class=\"bar\"", at + 1))
      ++bars;
    CHECK(bars == 2);  // of the agent: all tasks, and its language
  }

  TEST_CASE("too few tasks for any verdict stand in its own cell") {
    for (const std::size_t tasks : {5U, 6U, 7U, 8U}) {
      for (const bool two : {false, true}) {
        CAPTURE(tasks);
        CAPTURE(two);
        Runs runs;
        for (std::size_t t = 0; t < tasks; ++t)
          for (const char* method : {"able", "feeble", "third"})
            runs.ended(
                "task-" + std::to_string(t), "go", method,
                method == std::string("feeble") ? RunOutcome::kFailure : RunOutcome::kSuccess);
        ReportInput input{"c-1", "USD", {"language"}, std::move(runs.records), 0.05};
        input.contrasts = {{"feeble", "able"}};
        if (two) input.contrasts.emplace_back("feeble", "third");
        const CampaignReport report = build_report(std::move(input));
        const Contrast& c = report.analysis->contrasts.front();
        const bool too_few = tasks < (two ? 7U : 6U);  // 2 / 2^tasks, and Holm's 2, against 0.05
        CHECK(c.too_few == too_few);
        CHECK(c.verdict == (too_few ? ContrastVerdict::kNotShown : ContrastVerdict::kWorse));
        CHECK(verdict_words(c) == (too_few ? "no difference shown: too few tasks" : "worse"));
      }
    }
  }

  TEST_CASE("noop and reference do not decide the frontier of success and price") {
    ReportInput input = quickstart();
    for (RunRecord& run : input.runs)
      run.baseline = run.method == "noop"        ? RunRecord::Baseline::kNoop
                     : run.method == "reference" ? RunRecord::Baseline::kReference
                                                 : RunRecord::Baseline::kNone;
    const ReportDetails details = report_details(build_report(input));
    REQUIRE(details.prices.size() == 3);
    for (const MethodPrice& p : details.prices) {
      CAPTURE(p.method);
      CHECK(p.undominated.has_value() == (p.method == "scripted"));
      if (p.undominated) CHECK(*p.undominated);
    }
  }

  TEST_CASE("equal means tie on the frontier, whatever doubles make of them") {
    // Rates 1/10 and 2/10 against 3/10: as doubles 0.1 + 0.2 is more than 0.3.
    Runs runs;
    const auto add = [&](const char* task, const char* method, int successes) {
      for (int i = 0; i < 10; ++i)
        runs.ended(task, "c", method, i < successes ? RunOutcome::kSuccess : RunOutcome::kFailure);
    };
    add("one", "a", 1);
    add("two", "a", 2);
    add("three", "a", 0);
    add("one", "b", 0);
    add("two", "b", 0);
    add("three", "b", 3);
    ReportInput input;
    input.campaign = "tied";
    input.strata_keys = {"language"};
    input.runs = runs.records;
    const CampaignReport report = build_report(input);
    const ReportDetails details = report_details(report);
    REQUIRE(details.prices.size() == 2);
    CHECK(*details.prices[0].undominated);
    CHECK(*details.prices[1].undominated);
    // In 6 of 27 draws both solve as much, and both count; in the others one is alone.
    CHECK(*details.prices[0].undominated_share + *details.prices[1].undominated_share > 1.1);
  }

  TEST_CASE("tasks that differ alike have no spread, whatever doubles make of them") {
    // 3/5 less 1/5 and 4/5 less 2/5 are both 2/5, and not the same double.
    std::vector<TaskCell> a, b;
    for (std::uint64_t i = 0; i < 8; ++i) {
      a.push_back({5, 3 + i % 2, 0, 0});
      b.push_back({5, 1 + i % 2, 0, 0});
    }
    const Contrast c = contrast_of(a, b, AnalysisPlan{});
    CHECK(*c.difference.estimate.value == 0.4);
    CHECK(c.difference.estimate.why == Why::kNoVariance);
    CHECK_FALSE(c.difference.estimate.interval.has_value());
    CHECK_FALSE(c.equivalence.has_value());
    // By runs likewise: three times as many of each, with equal rates.
    for (std::uint64_t i = 0; i < 8; ++i) {
      a[i] = {1 + i, i % 3 == 0 ? 1U : 0U, 0, 0};
      b[i] = {3 * a[i].scorable, 3 * a[i].success, 0, 0};
    }
    AnalysisPlan by_run;
    by_run.estimand = AnalysisPlan::Estimand::kRunMean;
    CHECK(*contrast_of(a, b, by_run).difference.estimate.value == 0);
    CHECK(contrast_of(a, b, by_run).difference.estimate.why == Why::kNoVariance);
  }

  TEST_CASE("a verdict whose test is not that of the interval beside it says so") {
    AnalysisPlan plan;
    // Within 10 points either way, and one-sided within the margin.
    std::vector<TaskCell> a(100, TaskCell{20, 10, 0, 0}), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) b[i].success = i % 2 == 0 ? 11 : 9;
    const Contrast equivalent = contrast_of(a, b, plan);
    CHECK(verdict_note(equivalent, plan).find("two one-sided tests at 0.05") != std::string::npos);
    // Better by p and by the interval: there is no more to say.
    for (std::size_t i = 0; i < 12; ++i) {
      a[i] = {4, 4, 0, 0};
      b[i] = {4, i == 0 ? 1U : 0U, 0, 0};
    }
    a.resize(12);
    b.resize(12);
    const Contrast better = contrast_of(a, b, plan);
    CHECK(better.verdict == ContrastVerdict::kBetter);
    CHECK(verdict_note(better, plan).empty());
    // Five tasks: the interval leaves out 0, and no p of five flips is small enough.
    a.resize(5);
    b.resize(5);
    plan.non_inferiority = {1};
    const Contrast five = contrast_of(a, b, plan);
    CHECK(0 < five.difference.estimate.interval->low);
    CHECK(five.verdict != ContrastVerdict::kBetter);
    CHECK(verdict_note(five, plan).find("leaves out 0") != std::string::npos);
  }

  TEST_CASE("runs that wait for money may come as open ones may, and nothing is compared") {
    ReportInput input = quickstart();
    input.runs.front().state = RunRecord::State::kParked;
    input.runs.front().parked_scope = "global";
    const CampaignReport report = build_report(input);
    CHECK(report.analysis->contrasts.empty());
    CHECK(report.analysis->open == 1);
    CHECK(may_be_compared("camp", report.runs).error().code == Errc::kConflict);
    CHECK(render_json(report).find("\"interim\":true") != std::string::npos);
    // What is broken for good, or was cancelled, is no reason to wait.
    input.runs.front().parked_why = "its method cannot start";
    CHECK_FALSE(build_report(input).analysis->contrasts.empty());
    CHECK(may_be_compared("camp", input.runs).ok());
    input.runs.front().state = RunRecord::State::kCancelled;
    CHECK(may_be_compared("camp", input.runs).ok());
    CHECK_FALSE(build_report(input).analysis->contrasts.empty());
  }

  TEST_CASE("a task that was taken out after its runs had ended is shown both ways") {
    ReportInput input = quickstart();
    input.plan_registered = true;
    input.contrasts = {{"reference", "scripted"}};
    const Contrast before = build_report(input).analysis->contrasts.front();
    CHECK(build_report(input).analysis->with_removed.empty());
    for (RunRecord& run : input.runs)
      if (run.task == "task-0") {
        run.state = RunRecord::State::kRemoved;
        run.ended_before_removal = true;
      }
    const CampaignReport report = build_report(input);
    REQUIRE(report.analysis->with_removed.size() == 1);
    CHECK(report.analysis->removed_tasks == 1);
    CHECK(report.analysis->contrasts.front().tasks == before.tasks - 1);
    CHECK(report.analysis->with_removed.front().tasks == before.tasks);
    CHECK(report.analysis->with_removed.front().adjusted == before.adjusted);
    const std::string text = render_text(report);
    CHECK(text.find("as registered, but for 1 task taken out since") != std::string::npos);
    CHECK(text.find("with the 1 task taken out after runs had ended") != std::string::npos);
    CHECK(render_json(report).find("\"contrasts_with_removed\"") != std::string::npos);
  }

  TEST_CASE("an interim report compares nothing") {
    ReportInput input = quickstart();
    input.runs.front().state = RunRecord::State::kRunning;
    const CampaignReport report = build_report(input);
    CHECK(report.analysis->contrasts.empty());
    for (const auto state : {RunRecord::State::kRunning, RunRecord::State::kPlanned}) {
      input.runs.front().state = state;
      CHECK_FALSE(may_be_compared("camp", input.runs).ok());
    }
    CHECK(render_text(report).find("not shown while 1 run is open: no") != std::string::npos);
    input.runs.back().state = RunRecord::State::kParked;
    CHECK(render_text(build_report(input)).find("2 runs are open or parked for money (raise") !=
          std::string::npos);
    input.runs.front().state = RunRecord::State::kParked;
    CHECK(render_text(build_report(input)).find("2 runs are parked for money (raise") !=
          std::string::npos);
    input.runs.front().state = RunRecord::State::kRunning;
    input.runs.back().parked_why = "its method is broken";  // over, and for no money
    CHECK(build_report(input).analysis->for_money == 0);
    // Nor does it give them to programs.
    CHECK(render_json(report).find("\"interim\":true") != std::string::npos);
    CHECK(render_contrasts_csv(*report.analysis).find("noop") == std::string::npos);
  }

  TEST_CASE("patches that are judged again are compared only if all runs of the plan are") {
    ReportInput input = quickstart();
    input.again = "replay of camp";
    CHECK_FALSE(build_report(input).analysis->contrasts.empty());
    CHECK(may_be_compared("camp", input.runs).ok());
    input.runs.front().state = RunRecord::State::kRemoved;
    input.runs.front().unjudged = true;
    const CampaignReport report = build_report(input);
    CHECK(report.analysis->contrasts.empty());
    CHECK(report.analysis->open == 1);
    CHECK_FALSE(may_be_compared("camp", input.runs).ok());
    CHECK(render_text(report).find("not shown while 1 run is not judged again: no") !=
          std::string::npos);
  }

  TEST_CASE("a clear difference, an equivalence and one that is not inferior are told apart") {
    const AnalysisPlan plan;
    std::vector<TaskCell> all(12, TaskCell{4, 4, 0, 0}), none(12, TaskCell{4, 0, 0, 0});
    const Contrast better = contrast_of(all, none, plan);
    CHECK(better.verdict == ContrastVerdict::kBetter);
    CHECK(contrast_of(none, all, plan).verdict == ContrastVerdict::kWorse);
    // A little better and a little worse in turn: within 10 points, and not worse by 5.
    std::vector<TaskCell> a(100, TaskCell{20, 10, 0, 0}), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) b[i].success = i % 2 == 0 ? 11 : 9;
    CHECK(contrast_of(a, b, plan).verdict == ContrastVerdict::kEquivalent);
    AnalysisPlan strict = plan;
    strict.min_effect = {1'000};
    CHECK(contrast_of(a, b, strict).verdict == ContrastVerdict::kNotInferior);
    strict.non_inferiority = {1'000};
    CHECK(contrast_of(a, b, strict).verdict == ContrastVerdict::kNotShown);
    CHECK(contrast_of({}, {}, plan).verdict == ContrastVerdict::kNone);
    CHECK(contrast_of({}, {}, plan).difference.estimate.why == Why::kNotPaired);
  }

  TEST_CASE("a method that loses more runs is said to, with the bounds that this leaves") {
    const AnalysisPlan plan;
    std::vector<TaskCell> a(10, TaskCell{2, 2, 0, 2}), b(10, TaskCell{4, 2, 0, 0});
    a.push_back({0, 0, 0, 4});
    b.push_back({4, 2, 0, 0});
    Contrast c = contrast_of(a, b, plan);
    c.a = "a";
    c.b = "b";
    CHECK(c.dropped_a == 1);
    CHECK(c.dropped_b == 0);
    CHECK(*c.difference.estimate.value == ten_digits(.5));
    CHECK(*c.loss_p < 0.05);
    CHECK(c.bounds->identified.low < 0.0001);
    const std::string note = contrast_sentence(c, plan);
    CHECK(note.find("1 task without a scorable run of a") != std::string::npos);
    CHECK(note.find("unequal loss") != std::string::npos);
  }

  TEST_CASE("a difference is shown within all points, and with the runs that never ended") {
    Runs runs;
    for (const char* task : {"one", "two"}) runs.ended(task, "c", "noop", RunOutcome::kFailure);
    runs.ended("one", "c", "agent", RunOutcome::kSuccess);
    runs.ended("two", "c", "agent", RunOutcome::kFailure);
    for (int i = 0; i < 3; ++i) runs.add("two", "c", "agent").state = RunRecord::State::kCancelled;
    ReportInput input;
    input.campaign = "steered";
    input.strata_keys = {"language"};
    input.runs = runs.records;
    input.contrasts = contrasts_of(input.plan, {"noop", "agent"}, {true, false});
    const CampaignReport report = detailed(input);
    const Contrast& c = report.analysis->contrasts.at(0);
    CHECK(c.difference.estimate.interval->high > 6.8);  // as computed, for programs
    const std::string text = render_text(report);
    CHECK_MESSAGE(text.find("[-100.0, +100.0]") != std::string::npos, text);
    CHECK_MESSAGE(text.find("685.3") == std::string::npos, text);
    CHECK_MESSAGE(
        text.find("3 runs of agent and 0 of noop never came to an end") != std::string::npos, text);
    CHECK(c.bounds->identified.low == ten_digits(.5));  // over what ended (REPORT S20)
  }

  TEST_CASE("every run counts equally where that was registered") {
    ReportInput input = quickstart();
    input.plan.estimand = AnalysisPlan::Estimand::kRunMean;
    input.plan_registered = true;
    const CampaignReport report = build_report(input);
    CHECK(*report.analysis->rates[2].rate.value == ten_digits(0.3076923077));
    CHECK(*report.analysis->rates[2].rate.standard_error == ten_digits(0.1676499594));
    CHECK(*report.analysis->rates[2].rate.df == ten_digits(5.761904762));
    CHECK(render_text(report).find("as registered") != std::string::npos);
    // With the interval that was registered, not with Student's t in its place.
    const Interval exact = *report.analysis->rates[2].rate.interval;
    CHECK(report.rows[2].success_rate.interval == exact);  // the same rate, so the same interval
    input.plan.interval = AnalysisPlan::RateInterval::kWilson;
    const Interval wilson = *build_report(input).analysis->rates[2].rate.interval;
    input.plan.interval = AnalysisPlan::RateInterval::kT;
    const Interval t = *build_report(input).analysis->rates[2].rate.interval;
    CHECK(t.low < 0);
    CHECK(0 < wilson.low);
    CHECK(0 < exact.low);
    CHECK(exact.low != wilson.low);
  }

  TEST_CASE("every run counts equally in the p and the verdict too") {
    // Better in 10 of 11 tasks, worse over all runs: one large task has them.
    std::vector<TaskCell> a(10, TaskCell{1, 1, 0, 0}), b(10, TaskCell{1, 0, 0, 0});
    a.push_back({40, 0, 0, 0});
    b.push_back({40, 40, 0, 0});
    AnalysisPlan plan;
    const Contrast by_task = contrast_of(a, b, plan);
    CHECK(by_task.verdict == ContrastVerdict::kBetter);
    CHECK(by_task.flips->p == ten_digits(24.0 / 2048));
    plan.estimand = AnalysisPlan::Estimand::kRunMean;
    const Contrast by_run = contrast_of(a, b, plan);
    CHECK(*by_run.difference.estimate.value == ten_digits(-0.6));
    CHECK(by_run.flips->p == 1);  // one task makes the sign, whichever it has
    CHECK(by_run.verdict == ContrastVerdict::kNotShown);
    CHECK(by_run.a_better == 10);
    // Runs 3 1 2 4 2 3 1 2 and 2 3 1 4 2 1 3 2: all 256 signs of the scores by hand.
    const std::vector<std::uint64_t> runs_a = {3, 1, 2, 4, 2, 3, 1, 2},
                                     runs_b = {2, 3, 1, 4, 2, 1, 3, 2},
                                     won_a = {3, 1, 1, 3, 2, 1, 1, 2},
                                     won_b = {0, 2, 0, 1, 1, 1, 0, 0};
    a.clear();
    b.clear();
    for (std::size_t i = 0; i < 8; ++i) {
      a.push_back({runs_a[i], won_a[i], 0, 0});
      b.push_back({runs_b[i], won_b[i], 0, 0});
    }
    const Contrast unequal = contrast_of(a, b, plan);
    CHECK(unequal.flips->exact);
    CHECK(unequal.flips->p == ten_digits(14.0 / 256));
    CHECK(*unequal.difference.estimate.value == ten_digits(14.0 / 18 - 5.0 / 18));
  }

  TEST_CASE("estimate, interval, p, bounds and verdict of a row are of one estimand") {
    std::mt19937 random(34);
    for (int campaign = 0; campaign < 400; ++campaign) {
      CAPTURE(campaign);
      std::vector<TaskCell> a, b;
      std::vector<std::uint32_t> repositories;
      for (auto n = 1 + random() % 10; 0 < n; --n) {
        for (auto* side : {&a, &b}) {
          TaskCell cell;
          cell.scorable = random() % (n == 1 ? 20 : 5);
          cell.success = cell.scorable == 0 ? 0 : random() % (cell.scorable + 1);
          cell.error = cell.success < cell.scorable ? random() % 2 : 0;
          cell.invalid = random() % 2;
          side->push_back(cell);
        }
        repositories.push_back(1 + static_cast<std::uint32_t>(random() % 4));
      }
      for (const auto estimand :
           {AnalysisPlan::Estimand::kTaskMean, AnalysisPlan::Estimand::kRunMean}) {
        AnalysisPlan plan;
        plan.estimand = estimand;
        const Contrast c = contrast_of(a, b, plan, repositories);
        const Contrast back = contrast_of(b, a, plan, repositories);
        const Estimate& d = c.difference.estimate;
        if (!d.value) continue;
        constexpr double kRounding = 1e-12;
        const auto near = [&](double x, double y) { return std::fabs(x - y) <= kRounding; };
        const auto middle = [](const Interval& i) { return (i.low + i.high) / 2; };
        // The test is of the difference that is shown: equal signs, and p of either side alike.
        if (kRounding < std::fabs(*d.value)) CHECK((0 < c.flips->statistic) == (0 < *d.value));
        if (c.flips->statistic == 0) CHECK(near(*d.value, 0));
        CHECK(near(c.flips->p, back.flips->p));
        CHECK(near(*back.difference.estimate.value, -*d.value));
        if (d.interval) CHECK(near(middle(*d.interval), *d.value));
        if (c.equivalence) CHECK(near(middle(c.equivalence->interval), *d.value));
        CHECK(near(*c.by_repository->mean.estimate.value, *d.value));
        CHECK((c.by_repository->flips.statistic == c.flips->statistic));
        CHECK(c.bounds->identified.low <= *d.value + kRounding);
        CHECK(*d.value <= c.bounds->identified.high + kRounding);
        CHECK(near(c.bounds->identified.low, -back.bounds->identified.high));
        if (c.verdict == ContrastVerdict::kBetter) CHECK(0 < *d.value);
        if (c.verdict == ContrastVerdict::kWorse) CHECK(*d.value < 0);
      }
    }
  }

  TEST_CASE("equal methods differ in 5 of 100 campaigns by the registered unit") {
    constexpr unsigned kSeed = 19;
    MESSAGE("seed " << kSeed);
    std::mt19937 random(kSeed);
    constexpr int kCampaigns = 3'000;
    const double error = std::sqrt(0.05 * 0.95 / kCampaigns);
    using Unit = AnalysisPlan::Unit;
    std::vector<std::uint32_t> own, shared;  // 40 tasks; and 60 tasks of 12 repositories
    for (std::uint32_t i = 0; i < 40; ++i) own.push_back(i + 1);
    for (std::uint32_t i = 0; i < 60; ++i) shared.push_back(1 + i % 12);
    const auto within = [&](double share) { return std::fabs(share - 0.05) <= 3 * error; };
    const auto holds = [&](Unit unit, const auto& of, double of_repository, double of_task) {
      const Errors e =
          errors_of_equal_methods(unit, of, of_repository, of_task, kCampaigns, random);
      CAPTURE(of.size());
      CAPTURE(of_repository);
      CAPTURE(of_task);
      CAPTURE(e.verdicts);
      CAPTURE(e.intervals);
      CHECK(within(e.verdicts));
      CHECK(within(e.intervals));
    };
    holds(Unit::kTask, own, 0, 0);
    holds(Unit::kTask, own, 0, 0.2);
    holds(Unit::kRepository, own, 0, 0.2);
    holds(Unit::kRepository, shared, 0, 0.2);
    holds(Unit::kRepository, shared, 0.1, 0);
    holds(Unit::kRepository, shared, 0.1, 0.2);
    // Tasks as units are wrong there.
    CHECK(0.1 < errors_of_equal_methods(Unit::kTask, shared, 0.2, 0, 500, random).verdicts);
  }

  TEST_CASE("all of a comparison is by its unit, and the estimate is the same") {
    std::mt19937 random(1919);
    using Unit = AnalysisPlan::Unit;
    for (const auto estimand :
         {AnalysisPlan::Estimand::kTaskMean, AnalysisPlan::Estimand::kRunMean}) {
      std::vector<TaskCell> a, b;
      std::vector<std::uint32_t> repositories;
      for (std::uint32_t i = 0; i < 24; ++i) {
        a.push_back(
            {.scorable = 4, .success = 2 + random() % 3, .error = 0, .invalid = random() % 3});
        b.push_back({.scorable = 4, .success = random() % 3, .error = 0, .invalid = 0});
        repositories.push_back(1 + i % 4);
      }
      AnalysisPlan plan;
      plan.estimand = estimand;
      const Contrast before = contrast_of(a, b, plan, repositories);
      plan.unit = Unit::kTask;
      const Contrast tasks = contrast_of(a, b, plan, repositories);
      plan.unit = Unit::kRepository;
      const Contrast four = contrast_of(a, b, plan, repositories);
      // A plan from before there was a choice is as it was.
      CHECK(before.flips->p == tasks.flips->p);
      CHECK(before.verdict == ContrastVerdict::kBetter);
      CHECK(before.units == 24);
      // Four repositories show nothing: the smallest p is 2 of 16.
      CHECK(four.units == 4);
      CHECK(four.tasks == 24);
      CHECK(four.flips->p == 0.125);
      CHECK(four.verdict != ContrastVerdict::kBetter);
      CHECK(*four.difference.estimate.value ==
            doctest::Approx(*before.difference.estimate.value).epsilon(1e-12));
      CHECK(four.difference.estimate.interval == four.by_repository->mean.estimate.interval);
      CHECK(four.difference.p == four.by_repository->mean.p);
      CHECK(four.flips->p == four.by_repository->flips.p);
      CHECK(four.bounds->identified == tasks.bounds->identified);
      CHECK(four.bounds->interval != tasks.bounds->interval);
      CHECK(four.not_inferior != tasks.not_inferior);
      CHECK(0.125 <= *four.loss_p);
      CHECK(verdict_note(four, plan).find("unit: task") != std::string::npos);
      CHECK(verdict_note(before, AnalysisPlan{}).find("unit: task") == std::string::npos);
      // One repository: no interval, and no verdict.
      const std::vector<std::uint32_t> one(24, 1);
      const Contrast alone = contrast_of(a, b, plan, one);
      CHECK(alone.verdict == ContrastVerdict::kNotShown);
      CHECK(alone.difference.estimate.why == Why::kOneGroup);
      CHECK_FALSE(alone.difference.estimate.interval);
      CHECK_FALSE(alone.equivalence);
      CHECK_FALSE(alone.bounds->interval);
    }
  }

  TEST_CASE("a repository of one task each is a task") {
    std::mt19937 random(7);
    std::vector<TaskCell> a, b;
    std::vector<std::uint32_t> own;
    for (std::uint32_t i = 0; i < 12; ++i) {
      a.push_back({.scorable = 3, .success = random() % 4});
      b.push_back({.scorable = 3, .success = random() % 4});
      own.push_back(i + 1);
    }
    AnalysisPlan plan;
    const Contrast tasks = contrast_of(a, b, plan, own);
    plan.unit = AnalysisPlan::Unit::kRepository;
    const Contrast blocks = contrast_of(a, b, plan, own);
    CHECK(tasks.flips->p == blocks.flips->p);
    CHECK(tasks.difference.estimate.interval->low ==
          doctest::Approx(blocks.difference.estimate.interval->low).epsilon(1e-10));
    CHECK(tasks.verdict == blocks.verdict);
  }

  TEST_CASE("max-t draws and flips repositories, and few of them leave it to Holm") {
    std::mt19937 random(3);
    for (const std::uint32_t repositories : {10U, 60U}) {
      Runs runs;
      for (std::uint32_t i = 0; i < 120; ++i)
        for (const char* method : {"x", "y", "z"})
          for (int r = 0; r < 2; ++r) {
            runs.ended("task-" + std::to_string(1000 + i), "c", method,
                       random() % 5 < (*method == 'x' ? 4 : 1) ? RunOutcome::kSuccess
                                                               : RunOutcome::kFailure);
            runs.records.back().repository = 1 + i % repositories;
          }
      ReportInput input;
      input.campaign = "joint";
      input.strata_keys = {"language"};
      input.runs = runs.records;
      input.plan.unit = AnalysisPlan::Unit::kRepository;
      input.plan.multiplicity = AnalysisPlan::Multiplicity::kMaxT;
      input.contrasts = {{"x", "y"}, {"z", "y"}};
      const CampaignReport report = build_report(input);
      const Analysis& analysis = *report.analysis;
      const bool joint = analysis.adjustment.used == AnalysisPlan::Multiplicity::kMaxT;
      CHECK(joint == (repositories == 60));
      CHECK(words(analysis.adjustment).find("repositories") != std::string::npos);
      CHECK(analysis.contrasts[0].units == repositories);
      CHECK(analysis.contrasts[0].verdict == ContrastVerdict::kBetter);
      if (joint) {
        // Wider than alone, and around the estimate.
        const Interval wide = *analysis.contrasts[0].simultaneous;
        const Interval alone = *analysis.contrasts[0].difference.estimate.interval;
        CHECK(alone.high - alone.low < wide.high - wide.low);
        CHECK(wide.high - wide.low < 1.5 * (alone.high - alone.low));
      }
    }
  }

  TEST_CASE("the plan that is not written compares with the no-op, or with the first method") {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    AnalysisPlan plan;
    CHECK(contrasts_of(plan, {"x", "noop", "y"}, {false, true, false}) ==
          Pairs{{"x", "noop"}, {"y", "noop"}});
    CHECK(contrasts_of(plan, {"x", "y"}, {false, false}) == Pairs{{"y", "x"}});
    plan.baseline = "y";
    CHECK(contrasts_of(plan, {"x", "y"}, {false, false}) == Pairs{{"x", "y"}});
    plan.contrasts = {{"y", "x"}};
    CHECK(contrasts_of(plan, {"x", "y"}, {false, false}) == Pairs{{"y", "x"}});
    CHECK(contrasts_of({}, {}, {}).empty());
  }
}
