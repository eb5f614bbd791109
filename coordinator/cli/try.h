#pragma once
// Runs that no campaign counts: `try`, `selfcheck` and `screen` make them in campaigns of their own
// below .proctor, which go on where they were interrupted or killed.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/trial_campaign.h"

namespace proctor::cli {
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

// `selfcheck` and `screen`: trials of tasks, whose results are kept below reports/, so that a task
// that did not change is not run again.

struct TasksArgs {
  std::string folder;
  std::vector<std::string> tasks;
  std::string usd;
  bool again = false, json = false;
  RunOptions options;
};
// CAMPAIGN and TASK; and after the command's own options those that both have: `verb` as in "check
// also what is known", `when` there are more workers than one.
void add_tasks_arguments(const Command& command, TasksArgs& args);
void add_tasks_options(const Command& command, TasksArgs& args, const std::string& verb,
                       const std::string& when);
// The arguments as they are typed again, a blank before each; `options`: the command's own.
std::string typed_again(const TasksArgs& args, const std::string& options);

// The asked tasks: those that are run, and why the others cannot be run on this host.
struct AskedTasks {
  std::vector<const Contract*> all, todo;
  std::vector<std::pair<const Contract*, std::string>> lacking;
  std::optional<MicroUsd> usd;  // limit of all together; nothing: none
  std::size_t reused = 0;       // known from before
};
// kInvalid: there is no such task, or --usd is no amount of money.
Result<AskedTasks> asked_tasks(const TasksArgs& args, const Campaign& campaign,
                               const std::function<bool(const Contract&)>& is_known);
// "It cost 0.02 USD of this machine's time, ...".
std::string cost_words(const Campaign& campaign, std::int64_t usd_micros, std::size_t reused,
                       const std::string& verb);

template <class Results>
struct TasksCommand {
  using Tasks = decltype(Results::tasks);
  using Task = typename Tasks::value_type;
  struct Ran {
    int code = kOk;
    bool over = true;  // false: stopped on the way, and nothing is said of any task
    Tasks tasks{};
    MicroUsd cost{};
  };
  std::string name, verb;
  StateFolder place;               // its lock is beside it
  std::vector<std::string> files;  // below reports/; the first is of the results
  std::size_t bytes_max;           // of that one
  Result<Results> (*parse)(std::string_view);
  Task (*cannot_run)(const Contract&, const std::string& why);
  bool (*is_good)(const Task&);
  std::function<Result<Ran>(const AskedTasks&)> run;
  // Writes its other files; the names of those that are there.
  std::function<Result<std::vector<std::string>>(const Results&)> write;
  std::function<std::string(const Tasks& shown, const Results&)> text;
  std::function<std::string(const Results&)> places;  // where all of it is, for people
  std::string options;                                // the command's own, as they are typed
};

// Runs what is not known, keeps and shows all.  `settings`: of the results.
template <class Results>
Result<int> run_tasks(const TasksArgs& args, const Campaign& campaign,
                      const decltype(Results::settings)& settings,
                      const TasksCommand<Results>& command) {
  using Task = typename TasksCommand<Results>::Task;
  const StateFolder folder{campaign.folder};
  const fs::path file = folder.reports() / command.files.front();
  PROCTOR_TRY(const FileLock lock, own_trial(command.place, command.name));
  Results earlier;
  if (const Result<std::string> text = read_file(file, command.bytes_max); text.ok()) {
    Result<Results> read = command.parse(*text);
    if (const Status same = as_listed(folder, command.files.front()); !same.ok())
      read = same.error();
    if (read.ok())
      earlier = std::move(read).value();
    else
      std::fprintf(stderr, "note: %s is not read: %s\n", file.c_str(),
                   printable(read.error().detail).c_str());
  }
  PROCTOR_TRY(const AskedTasks asked, asked_tasks(args, campaign, [&](const Contract& c) {
                return bool(still_holds(earlier, c, settings, campaign.rerun));
              }));
  typename TasksCommand<Results>::Ran ran;
  if (!asked.todo.empty()) {
    PROCTOR_TRY(ran, command.run(asked));
    if (!ran.over) {
      std::fprintf(stderr,
                   "Nothing is said of any task yet. The same command goes on: proctor %s%s\n",
                   command.name.c_str(), typed_again(args, command.options).c_str());
      return ran.code == kOk ? kJobFailed : ran.code;
    }
  }
  for (const auto& [contract, why] : asked.lacking)
    ran.tasks.push_back(command.cannot_run(*contract, why));
  // Of every contract of the campaign: what is new, else what was found earlier and still holds.
  Results results{campaign.name, settings, {}, ran.cost.micros()};
  std::vector<Task> shown;
  for (const Contract& c : campaign.contracts) {
    if (const auto it = std::ranges::find(ran.tasks, c.id, &Task::id); it != ran.tasks.end())
      results.tasks.push_back(std::move(*it));
    else if (const auto before = still_holds(earlier, c, settings, campaign.rerun))
      results.tasks.push_back(*before);
    else
      continue;
    results.tasks.back().rerun = c.rerun_in(campaign.rerun);
    if (std::ranges::find(asked.all, &c) != asked.all.end()) shown.push_back(results.tasks.back());
  }
  const WriteParts write = [&]() -> Result<std::vector<std::string>> {
    PROCTOR_CHECK_OK(write_file(file, to_json_text(results)));
    return command.write(results);
  };
  PROCTOR_CHECK_OK(write_listed(folder, command.files, write));
  const std::string said =
      args.json ? to_json_text(results)
                : command.text(shown, results) +
                      cost_words(campaign, results.usd_micros, asked.reused, command.verb) +
                      command.places(results);
  std::fputs(said.c_str(), stdout);
  if (ran.code == kBudgetExhausted) return kBudgetExhausted;
  return std::ranges::all_of(shown, command.is_good) ? kOk : kJobFailed;
}
}  // namespace proctor::cli
