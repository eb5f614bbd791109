// Gates, graded score and failure modes of a report: counted by method and stratum, never one
// number, and compared by tasks that are resampled.
#include "coordinator/aggregate/rubric.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "coordinator/aggregate/columns.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using proctor::testing::detailed;
using proctor::testing::Runs;
using proctor::testing::small_campaign;
using enum GateOutcome;

namespace {
// Two methods on six tasks, two runs of each.  alpha passes all gates with a score of 0.8, and 0.6
// on the last task; beta has 0.5 everywhere and breaks a rule in its second run of each task.
ReportInput judged() {
  Runs runs;
  for (int task = 0; task < 6; ++task)
    for (const char* method : {"alpha", "beta"})
      for (int r = 0; r < 2; ++r) {
        RunRecord& run = runs.ended("t" + std::to_string(task), task < 3 ? "go" : "rust", method,
                                    RunOutcome::kSuccess);
        run.gates = {kPass, kPass, kPass, kPass};
        run.score = *method == 'a' ? (task == 5 ? 0.6 : 0.8) : 0.5;
        if (*method == 'a' || r == 0) continue;
        run.gates = {kPass, kPass, kPass, kFail};
        run.score.reset();
        run.tags = "policy.network_denied,house.slow";
      }
  ReportInput input{"judged-1", "USD", {"language"}, std::move(runs.records), 0.05};
  input.contrasts = {{"alpha", "beta"}};
  input.failure_modes = {{.id = "house.slow",
                          .check = "speed",
                          .severity = Severity::kHigh,
                          .sentence = "It is slower than the house allows."}};
  return input;
}

GradedScore scored(double minimal, double trace, double maint) {
  GradedScore out{minimal, trace, maint, 0.5, 0.3, 0.2};
  out.s = 0.5 * minimal + 0.3 * trace + 0.2 * maint;
  return out;
}
}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("a run is satisfied where all of its gates pass, and names the first that does not") {
    RunRecord run;
    run.state = RunRecord::State::kEnded;
    run.outcome = RunOutcome::kSuccess;
    CHECK(run.satisfied());  // an older worker's
    run.gates = {kPass, kPass, kPass, kPass};
    run.violations = 1;  // the vector has decided
    CHECK(run.satisfied());
    CHECK(run.failed_gate() == "");
    run.gates = {kPass, kNotRun, kPass, kError};
    CHECK_FALSE(run.satisfied());
    CHECK(run.failed_gate() == "build");
    run.violations = 0;
    CHECK(run.unmet() == "gate build: not_run; gate safety: error");
  }

  TEST_CASE(
      "gates are counted by method and stratum, and the score is of runs that pass them all") {
    const CampaignReport report = detailed(judged());
    const RubricTables& rubric = report.details->rubric;
    REQUIRE(rubric.gates.size() == 6);
    const GateRow &alpha = rubric.gates[0], &beta = rubric.gates[1];
    CHECK(alpha.method == "alpha");
    CHECK(alpha.judged == 12);
    for (const auto& of_gate : alpha.outcomes) CHECK(of_gate.front() == 12);
    CHECK(alpha.first.empty());
    CHECK(alpha.critical == 0);
    CHECK(alpha.all.x == 12);
    CHECK(alpha.scored == 12);
    CHECK(*alpha.score.value == doctest::Approx(4.6 / 6));
    REQUIRE(alpha.score.interval);
    CHECK(beta.judged == 12);
    CHECK(beta.outcomes[2] == std::array<std::uint64_t, 4>{12, 0, 0, 0});
    CHECK(beta.outcomes[3] == std::array<std::uint64_t, 4>{6, 6, 0, 0});
    CHECK(beta.first == "t0/beta/r2");
    CHECK(*beta.all.rate == 0.5);
    CHECK(beta.scored == 6);
    CHECK(*beta.score.value == 0.5);
    CHECK(beta.score.why == Why::kNoVariance);
    const auto go = std::ranges::find_if(rubric.gates, [](const GateRow& r) {
      return r.key == "language" && r.value == "go" && r.method == "beta";
    });
    REQUIRE(go != rubric.gates.end());
    CHECK(go->judged == 6);
    CHECK(go->outcomes[3][0] == 3);
    CHECK(critical_warning(rubric).empty());
  }

  TEST_CASE("successes with a critical violation are counted by method, and failures are not") {
    ReportInput input = judged();
    for (RunRecord& run : input.runs)
      if (!run.tags.empty()) run.tags = "safety.os_risk,safety.sandbox_escape";
    input.runs.back().outcome = RunOutcome::kFailure;
    const CampaignReport report = detailed(std::move(input));
    const RubricTables& rubric = report.details->rubric;
    CHECK(rubric.gates[0].critical == 0);
    CHECK(rubric.gates[1].critical == 5);
    CHECK(critical_warning(rubric).ends_with(" violation: beta 5."));
    const std::string told = render_text(report);
    CHECK(told.find("Warning: A success looks at acceptance alone") != std::string::npos);
    CHECK(told.find("Monitors of 24 of 24 judged runs: not known.") != std::string::npos);
  }

  TEST_CASE("what became of a violation follows from its kind, and words alone are none") {
    CHECK(violation_answer("call: mount", "executed") == "refused (EPERM)");
    CHECK(violation_answer("command: rm", "executed") == "only recorded: it was let run");
    CHECK(violation_answer("command: rm", "text") == violation_answer("command: rm", "code"));
    CHECK(violation_answer("command: rm", "text") != violation_answer("command: rm", "executed"));
    CHECK(violation_answer("protected: a", "") == violation_answer("not writable: a", ""));
    CHECK(violation_answer("else", "") == "only recorded");
    CHECK(violation_answer("", "") == "the checks passed");
    ReportInput input = judged();
    input.runs[3].violations = 1;
    input.runs[3].violated = "call: mount";
    const auto says = [&](const std::string& words) {
      std::string text = render_text(detailed(input));  // its lines are wrapped
      std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
      return text.find(words) != std::string::npos;
    };
    CHECK(says("1violation,call:mount(refused(EPERM))"));
    input.runs[3].violations = 2;
    CHECK(says("2violations,firstcall:mount(thefirst:refused(EPERM))"));
  }

  TEST_CASE("names and words of monitors are a worker's: they are cut, and made printable") {
    ReportInput input = judged();
    std::map<std::string, std::string> parts;
    for (int i = 10; i < 40; ++i)
      parts["monitors." + std::to_string(i) + std::string(500, 'n')] = std::string(500, '\x1b');
    for (RunRecord& run : input.runs) run.configuration = "class";
    input.configurations["class"] = parts;
    input.again = "regrade of judged-0";
    const std::string told = rubric_notes(detailed(std::move(input))).front();
    CHECK(told.starts_with("Monitors of 24 of 24 judged runs: 10nnn"));
    CHECK(told.find('\x1b') == std::string::npos);
    CHECK(told.size() < 1'000);
    CHECK(told.find("(of this judging; ") != std::string::npos);
  }

  TEST_CASE("the score is explained where a run has one") {
    const auto explains = [](const ReportInput& input) {
      const std::string note = rubric_notes(detailed(input)).back();
      return note.starts_with("Score = ");
    };
    ReportInput input = judged();
    CHECK(explains(input));
    for (RunRecord& run : input.runs) run.score.reset();
    CHECK_FALSE(explains(input));
    // There is a reason where no run could have one.
    const auto counts_none = [](const ReportInput& of) {
      return rubric_notes(detailed(of)).back().ends_with("(n = 0).");
    };
    CHECK_FALSE(counts_none(input));
    for (RunRecord& run : input.runs) run.gates = {kPass, kPass, kFail, kPass};
    CHECK(counts_none(input));
    CHECK_FALSE(explains(input));
    input.runs[0].gates = {kPass, kPass, kPass, kPass};
    CHECK_FALSE(counts_none(input));
  }

  TEST_CASE("failure modes are shares of judged runs, the most severe first") {
    const CampaignReport report = detailed(judged());
    const std::vector<TagRow>& tags = report.details->rubric.tags;
    REQUIRE(tags.size() == 6);  // beta's: over all tasks, and two strata
    CHECK(tags[0].tag == "house.slow");
    CHECK(tags[0].severity == Severity::kHigh);
    CHECK(tags[0].sentence == "It is slower than the house allows.");
    CHECK(tags[0].method == "beta");
    CHECK(tags[0].runs.x == 6);
    CHECK(tags[0].runs.n == 12);
    CHECK(tags[0].runs.interval.has_value());
    CHECK(tags[1].tag == "policy.network_denied");
    CHECK(tags[1].severity == Severity::kLow);
    CHECK(tags[1].sentence != "");
  }

  TEST_CASE("methods are compared on the score over tasks that both have, by resampled tasks") {
    const CampaignReport report = detailed(judged());
    const std::vector<ScoreContrast>& contrasts = report.details->rubric.contrasts;
    REQUIRE(contrasts.size() == 1);
    CHECK(contrasts[0].tasks == 6);
    CHECK(contrasts[0].difference == doctest::Approx(1.6 / 6));
    CHECK(contrasts[0].draws == 2'000);
    REQUIRE(contrasts[0].interval);
    // Each task of a draw differs by 0.3 or, the last, by 0.1.
    CHECK(contrasts[0].interval->low > 0.1);
    CHECK(contrasts[0].interval->low < contrasts[0].difference);
    CHECK(contrasts[0].interval->high == doctest::Approx(0.3));
    ReportInput open = judged();
    open.runs.front().state = RunRecord::State::kRunning;
    CHECK(detailed(std::move(open)).details->rubric.contrasts.empty());
  }

  TEST_CASE("a campaign of older workers has no table of gates, and its runs have no vector") {
    const CampaignReport report = detailed(small_campaign());
    CHECK(report.details->rubric.gates.empty());
    CHECK(report.details->rubric.tags.empty());
    CHECK(render_text(report).find("G4 safety") == std::string::npos);
    CHECK(render_text(detailed(judged())).find("G4 safety") != std::string::npos);
    const std::string csv = render_runs_csv(report);
    CHECK(csv.substr(0, csv.find('\n'))
              .ends_with("gate_patch,gate_build,gate_functional,gate_safety,score,tags"));
    const std::string with = render_runs_csv(detailed(judged()));
    CHECK(with.find("pass,pass,pass,fail,,\"policy.network_denied,house.slow\"\n") !=
          std::string::npos);
    CHECK(with.find("pass,pass,pass,pass,0.8,\n") != std::string::npos);
  }

  TEST_CASE("the score under other weights says whether an order of methods changes") {
    // alpha is small, beta has the better checks: alpha is ahead unless maint counts for more.
    const std::vector<ScoredRun> runs = {{"alpha", scored(0.9, 1, 0.2)},
                                         {"beta", scored(0.7, 1, 0.55)}};
    const std::vector<SensitivityRow> rows = rubric_sensitivity(runs, {});
    REQUIRE(rows.size() == 2 * 10);
    CHECK(rows[0].name == "registered");
    CHECK(rows[0].method == "alpha");
    CHECK(rows[0].mean == doctest::Approx(0.79));
    CHECK(rows[1].mean == doctest::Approx(0.76));
    std::string turned;
    for (const SensitivityRow& row : rows) {
      CHECK(row.weights.minimal + row.weights.trace + row.weights.maint == kMillion);
      if (row.turned && row.method == "beta") turned += row.name + ";";
    }
    CHECK(turned == "maint alone;maint + 0.1;");
    const auto more = std::ranges::find(rows, "maint + 0.1", &SensitivityRow::name);
    CHECK(more->weights.minimal == 454'545);
    CHECK(more->mean == doctest::Approx((0.5 * 0.9 + 0.3 + 0.3 * 0.2) / 1.1).epsilon(1e-5));
    const std::string csv = aggregate::csv_of(aggregate::sensitivity_columns(), rows);
    CHECK(
        csv.starts_with("weights,minimal,trace,maint,method,runs,mean,order_changes\nregistered,0."
                        "5,0.3,0.2,alpha,1,"));
  }
}
