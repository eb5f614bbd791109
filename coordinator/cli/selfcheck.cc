// proctor selfcheck CAMPAIGN [TASK...]: are the contracts any good, before money is spent on them?
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/pilot/selfcheck.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/pilot_commands.h"
#include "coordinator/cli/report_digests.h"
#include "coordinator/cli/selfcheck_text.h"
#include "coordinator/cli/share_option.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/cli/trial_run.h"

namespace proctor::cli {
namespace {

struct SelfcheckArgs {
  std::string folder;
  std::vector<std::string> tasks;
  SelfcheckSettings settings;
  std::string usd;
  bool again = false, json = false;
  RunOptions options;
};

constexpr const char* kResults = "selfcheck.json";
fs::path results_file(const Campaign& campaign) {
  return StateFolder{campaign.folder}.reports() / kResults;
}

// What was found before; nothing where there is none, or none that can be read.
SelfcheckResults earlier_results(const Campaign& campaign) {
  const Result<std::string> text = read_file(results_file(campaign), kSelfcheckBytes);
  if (!text.ok()) return {};
  Result<SelfcheckResults> results = parse_selfcheck(*text);
  if (const Status same = as_listed(StateFolder{campaign.folder}, kResults); !same.ok())
    results = same.error();
  if (results.ok()) return std::move(results).value();
  std::fprintf(stderr, "note: %s is not read: %s\n", results_file(campaign).c_str(),
               printable(results.error().detail).c_str());
  return {};
}

struct Ran {
  int code = kOk;
  bool over = true;  // false: stopped on the way, and nothing is said of any task
  std::vector<SelfcheckTask> tasks;
  MicroUsd cost;
};

Result<Ran> run_variants(SelfcheckArgs& args, const Campaign& campaign,
                         const std::vector<TaskVariants>& tasks, std::optional<MicroUsd> usd) {
  Campaign derived = selfcheck_campaign(campaign, tasks, args.settings.repeats, usd);
  PROCTOR_CHECK_OK(check_programs(args.options, derived));
  PROCTOR_TRY(const FrozenCampaign frozen,
              freeze_trials(std::move(derived), tasks, selfcheck_folder(campaign.folder)));
  Ran out;
  args.options.go_on = "proctor selfcheck " + args.folder;
  PROCTOR_TRY(const Trial trial, run_trial(args.options, frozen));
  out.code = trial.code;
  out.over = trial.over;
  if (!out.over) return out;
  for (const TaskVariants& task : tasks)
    out.tasks.push_back(
        judge_selfcheck(*task.contract, runs_of(frozen, trial.report, task), args.settings));
  out.cost = trial.cost;
  forget_trial(frozen.folder);
  return out;
}

// Of every contract of the campaign: what is new, else what was found earlier and still holds.
SelfcheckResults merged(const Campaign& campaign, const SelfcheckSettings& settings,
                        const SelfcheckResults& earlier, std::vector<SelfcheckTask> found,
                        MicroUsd cost) {
  SelfcheckResults out{campaign.name, settings, {}, cost.micros()};
  for (const Contract& c : campaign.contracts) {
    const auto it = std::ranges::find(found, c.id, &SelfcheckTask::id);
    if (it != found.end())
      out.tasks.push_back(std::move(*it));
    else if (const SelfcheckTask* before = still_holds(earlier, c, settings))
      out.tasks.push_back(*before);
  }
  return out;
}

int show(const SelfcheckArgs& args, const Campaign& campaign, const SelfcheckResults& results,
         const std::vector<const Contract*>& asked, std::size_t reused) {
  std::vector<SelfcheckTask> shown;
  for (const Contract* c : asked)
    if (const auto it = std::ranges::find(results.tasks, c->id, &SelfcheckTask::id);
        it != results.tasks.end())
      shown.push_back(*it);
  const bool good = std::ranges::all_of(shown, is_good);
  if (args.json) {
    std::fputs(to_json_text(results).c_str(), stdout);
    return good ? kOk : kJobFailed;
  }
  const fs::path evidence = selfcheck_folder(campaign.folder).runs();
  std::fputs(selfcheck_text(shown, args.folder, evidence).c_str(), stdout);
  const std::string known =
      reused == 0 ? ""
                  : "; " + std::to_string(reused) +
                        " known from before, their contracts being the same (--again checks anew)";
  std::printf(
      "It cost %s %s of this machine's time, of no envelope of the campaign%s.\n"
      "All outcomes: %s\n",
      format_usd(MicroUsd::from_micros(results.usd_micros)).c_str(),
      money_word(campaign.cost_model).c_str(), known.c_str(), results_file(campaign).c_str());
  return good ? kOk : kJobFailed;
}

Status keep(const Campaign& campaign, const SelfcheckResults& results) {
  return write_listed(StateFolder{campaign.folder}, {kResults},
                      [&]() -> Result<std::vector<std::string>> {
                        PROCTOR_CHECK_OK(write_file(results_file(campaign), to_json_text(results)));
                        return std::vector<std::string>{kResults};
                      });
}

std::string typed_again(const SelfcheckArgs& args) {
  std::string out = "proctor selfcheck " + args.folder;
  for (const std::string& task : args.tasks) out += " " + task;
  const SelfcheckSettings usual;
  if (args.settings.repeats != usual.repeats)
    out += " --repeats " + std::to_string(args.settings.repeats);
  if (args.settings.mutants != usual.mutants)
    out += " --mutants " + std::to_string(args.settings.mutants);
  if (args.settings.killed != usual.killed) out += " --killed " + args.settings.killed;
  if (!args.usd.empty()) out += " --usd " + args.usd;
  return out;
}

Result<int> selfcheck(SelfcheckArgs args) {
  PROCTOR_TRY(const std::optional<MicroUsd> usd, trial_limit(args.usd));
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kCheck));
  PROCTOR_TRY(const std::vector<const Contract*> asked, asked_tasks(campaign, args.tasks));
  args.settings.seed = campaign.seed;
  PROCTOR_TRY(const FileLock lock, own_trial(selfcheck_folder(campaign.folder), "selfcheck"));
  const SelfcheckResults earlier = earlier_results(campaign);
  std::vector<SelfcheckTask> found;
  std::vector<TaskVariants> todo;
  std::size_t reused = 0;
  for (const Contract* c : asked) {
    if (!args.again && still_holds(earlier, *c, args.settings) != nullptr) {
      ++reused;
      continue;
    }
    const std::vector<std::string> missing =
        missing_here(args.options, selfcheck_campaign(campaign, {{c, {}}}, 1, usd));
    if (missing.empty())
      todo.push_back({c, variants_of(*c, args.settings)});
    else
      found.push_back(cannot_run_here(*c, missing.front()));
  }
  Ran ran;
  if (!todo.empty()) {
    PROCTOR_TRY(ran, run_variants(args, campaign, todo, usd));
    if (!ran.over) {
      std::fprintf(stderr, "Nothing is said of any task yet. The same command goes on: %s\n",
                   typed_again(args).c_str());
      return ran.code == kOk ? kJobFailed : ran.code;
    }
  }
  std::ranges::move(ran.tasks, std::back_inserter(found));
  const SelfcheckResults results =
      merged(campaign, args.settings, earlier, std::move(found), ran.cost);
  PROCTOR_CHECK_OK(keep(campaign, results));
  const int code = show(args, campaign, results, asked, reused);
  return ran.code == kBudgetExhausted ? kBudgetExhausted : code;
}

}  // namespace

