#include "coordinator/cli/screen_campaign.h"

#include <algorithm>

#include "common/pilot/variants.h"
#include "common/score/test_results.h"
#include "common/trace/evidence.h"
#include "coordinator/cli/trial_campaign.h"

namespace proctor::cli {
namespace {

std::vector<Variant> variants_to_screen(const Contract& contract) {
  std::vector<Variant> out{{kVariantNoop, ""}};
  if (!contract.reference_patch.empty()) out.insert(out.begin(), {kVariantReference, ""});
  return out;
}

std::vector<TaskVariants> variants_of_all(const std::vector<const Contract*>& tasks) {
  std::vector<TaskVariants> out;
  out.reserve(tasks.size());
  for (const Contract* c : tasks) out.push_back({c, variants_to_screen(*c)});
  return out;
}

ScreenTally& tally_of(ScreenState& state, const std::string& arm) {
  return arm == kArmAlone ? state.alone : state.load;
}

std::string_view word(TestStatus status) {
  switch (status) {
    case TestStatus::kPass:
      return "pass";
    case TestStatus::kFail:
      return "fail";
    case TestStatus::kSkip:
      return "skip";
  }
  return "";
}

// Tests that may fail decide nothing, so that they may also flicker.
void add_tests(const Check& check, const TestResults& results, Outcomes& out) {
  const bool has_required = !check.fail_to_pass.empty() || !check.pass_to_pass.empty();
  const auto name = [&](const std::string& test) { return check.id + "\n" + test; };
  if (!has_required || !check.others_may_fail)
    for (const auto& [id, status] : results.tests) out[name(id)] = word(status);
  for (const auto* ids : {&check.fail_to_pass, &check.pass_to_pass})
    for (const std::string& id : *ids) {
      const auto it = results.find(id);
      out[name(id)] = it == results.tests.end() ? "absent" : word(it->second);
    }
}

// A file that is broken has no tests; its check says so by its outcome.
Status add_check(const Contract& contract, const fs::path& attempt, const CheckReport& seen,
                 Outcomes& out) {
  out[seen.id] = seen.outcome ? to_string(*seen.outcome) : "not_run";
  const auto check = std::ranges::find(contract.checks, seen.id, &Check::id);
  if (check == contract.checks.end() || check->reader == ResultReader::kExitCode ||
      !seen.result_digest)
    return ok_status();
  PROCTOR_TRY(const std::string bytes,
              read_file(attempt / kAcceptanceDir / check_dir_name(seen.id) / kResultsFile,
                        kResultFileBytes));
  const Result<TestResults> results =
      check->reader == ResultReader::kJunit ? parse_junit(bytes) : parse_tap(bytes);
  if (results.ok()) add_tests(*check, *results, out);
  return ok_status();
}

Result<Outcomes> outcomes_of(const FrozenCampaign& frozen, const RunRecord& run,
                             const Contract& contract) {
  const fs::path attempt = frozen.folder.attempt(run.name, AttemptNo(run.attempts));
  PROCTOR_TRY(const std::string bytes, read_file(attempt / kReportFile, kReportBytes));
  PROCTOR_TRY(const RunReport report, parse_report(bytes));
  Outcomes out;
  out[""] = to_string(run.outcome);
  for (const CheckReport& check : report.checks)
    PROCTOR_CHECK_OK(add_check(contract, attempt, check, out));
  return out;
}

void count_run(const FrozenCampaign& frozen, const RunRecord& run, const Contract& contract,
               ScreenTally& tally) {
  if (run.state == RunRecord::State::kParked)
    return tally.lose(run.parked_why.empty() ? "no money was left for it" : run.parked_why);
  if (run.state != RunRecord::State::kEnded) return tally.lose("it has not run");
  // What the host failed at is no flicker of the task.
  if (run.outcome == RunOutcome::kInvalid)
    return tally.lose(run.rationale.empty() ? "its run is invalid" : run.rationale);
  Result<Outcomes> outcomes = outcomes_of(frozen, run, contract);
  if (!outcomes.ok()) return tally.lose(outcomes.error().detail);
  tally.add(std::move(outcomes).value());
}

}  // namespace

StateFolder screen_folder(const fs::path& campaign, const std::string& arm) {
  return StateFolder::trials(campaign, ".proctor/screen/" + arm);
}

Result<FrozenCampaign> screen_frozen(const Campaign& campaign,
                                     const std::vector<const Contract*>& tasks,
                                     std::uint32_t repeats, std::optional<MicroUsd> usd,
                                     StateFolder folder) {
  const std::vector<TaskVariants> all = variants_of_all(tasks);
  return freeze_trials(selfcheck_campaign(campaign, all, repeats, usd), all, std::move(folder));
}

std::vector<ScreenState> states_of(const Contract& contract) {
  std::vector<ScreenState> out;
  if (!contract.reference_patch.empty()) out.push_back({kStateReference, {}, {}});
  out.push_back({kStateSnapshot, {}, {}});
  return out;
}

void count_arm(const FrozenCampaign& frozen, const CampaignReport& report, const Contract& contract,
               const std::string& arm, std::vector<ScreenState>& states) {
  for (const RunRecord& run : report.runs) {
    if (run.task != contract.id || run.state == RunRecord::State::kRemoved) continue;
    const std::string state = run.method == kVariantNoop ? kStateSnapshot : kStateReference;
    const auto it = std::ranges::find(states, state, &ScreenState::state);
    if (it != states.end()) count_run(frozen, run, contract, tally_of(*it, arm));
  }
}

void lose_arm(const std::string& arm, std::uint32_t repeats, const std::string& why,
              std::vector<ScreenState>& states) {
  for (ScreenState& state : states)
    for (std::uint32_t i = 0; i < repeats; ++i) tally_of(state, arm).lose(why);
}

}  // namespace proctor::cli
