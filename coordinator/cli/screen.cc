#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/pilot/screen.h"
#include "common/pilot/variants.h"
#include "common/score/test_results.h"
#include "common/trace/evidence.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/cli/try.h"

namespace proctor::cli {
namespace {
// Keep every core of this host busy as long as they live: the load under which checks are screened.
std::vector<std::jthread> busy_cores() {
  std::vector<std::jthread> out;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i)
    out.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  return out;
}

std::vector<TaskVariants> variants_of_all(const std::vector<const Contract*>& tasks) {
  std::vector<TaskVariants> out;
  for (const Contract* c : tasks) {
    out.push_back({c, {{kVariantNoop, ""}}});
    if (!c->reference_patch.empty())
      out.back().variants.insert(out.back().variants.begin(), {kVariantReference, ""});
  }
  return out;
}

ScreenTally& tally_of(ScreenState& state, const std::string& arm) {
  return arm == kArmAlone ? state.alone : state.load;
}

// Tests that may fail decide nothing, so that they may also flicker.
void add_tests(const Check& check, const TestResults& results, Outcomes& out) {
  const bool has_required = !check.fail_to_pass.empty() || !check.pass_to_pass.empty();
  const auto name = [&](const std::string& test) { return check.id + "\n" + test; };
  if (!has_required || !check.others_may_fail)
    for (const auto& [id, status] : results.tests) out[name(id)] = word_of(status);
  for (const auto* ids : {&check.fail_to_pass, &check.pass_to_pass})
    for (const std::string& id : *ids) {
      const auto it = results.find(id);
      out[name(id)] = it == results.tests.end() ? "absent" : word_of(it->second);
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
  tally.add(std::move(outcomes).value(), 0 < run.passes);
}

// The runs of `proctor screen`: the contracts as they are, with no methods but noop (the snapshot)
// and reference, in two campaigns of their own below .proctor/screen, alone and under load.
StateFolder screen_folder(const fs::path& campaign, const std::string& arm) {
  return StateFolder::trials(campaign, ".proctor/screen/" + arm);
}

// The states that a contract is screened in, with nothing counted yet.
std::vector<ScreenState> states_of(const Contract& contract) {
  std::vector<ScreenState> out;
  if (!contract.reference_patch.empty()) out.push_back({kStateReference, {}, {}});
  out.push_back({kStateSnapshot, {}, {}});
  return out;
}

// Counts what one arm came to: runs, their checks, and those tests that may decide them.
void count_arm(const FrozenCampaign& frozen, const CampaignReport& report, const Contract& contract,
               const std::string& arm, std::vector<ScreenState>& states) {
  for (const RunRecord& run : report.runs) {
    if (run.task != contract.id || run.state == RunRecord::State::kRemoved) continue;
    const std::string state = run.method == kVariantNoop ? kStateSnapshot : kStateReference;
    const auto it = std::ranges::find(states, state, &ScreenState::state);
    if (it != states.end()) count_run(frozen, run, contract, tally_of(*it, arm));
  }
}

// Words of `proctor screen` for people: a line for each task, what to do about those that are not
// stable, and what a stable one may still do.  Pure.

// `campaign` as it was typed, `options` as they are typed for some settings, a blank before each;
// `runs`: how many the campaign has of each task.
using ScreenOptions = std::function<std::string(const ScreenSettings&)>;
// "reference: 0 of 60 alone, 2 of 60 under load"; "snapshot: 0 of 120" where all was alike.
std::string of_state(const ScreenTask& task, const char* state) {
  std::uint64_t discrepant = 0, repeats = 0;
  std::string apart;
  for (const ScreenArm& arm : task.arms) {
    if (arm.state != state) continue;
    discrepant += arm.discrepant;
    repeats += arm.repeats;
    apart += fmt::format("{}{} of {} {}", apart.empty() ? "" : ", ", arm.discrepant, arm.repeats,
                         arm.arm == kArmLoad ? "under load" : "alone");
  }
  if (apart.empty()) return "";
  return discrepant == 0 ? fmt::format("{}: 0 of {}", state, repeats)
                         : fmt::format("{}: {}", state, apart);
}

double upper_of(const ScreenTask& task, std::string_view arm) {
  double out = 0;
  for (const ScreenArm& a : task.arms)
    if (a.arm == arm) out = std::max(out, a.upper95);
  return out;
}

std::string facts(const ScreenTask& task) {
  if (task.arms.empty()) return task.why;
  std::string out;
  for (const char* state : {kStateReference, kStateSnapshot})
    if (const std::string one = of_state(task, state); !one.empty())
      out += (out.empty() ? "" : "; ") + one;
  out += fmt::format("; it may still be up to {} alone, {} under load",
                     share_text(upper_of(task, kArmAlone)), share_text(upper_of(task, kArmLoad)));
  return out + (task.unstable.empty() ? "" : "; unstable: " + first_few(task.unstable));
}

bool is_discrepant(const ScreenTask& task) {
  return std::ranges::any_of(task.arms, [](const ScreenArm& a) { return 0 < a.discrepant; });
}

std::string advice(const ScreenTask& task, const ScreenSettings& settings,
                   const std::string& campaign, const ScreenOptions& options) {
  const std::string command = "proctor screen " + campaign + " " + task.id;
  const auto usual = std::ranges::find_if(task.arms, [](const ScreenArm& a) {
    return a.state == kStateReference && a.usual != "success" && 0 < a.repeats;
  });
  switch (task.verdict) {
    case ScreenVerdict::kStable:
      if (usual == task.arms.end()) return "";
      return "its reference does not pass, always alike: proctor selfcheck " + campaign + " " +
             task.id;
    case ScreenVerdict::kUndecided: {
      const double bound = std::strtod(settings.bound.c_str(), nullptr);
      if (is_discrepant(task) || task.arms.size() < 4) return task.why;
      const auto fewest = static_cast<std::uint32_t>(clean_repeats_for(bound));
      ScreenSettings more = settings;
      more.repeats = std::max(fewest, more.repeats);
      more.load_repeats = std::max(fewest, more.load_repeats);
      return task.why + "; more repeats decide: " + command + options(more);
    }
    case ScreenVerdict::kFlaky:
      return task.why +
             (task.load_sensitive
                  ? ": it depends on how busy its host is; look at its time limits and "
                    "at what it waits for"
                  : ": find what it waits for, draws by chance or shares") +
             ", and give its contract a new version";
    case ScreenVerdict::kUnjudged:
      return (task.arms.empty() ? "" : task.why + "; ") + "go on with: " + command +
             options(settings);
  }
  return "";
}

constexpr std::array kVerdicts{ScreenVerdict::kStable, ScreenVerdict::kUndecided,
                               ScreenVerdict::kFlaky, ScreenVerdict::kUnjudged};

std::string summary(const std::vector<ScreenTask>& tasks) {
  std::string out;
  for (const ScreenVerdict v : kVerdicts)
    if (const auto n = std::ranges::count(tasks, v, &ScreenTask::verdict); 0 < n)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, to_string(v));
  const FlakyShare share = flaky_share(tasks);
  if (0 < share.judged)
    out += fmt::format("; flaky are {} of {} (95 % interval {} to {})", share.flaky, share.judged,
                       share_text(share.low), share_text(share.high));
  return out + "\n";
}

std::string still_possible(const std::vector<ScreenTask>& tasks, std::uint64_t runs) {
  double upper = 0;
  for (const ScreenTask& task : tasks)
    if (task.verdict == ScreenVerdict::kStable)
      upper = std::max({upper, upper_of(task, kArmAlone), upper_of(task, kArmLoad)});
  if (upper <= 0 || runs == 0) return "";
  return fmt::format(
      "A stable task may still come out otherwise in up to {}: of the {} runs that the campaign "
      "has "
      "of it, at least one is spoiled then with a chance of {}.\n",
      share_text(upper), runs, share_text(chance_to_spoil(upper, runs)));
}

std::string screen_text(const std::vector<ScreenTask>& tasks, const ScreenSettings& settings,
                        const std::string& campaign, const ScreenOptions& options,
                        std::uint64_t runs) {
  std::size_t width = 4;
  for (const ScreenTask& task : tasks) width = std::max(width, task.id.size());
  std::string out;
  for (const ScreenTask& task : tasks) {
    out += fmt::format("{:<{}}  {:<9}  {}\n", task.id, width, to_string(task.verdict), facts(task));
    if (const std::string next = advice(task, settings, campaign, options); !next.empty())
      out += fmt::format("{:<{}}  {:<9}  {}\n", "", width, "", next);
  }
  return out + summary(tasks) + still_possible(tasks, runs);
}

// That so few repeats can make no task stable; empty: they can.
std::string too_few_repeats(const ScreenSettings& settings) {
  const std::uint64_t wanted = clean_repeats_for(std::strtod(settings.bound.c_str(), nullptr));
  if (wanted <= std::min(settings.repeats, settings.load_repeats)) return "";
  return fmt::format(
      "{} repeats cannot exclude a rate of {}, so that no task can be stable: it takes {} alone "
      "and "
      "{} under load (--repeats {} --load-repeats {}), or a larger --bound",
      std::min(settings.repeats, settings.load_repeats), settings.bound, wanted, wanted, wanted,
      wanted);
}

// proctor screen CAMPAIGN [TASK...]: do the tasks' checks always say the same?

using Screen = TasksCommand<ScreenResults>;

struct Screened {
  const Contract* contract = nullptr;
  std::vector<ScreenState> states;
};

// Alone is one slot of one worker, and nothing else.
RunOptions options_of(const TasksArgs& args, const std::string& arm) {
  RunOptions out = args.options;
  if (arm == kArmAlone) out.workers = out.slots = 1;
  out.go_on = "proctor screen " + args.folder;
  return out;
}

// One arm of all tasks; what it came to is counted in `tasks`.
Status run_arm(const TasksArgs& args, const ScreenSettings& settings, const Campaign& campaign,
               const std::string& arm, std::optional<MicroUsd> usd, std::vector<Screened>& tasks,
               Screen::Ran& ran) {
  std::vector<const Contract*> contracts;
  for (const Screened& one : tasks) contracts.push_back(one.contract);
  const std::uint32_t repeats = arm == kArmAlone ? settings.repeats : settings.load_repeats;
  const std::vector<TaskVariants> all = variants_of_all(contracts);
  // The same arm of the same contracts is the same campaign.
  PROCTOR_TRY(const FrozenCampaign frozen,
              freeze_trials(selfcheck_campaign(campaign, all, repeats, usd), all,
                            screen_folder(campaign.folder, arm)));
  const RunOptions options = options_of(args, arm);
  PROCTOR_CHECK_OK(check_programs(options, frozen.campaign));
  std::fprintf(stderr, "%s: %s of each state of %s\n", arm == kArmAlone ? "Alone" : "Under load",
               counted(repeats, "repeat").c_str(), counted(tasks.size(), "task").c_str());
  std::vector<std::jthread> busy;
  if (arm == kArmLoad) busy = busy_cores();
  PROCTOR_TRY(const Trial trial, run_trial(options, frozen));
  ran.code = trial.code;
  ran.over = trial.over;
  ran.cost = ran.cost + trial.cost;
  if (!trial.over) return ok_status();
  for (Screened& one : tasks) count_arm(frozen, trial.report, *one.contract, arm, one.states);
  return ok_status();
}

Result<Screen::Ran> run_arms(const TasksArgs& args, const ScreenSettings& settings,
                             const Campaign& campaign, const AskedTasks& asked) {
  std::vector<Screened> tasks;
  for (const Contract* c : asked.todo) tasks.push_back({c, states_of(*c)});
  Screen::Ran out;
  PROCTOR_CHECK_OK(run_arm(args, settings, campaign, kArmAlone, asked.usd, tasks, out));
  if (!out.over) return out;
  const std::optional<MicroUsd>& usd = asked.usd;
  const bool spent = out.code == kBudgetExhausted || (usd && *usd <= out.cost);
  if (spent) {
    out.code = kBudgetExhausted;
    for (Screened& one : tasks)
      for (ScreenState& state : one.states)
        for (std::uint32_t i = 0; i < settings.load_repeats; ++i)
          state.load.lose("--usd was spent before");
  } else {
    const std::optional<MicroUsd> left = usd ? std::optional(*usd - out.cost) : std::nullopt;
    PROCTOR_CHECK_OK(run_arm(args, settings, campaign, kArmLoad, left, tasks, out));
    if (!out.over) return out;
  }
  for (const Screened& one : tasks)
    out.tasks.push_back(judge_screen(*one.contract, one.states, settings));
  for (const char* arm : {kArmAlone, kArmLoad}) forget_trial(screen_folder(campaign.folder, arm));
  return out;
}

std::string options_typed(const TasksArgs& args, const ScreenSettings& s) {
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

struct ScreenArgs : TasksArgs {
  ScreenSettings settings;
};

Result<int> screen(const ScreenArgs& args) {
  const ScreenSettings& settings = args.settings;
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kCheck));
  if (const std::string note = too_few_repeats(settings); !note.empty())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  const fs::path reports = StateFolder{campaign.folder}.reports();
  const std::string file = "flakiness.json", quarantine = "quarantine.txt";
  std::uint64_t runs = 0;  // of a task that every stage has
  for (const Stage& stage : campaign.stages)
    runs += campaign.methods.size() * campaign.replicates_of(stage);
  return run_tasks<ScreenResults>(
      args, campaign, settings,
      {.name = "screen",
       .verb = "screen",
       .place = {screen_folder(campaign.folder, kArmAlone).campaign.parent_path()},
       .files = {file, quarantine},
       .bytes_max = kScreenBytes,
       .parse = parse_screen,
       .cannot_run = not_screened_here,
       .is_good = [](const ScreenTask& t) { return t.verdict == ScreenVerdict::kStable; },
       .run = [&](const AskedTasks& t) { return run_arms(args, settings, campaign, t); },
       .write = [&](const ScreenResults& results) -> Result<std::vector<std::string>> {
         const std::string quarantined = quarantine_text(results.tasks);
         if (quarantined.empty()) {
           std::error_code ec;
           fs::remove(reports / quarantine, ec);  // of an earlier screen
           return std::vector{file};
         }
         PROCTOR_CHECK_OK(write_file(reports / quarantine, quarantined));
         return std::vector{file, quarantine};
       },
       .text =
           [&](const auto& shown, const auto&) {
             const auto typed = [&](const ScreenSettings& s) { return options_typed(args, s); };
             return screen_text(shown, settings, args.folder, typed, runs);
           },
       .places =
           [&](const ScreenResults& results) {
             const std::string all = "All counts: " + (reports / file).string() + "\n";
             if (quarantine_text(results.tasks).empty()) return all;
             return "Not to be measured with: " + (reports / quarantine).string() + "\n" + all;
           },
       .options = options_typed(args, settings)});
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
      "Killed or interrupted, the same command goes on; a task whose contract, image, rerun and\n"
      "numbers of repeats are the same is not screened again. Results: reports/flakiness.json,\n"
      "and reports/quarantine.txt with the tasks not to be measured with; docs/pilots.md.\n"
      "Exit codes: 0 all stable, 1 some are not, or it was stopped, 2 bad input,\n"
      "3 --usd is spent, 4 infrastructure.");
  const auto args = arguments<ScreenArgs>(command, exit_code, screen);
  ScreenSettings& settings = args->settings;
  add_tasks_arguments(command, *args);
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
  add_tasks_options(command, *args, "screen", " under load");
}
}  // namespace proctor::cli
