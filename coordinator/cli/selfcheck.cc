#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/pilot/selfcheck.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/cli/try.h"

namespace proctor::cli {
namespace {
struct Words {
  std::string kind, why;
};
// "unsound: noop passed"
Words words_of(const std::string& verdict) {
  const std::size_t colon = verdict.find(": ");
  if (colon == std::string::npos) return {verdict, ""};
  return {verdict.substr(0, colon), verdict.substr(colon + 2)};
}

std::string passed(const SelfcheckTask& task, const char* variant) {
  const auto it = std::ranges::find(task.variants, variant, &VariantOutcomes::variant);
  if (it == task.variants.end()) return "";
  return fmt::format("{} {}/{}, ", variant, std::ranges::count(it->outcomes, "success"),
                     it->outcomes.size());
}

std::string of_survivors(const SelfcheckTask& task) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string>& names = task.mutants.survivors;
  if (names.empty()) return "";
  std::string out = names.size() == 1 ? "; survivor" : "; survivors";
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    const auto it = std::ranges::find(task.variants, names[i], &VariantOutcomes::variant);
    out += (i == 0 ? " " : ", ") + names[i];
    if (it != task.variants.end() && !it->what.empty()) out += " (" + it->what + ")";
  }
  if (kShown < names.size()) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

std::string of_mutants(const SelfcheckTask& task) {
  const MutantTally& m = task.mutants;
  if (m.decided + m.undecided == 0) return "no mutants";
  std::string out = fmt::format("{} of {} mutants die", m.killed, m.decided);
  if (m.lower95) out += fmt::format(" (at least {:.0f} %)", *m.lower95 * 100);
  if (0 < m.undecided) out += fmt::format(", {} undecided", m.undecided);
  return out + of_survivors(task);
}

std::string advice(const SelfcheckTask& task, const std::string& campaign,
                   const fs::path& evidence) {
  const std::string of_task = campaign + " " + task.id;
  const auto runs = [&](const char* variant) {
    return (evidence / (task.id + "--" + variant)).string();
  };
  switch (task.cause) {
    case SelfcheckCause::kNone:
      return "";
    case SelfcheckCause::kFewMutants:
      return "fewer than 5 mistakes in its reference could be tried: how closely it is checked is "
             "not known";
    case SelfcheckCause::kCannotRun:
      return "put what is missing on this host or into the contract's environment, then: proctor "
             "try " +
             of_task + " reference";
    case SelfcheckCause::kNoReference:
      return "give the contract a reference_patch that solves it";
    case SelfcheckCause::kReference:
      return "see what fails: proctor try " + of_task + " reference";
    case SelfcheckCause::kNoop:
      return "see what is checked without any change: proctor try " + of_task + " noop";
    case SelfcheckCause::kNoTouch:
      return "a change of nothing must not count: what the checks said is in " +
             runs(kVariantEmpty) + " and " + runs(kVariantJunk);
    case SelfcheckCause::kTestsOnly:
      return "its tests are in the patch and not protected: name them in policy.protected, or "
             "place them by acceptance_files; evidence: " +
             runs(kVariantTestsOnly);
    case SelfcheckCause::kSourceOnly:
      return "the repair needs what counts as a test, so that a right answer without it fails; "
             "evidence: " +
             runs(kVariantSourceOnly);
    case SelfcheckCause::kForged:
      return "whatever ends its check with 0 passes: let the check write a result file, name its "
             "tests in fail_to_pass, and keep its runner apart from the workspace (python3 -I); "
             "evidence: " +
             runs(kVariantEarlyExit) + " and " + runs(kVariantShadowedRunner);
    case SelfcheckCause::kMutants:
      return "its checks do not see such mistakes: look at each survivor's patch.diff below " +
             runs("mutant-N") + ", and add a test that fails with it";
    case SelfcheckCause::kFlaky:
      return "it measures chance: find what it waits for or shares; how often: proctor screen " +
             of_task;
    case SelfcheckCause::kUnjudged:
      return "go on with: proctor selfcheck " + of_task;
  }
  return "";
}

constexpr std::array kKinds{"sound", "weak", "unsound", "flaky", "unjudged"};
}  // namespace

// Words of `proctor selfcheck` for people: a line for each task, what to do about those that are
// not good, and a summary.  Pure.
std::string selfcheck_text(const std::vector<SelfcheckTask>& tasks, const std::string& campaign,
                           const fs::path& evidence) {
  std::size_t width = 4;
  for (const SelfcheckTask& task : tasks) width = std::max(width, task.id.size());
  std::string out;
  std::array<std::size_t, kKinds.size()> counts{};
  for (const SelfcheckTask& task : tasks) {
    const Words words = words_of(task.verdict);
    for (std::size_t k = 0; k < kKinds.size(); ++k) counts.at(k) += words.kind == kKinds.at(k);
    const std::string facts =
        is_good(task)
            ? passed(task, kVariantReference) + passed(task, kVariantNoop) + of_mutants(task)
        : task.cause == SelfcheckCause::kMutants ? words.why + of_survivors(task)
                                                 : words.why;
    out += fmt::format("{:<{}}  {:<8}  {}\n", task.id, width, words.kind, facts);
    if (const std::string next = advice(task, campaign, evidence); !next.empty())
      out += fmt::format("{:<{}}  {:<8}  {}\n", "", width, "", next);
  }
  std::string summary;
  for (std::size_t k = 0; k < kKinds.size(); ++k)
    if (0 < counts.at(k))
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", counts.at(k), kKinds.at(k));
  return out + summary + "\n";
}

// proctor selfcheck CAMPAIGN [TASK...]: are the contracts any good, before money is spent on them?

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
