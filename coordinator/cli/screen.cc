// proctor screen CAMPAIGN [TASK...]: do the tasks' checks always say the same?
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/pilot/screen.h"
#include "coordinator/cli/busy_cores.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/pilot_commands.h"
#include "coordinator/cli/report_digests.h"
#include "coordinator/cli/screen_campaign.h"
#include "coordinator/cli/screen_text.h"
#include "coordinator/cli/share_option.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/cli/trial_run.h"

namespace proctor::cli {
namespace {

struct ScreenArgs {
  std::string folder;
  std::vector<std::string> tasks;
  ScreenSettings settings;
  std::string usd;
  bool again = false, json = false;
  RunOptions options;
};

constexpr const char *kResults = "flakiness.json", *kQuarantine = "quarantine.txt";
fs::path results_file(const Campaign& campaign) {
  return StateFolder{campaign.folder}.reports() / kResults;
}
fs::path quarantine_file(const Campaign& campaign) {
  return StateFolder{campaign.folder}.reports() / kQuarantine;
}

// What was found before; nothing where there is none, or none that can be read.
ScreenResults earlier_results(const Campaign& campaign) {
  const Result<std::string> text = read_file(results_file(campaign), kScreenBytes);
  if (!text.ok()) return {};
  Result<ScreenResults> results = parse_screen(*text);
  if (const Status same = as_listed(StateFolder{campaign.folder}, kResults); !same.ok())
    results = same.error();
  if (results.ok()) return std::move(results).value();
  std::fprintf(stderr, "note: %s is not read: %s\n", results_file(campaign).c_str(),
               printable(results.error().detail).c_str());
  return {};
}

struct Screened {
  const Contract* contract = nullptr;
  std::vector<ScreenState> states;
};
struct Ran {
  int code = kOk;
  bool over = true;  // false: stopped on the way, and nothing is said of any task
  std::vector<ScreenTask> tasks;
  MicroUsd cost;
};

// Alone is one slot of one worker, and nothing else.
RunOptions options_of(const ScreenArgs& args, const std::string& arm) {
  RunOptions out = args.options;
  if (arm == kArmAlone) out.workers = out.slots = 1;
  out.go_on = "proctor screen " + args.folder;
  return out;
}

// One arm of all tasks; what it came to is counted in `tasks`.
Status run_arm(const ScreenArgs& args, const Campaign& campaign, const std::string& arm,
               std::optional<MicroUsd> usd, std::vector<Screened>& tasks, Ran& ran) {
  std::vector<const Contract*> contracts;
  for (const Screened& one : tasks) contracts.push_back(one.contract);
  const std::uint32_t repeats =
      arm == kArmAlone ? args.settings.repeats : args.settings.load_repeats;
  PROCTOR_TRY(const FrozenCampaign frozen, screen_frozen(campaign, contracts, repeats, usd,
                                                         screen_folder(campaign.folder, arm)));
  const RunOptions options = options_of(args, arm);
  PROCTOR_CHECK_OK(check_programs(options, frozen.campaign));
  std::fprintf(stderr, "%s: %s of each state of %s\n", arm == kArmAlone ? "Alone" : "Under load",
               counted(repeats, "repeat").c_str(), counted(tasks.size(), "task").c_str());
  std::optional<BusyCores> busy;
  if (arm == kArmLoad) busy.emplace();
  PROCTOR_TRY(const Trial trial, run_trial(options, frozen));
  ran.code = trial.code;
  ran.over = trial.over;
  ran.cost = ran.cost + trial.cost;
  if (!trial.over) return ok_status();
  for (Screened& one : tasks) count_arm(frozen, trial.report, *one.contract, arm, one.states);
  return ok_status();
}

Result<Ran> run_arms(const ScreenArgs& args, const Campaign& campaign, std::vector<Screened> tasks,
                     std::optional<MicroUsd> usd) {
  Ran out;
  PROCTOR_CHECK_OK(run_arm(args, campaign, kArmAlone, usd, tasks, out));
  if (!out.over) return out;
  const bool spent = out.code == kBudgetExhausted || (usd && *usd <= out.cost);
  if (spent) {
    out.code = kBudgetExhausted;
    for (Screened& one : tasks)
      lose_arm(kArmLoad, args.settings.load_repeats, "--usd was spent before", one.states);
  } else {
    const std::optional<MicroUsd> left = usd ? std::optional(*usd - out.cost) : std::nullopt;
    PROCTOR_CHECK_OK(run_arm(args, campaign, kArmLoad, left, tasks, out));
    if (!out.over) return out;
  }
  for (const Screened& one : tasks)
    out.tasks.push_back(judge_screen(*one.contract, one.states, args.settings));
  for (const char* arm : {kArmAlone, kArmLoad}) forget_trial(screen_folder(campaign.folder, arm));
  return out;
}

// Of every contract of the campaign: what is new, else what was found earlier and still holds.
ScreenResults merged(const Campaign& campaign, const ScreenSettings& settings,
                     const ScreenResults& earlier, std::vector<ScreenTask> found, MicroUsd cost) {
  ScreenResults out{campaign.name, settings, {}, cost.micros()};
  for (const Contract& c : campaign.contracts) {
    const auto it = std::ranges::find(found, c.id, &ScreenTask::id);
    if (it != found.end())
      out.tasks.push_back(std::move(*it));
    else if (std::optional<ScreenTask> before = still_holds(earlier, c, settings))
      out.tasks.push_back(std::move(*before));
  }
  return out;
}

Result<std::vector<std::string>> write_results(const Campaign& campaign,
                                               const ScreenResults& results) {
  PROCTOR_CHECK_OK(write_file(results_file(campaign), to_json_text(results)));
  const std::string quarantined = quarantine_text(results.tasks);
  std::error_code ec;
  if (quarantined.empty()) {
    fs::remove(quarantine_file(campaign), ec);  // of an earlier screen
    return std::vector<std::string>{kResults};
  }
  PROCTOR_CHECK_OK(write_file(quarantine_file(campaign), quarantined));
  return std::vector<std::string>{kResults, kQuarantine};
}

Status keep(const Campaign& campaign, const ScreenResults& results) {
  return write_listed(StateFolder{campaign.folder}, {kResults, kQuarantine},
                      [&] { return write_results(campaign, results); });
}

std::string options_typed(const ScreenArgs& args, const ScreenSettings& s) {
  const ScreenSettings usual;
  std::string out;
  if (s.repeats != usual.repeats) out += " --repeats " + std::to_string(s.repeats);
  if (s.load_repeats != usual.load_repeats)
    out += " --load-repeats " + std::to_string(s.load_repeats);
  if (s.tolerance != usual.tolerance) out += " --tolerance " + s.tolerance;
  if (s.snapshot_tolerance != usual.snapshot_tolerance)
    out += " --snapshot-tolerance " + s.snapshot_tolerance;
  if (s.bound != usual.bound) out += " --bound " + s.bound;
  if (!args.usd.empty()) out += " --usd " + args.usd;
  if (args.options.workers) out += " --workers " + std::to_string(*args.options.workers);
  if (args.options.slots) out += " --slots " + std::to_string(*args.options.slots);
  return out;
}

int show(const ScreenArgs& args, const Campaign& campaign, const ScreenResults& results,
         const std::vector<const Contract*>& asked, std::size_t reused) {
  std::vector<ScreenTask> shown;
  for (const Contract* c : asked)
    if (const auto it = std::ranges::find(results.tasks, c->id, &ScreenTask::id);
        it != results.tasks.end())
      shown.push_back(*it);
  const int code =
      std::ranges::all_of(shown,
                          [](const ScreenTask& t) { return t.verdict == ScreenVerdict::kStable; })
          ? kOk
          : kJobFailed;
  if (args.json) {
    std::fputs(to_json_text(results).c_str(), stdout);
    return code;
  }
  std::uint64_t runs = 0;  // of a task that every stage has
  for (const Stage& stage : campaign.stages)
    runs += campaign.methods.size() * campaign.replicates_of(stage);
  const auto typed = [&](const ScreenSettings& s) { return options_typed(args, s); };
  std::fputs(screen_text(shown, results.settings, args.folder, typed, runs).c_str(), stdout);
  const std::string known =
      reused == 0 ? ""
                  : "; " + std::to_string(reused) +
                        " known from before, their contracts being the same (--again screens anew)";
  std::printf("It cost %s %s of this machine's time, of no envelope of the campaign%s.\n",
              format_usd(MicroUsd::from_micros(results.usd_micros)).c_str(),
              money_word(campaign.cost_model).c_str(), known.c_str());
  if (!quarantine_text(results.tasks).empty())
    std::printf("Not to be measured with: %s\n", quarantine_file(campaign).c_str());
  std::printf("All counts: %s\n", results_file(campaign).c_str());
  return code;
}

Result<int> screen(ScreenArgs args) {
  PROCTOR_TRY(const std::optional<MicroUsd> usd, trial_limit(args.usd));
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kCheck));
  PROCTOR_TRY(const std::vector<const Contract*> asked, asked_tasks(campaign, args.tasks));
  PROCTOR_TRY(
      const FileLock lock,
      own_trial({screen_folder(campaign.folder, kArmAlone).campaign.parent_path()}, "screen"));
  if (const std::string note = too_few_repeats(args.settings); !note.empty())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  const ScreenResults earlier = earlier_results(campaign);
  std::vector<ScreenTask> found;
  std::vector<Screened> todo;
  std::size_t reused = 0;
  for (const Contract* c : asked) {
    if (!args.again && still_holds(earlier, *c, args.settings)) {
      ++reused;
      continue;
    }
    const std::vector<std::string> missing =
        missing_here(args.options, selfcheck_campaign(campaign, {{c, {}}}, 1, usd));
    if (missing.empty())
      todo.push_back({c, states_of(*c)});
    else
      found.push_back(not_screened_here(*c, missing.front()));
  }
  Ran ran;
  if (!todo.empty()) {
    PROCTOR_TRY(ran, run_arms(args, campaign, std::move(todo), usd));
    if (!ran.over) {
      std::string typed = args.folder;
      for (const std::string& task : args.tasks) typed += " " + task;
      std::fprintf(
          stderr,
          "Nothing is said of any task yet. The same command goes on: proctor screen %s%s\n",
          typed.c_str(), options_typed(args, args.settings).c_str());
      return ran.code == kOk ? kJobFailed : ran.code;
    }
  }
  std::ranges::move(ran.tasks, std::back_inserter(found));
  const ScreenResults results =
      merged(campaign, args.settings, earlier, std::move(found), ran.cost);
  PROCTOR_CHECK_OK(keep(campaign, results));
  const int code = show(args, campaign, results, asked, reused);
  return ran.code == kBudgetExhausted ? kBudgetExhausted : code;
}

}  // namespace