void add_selfcheck(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "selfcheck", "do the tasks tell right answers from wrong ones, before money is spent?",
      "Example:\n  proctor selfcheck my-campaign\n  proctor selfcheck my-campaign json-lib "
      "--repeats 10\n"
      "Each task is judged with its reference (must pass), without a change, with a change of\n"
      "nothing, with the tests of the reference alone (must fail), with the rest of it (must "
      "pass),\n"
      "and with small mistakes made in it (most must fail). No agent and no model is asked.\n"
      "Killed or interrupted, the same command goes on; a task whose contract, image and settings\n"
      "are the same is not checked again. Results: reports/selfcheck.json; docs/pilots.md.\n"
      "Exit codes: 0 all sound or weak, 1 some are not, or it was stopped, 2 bad input,\n"
      "3 --usd is spent, 4 infrastructure.");
  auto args = std::make_shared<SelfcheckArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("TASK", args->tasks, "contracts' ids; none: all");
  command.add_option("--repeats", args->settings.repeats, "how often each is judged")
      .in_range(1, 1'000);
  command.add_option("--mutants", args->settings.mutants, "mistakes to try in each reference")
      .in_range(0, 1'000);
  command
      .add_option("--killed", args->settings.killed, "share of the decided mistakes that must fail")
      .check(share(0, 1), "SHARE");
  command.add_option("--usd", args->usd,
                     "what the machine's time for it may cost; not given: no limit");
  command.add_option("--workers", args->options.workers, "local workers; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kLocalWorkersMax);
  command.add_option("--slots", args->options.slots, "of each; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_flag("--again", args->again, "check also what is known from before");
  command.add_flag("--json", args->json, "the results as they are kept");
  command.callback([=, &exit_code] { exit_code = code_of(selfcheck(*args)); });
}

}  // namespace proctor::cli
