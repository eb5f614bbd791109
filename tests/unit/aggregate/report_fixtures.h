#pragma once
// A small campaign in which everything that can happen happened.
#include <memory>
#include <string>
#include <utility>

#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/report.h"

namespace proctor::testing {

inline MicroUsd usd_micros(std::int64_t m) {
  return MicroUsd::from_micros(m);
}

class Runs {
 public:
  // Adds a run of the task under the method; the language is the stratum.
  RunRecord& add(const std::string& task, const std::string& language, const std::string& method) {
    RunRecord run;
    run.run = RunId(static_cast<std::uint32_t>(records.size()));
    run.task = task;
    run.method = method;
    run.strata = {language};
    run.name = task + "/" + method + "/r" + std::to_string(++replicates_[task + method]);
    return records.emplace_back(std::move(run));
  }
  RunRecord& ended(const std::string& task, const std::string& language, const std::string& method,
                   RunOutcome outcome, std::uint64_t wall_ms = 1000) {
    RunRecord& run = add(task, language, method);
    run.state = RunRecord::State::kEnded;
    run.outcome = outcome;
    run.attempts = 1;
    run.wall_ms = wall_ms;
    run.cost.execution = usd_micros(100'001);
    run.report = sha256(run.name);
    return run;
  }
  std::vector<RunRecord> records;

 private:
  std::map<std::string, int> replicates_;
};

// With its details, as the command that writes reports makes it.
inline CampaignReport detailed(ReportInput input) {
  CampaignReport report = build_report(std::move(input));
  report.details = std::make_shared<const ReportDetails>(report_details(report));
  return report;
}

// The runs of these two methods become those of a noop and of a reference.
inline ReportInput with_controls(ReportInput input, std::string_view noop,
                                 std::string_view reference) {
  for (RunRecord& run : input.runs) {
    if (run.method == noop) run.baseline = RunRecord::Baseline::kNoop;
    if (run.method == reference) run.baseline = RunRecord::Baseline::kReference;
  }
  return input;
}

// alpha: 3 successes, 1 failure, 1 acceptance error, 1 invalid, 1 parked, 1 planned.
// beta: 1 failure, 1 running, 1 cancelled, 1 removed.
inline ReportInput small_campaign() {
  Runs runs;
  runs.ended("lib", "go", "alpha", RunOutcome::kSuccess, 1000).cost.model = usd_micros(7);
  runs.ended("lib", "go", "alpha", RunOutcome::kSuccess, 3000);
  runs.ended("cli", "rust", "alpha", RunOutcome::kSuccess, 2000);
  runs.ended("cli", "rust", "alpha", RunOutcome::kFailure, 9500).termination =
      Termination::kAgentTimeout;
  runs.ended("cli", "rust", "alpha", RunOutcome::kAcceptanceError, 500);
  RunRecord& invalid = runs.ended("lib", "go", "alpha", RunOutcome::kInvalid, 0);
  invalid.termination = Termination::kInfrastructure;
  invalid.attempts = 4;
  invalid.report = Digest();
  RunRecord& parked = runs.add("cli", "rust", "alpha");
  parked.state = RunRecord::State::kParked;
  parked.parked_scope = "stage:main";
  parked.short_by = usd_micros(250'001);
  runs.add("lib", "go", "alpha");
  runs.ended("lib", "go", "beta", RunOutcome::kFailure, 100);
  runs.add("cli", "rust", "beta").state = RunRecord::State::kRunning;
  runs.add("cli", "rust", "beta").state = RunRecord::State::kCancelled;
  runs.add("lib", "go", "beta").state = RunRecord::State::kRemoved;
  return {"pilot-12ab34cd56ef", "USD", {"language"}, std::move(runs.records), 0.05};
}

}  // namespace proctor::testing
