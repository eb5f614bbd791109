#pragma once
// Runs that no campaign counts: `try`, `selfcheck` and `screen` make them in campaigns of their own
// below .proctor, which go on where they were interrupted or killed.
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_run.h"

namespace proctor::cli {
// Of the campaign's contracts those that are named, or all.  kInvalid: there is no such task.
Result<std::vector<const Contract*>> asked_tasks(const Campaign& campaign,
                                                 const std::vector<std::string>& names);
// What `--usd` says; nothing: no limit.  kInvalid: no amount of money.
Result<std::optional<MicroUsd>> trial_limit(const std::string& text);

// Whoever has it runs trials in `place`.  kConflict: another `proctor COMMAND` does.
Result<FileLock> own_trial(const StateFolder& place, const std::string& command);

// Empties its folder; a trial that was killed has left its workers, with mounts in it.
Status begin_trial(const FrozenCampaign& frozen);

struct Trial {
  int code = 0;      // of the run
  bool over = true;  // false: stopped on the way, and its report says nothing of any task
  CampaignReport report;
  MicroUsd cost;
};
// Runs it to its end, or goes on with it if the same one was interrupted there; one that has come
// to its end is not run again until forget_trial.  `options`: of the caller, but for folder and
// begin.
Result<Trial> run_trial(RunOptions options, const FrozenCampaign& frozen);
// The next one begins anew.
void forget_trial(const StateFolder& place);
}  // namespace proctor::cli