void add_screen(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "screen", "do the tasks' checks always say the same, alone and under load?",
      "Example:\n  proctor screen my-campaign\n  proctor screen my-campaign json-lib --repeats 149 "
      "--load-repeats 149 --bound 0.02\n"
      "Each task's reference and its untouched snapshot are judged so many times with nothing "
      "else\n"
      "running, and so many times with all slots and all cores busy. No agent and no model is\n"
      "asked. Nothing else should run on this host meanwhile.\n"
      "Killed or interrupted, the same command goes on; a task whose contract, image and numbers "
      "of\n"
      "repeats are the same is not screened again. Results: reports/flakiness.json, and\n"
      "reports/quarantine.txt with the tasks not to be measured with; docs/pilots.md.\n"
      "Exit codes: 0 all stable, 1 some are not, or it was stopped, 2 bad input,\n"
      "3 --usd is spent, 4 infrastructure.");
  auto args = std::make_shared<ScreenArgs>();
  ScreenSettings& settings = args->settings;
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("TASK", args->tasks, "contracts' ids; none: all");
  command.add_option("--repeats", settings.repeats, "how often each state is judged alone")
      .in_range(1U, kScreenRepeatsMax);
  command.add_option("--load-repeats", settings.load_repeats, "and how often under load")
      .in_range(1U, kScreenRepeatsMax);
  command
      .add_option("--tolerance", settings.tolerance,
                  "share of repeats of the reference that may come out otherwise")
      .check(share(0, 1), "SHARE");
  command
      .add_option("--snapshot-tolerance", settings.snapshot_tolerance,
                  "the same of the snapshot that nobody changed")
      .check(share(0, 1), "SHARE");
  command
      .add_option("--bound", settings.bound, "rate of coming out otherwise that has to be excluded")
      .check(share(0.001, 0.49), "SHARE");
  command.add_option("--usd", args->usd,
                     "what the machine's time for it may cost; not given: no limit");
  command
      .add_option("--workers", args->options.workers,
                  "local workers under load; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kLocalWorkersMax);
  command
      .add_option("--slots", args->options.slots, "of each under load; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_flag("--again", args->again, "screen also what is known from before");
  command.add_flag("--json", args->json, "the results as they are kept");
  command.callback([=, &exit_code] { exit_code = code_of(screen(*args)); });
}

}  // namespace proctor::cli
