#include <fmt/format.h>
#include <algorithm>
#include <array>
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

// Advice for each cause.  {task} is how a command line names it, the others are folders of
// evidence.
constexpr auto kAdvice = each_once(std::to_array<Word<SelfcheckCause>>({
    {"", SelfcheckCause::kNone},
    {"fewer than 5 mistakes in its reference could be tried: how closely it is checked is not "
     "known",
     SelfcheckCause::kFewMutants},
    {"put what is missing on this host or into the contract's environment, then: proctor try "
     "{task} "
     "reference",
     SelfcheckCause::kCannotRun},
    {"give the contract a reference_patch that solves it", SelfcheckCause::kNoReference},
    {"see what fails: proctor try {task} reference", SelfcheckCause::kReference},
    {"see what is checked without any change: proctor try {task} noop", SelfcheckCause::kNoop},
    {"a change of nothing must not count: what the checks said is in {empty} and {junk}",
     SelfcheckCause::kNoTouch},
    {"its tests are in the patch and not protected: name them in policy.protected, or place them "
     "by "
     "acceptance_files; evidence: {tests_only}",
     SelfcheckCause::kTestsOnly},
    {"the repair needs what counts as a test, so that a right answer without it fails; evidence: "
     "{source_only}",
     SelfcheckCause::kSourceOnly},
    {"whatever ends its check with 0 passes: let the check write a result file, name its tests in "
     "fail_to_pass, and keep its runner apart from the workspace (python3 -I); evidence: "
     "{early_exit} and {shadowed_runner}",
     SelfcheckCause::kForged},
    {"its checks do not see such mistakes: look at each survivor's patch.diff below {mutant}, and "
     "add a test that fails with it",
     SelfcheckCause::kMutants},
    {"it measures chance: find what it waits for or shares; how often: proctor screen {task}",
     SelfcheckCause::kFlaky},
    {"go on with: proctor selfcheck {task}", SelfcheckCause::kUnjudged},
}));

std::string advice(const SelfcheckTask& task, const std::string& campaign,
                   const fs::path& evidence) {
  const auto runs = [&](const char* variant) {
    return (evidence / (task.id + "--" + variant)).string();
  };
  return fmt::format(fmt::runtime(word_in(kAdvice, task.cause)),
                     fmt::arg("task", campaign + " " + task.id),
                     fmt::arg("empty", runs(kVariantEmpty)), fmt::arg("junk", runs(kVariantJunk)),
                     fmt::arg("tests_only", runs(kVariantTestsOnly)),
                     fmt::arg("source_only", runs(kVariantSourceOnly)),
                     fmt::arg("early_exit", runs(kVariantEarlyExit)),
                     fmt::arg("shadowed_runner", runs(kVariantShadowedRunner)),
                     fmt::arg("mutant", runs("mutant-N")));
}

constexpr std::array kKinds{"sound", "weak", "unsound", "flaky", "unjudged"};

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

using Selfcheck = TasksCommand<SelfcheckResults>;

Result<Selfcheck::Ran> run_variants(TasksArgs args, const SelfcheckSettings& settings,
                                    const Campaign& campaign, const AskedTasks& asked) {
  std::vector<TaskVariants> tasks;
  for (const Contract* c : asked.todo) tasks.push_back({c, variants_of(*c, settings)});
  Campaign derived = selfcheck_campaign(campaign, tasks, settings.repeats, asked.usd);
  PROCTOR_CHECK_OK(check_programs(args.options, derived));
  PROCTOR_TRY(const FrozenCampaign frozen,
              freeze_trials(std::move(derived), tasks, selfcheck_folder(campaign.folder)));
  args.options.go_on = "proctor selfcheck " + args.folder;
  PROCTOR_TRY(const Trial trial, run_trial(args.options, frozen));
  Selfcheck::Ran out{trial.code, trial.over};
  if (!out.over) return out;
  for (const TaskVariants& task : tasks)
    out.tasks.push_back(
        judge_selfcheck(*task.contract, runs_of(frozen, trial.report, task), settings));
  out.cost = trial.cost;
  forget_trial(frozen.folder);
  return out;
}

std::string options_typed(const TasksArgs& args, const SelfcheckSettings& s) {
  std::string out;
  const SelfcheckSettings usual;
  if (s.repeats != usual.repeats) out += " --repeats " + std::to_string(s.repeats);
  if (s.mutants != usual.mutants) out += " --mutants " + std::to_string(s.mutants);
  if (s.killed != usual.killed) out += " --killed " + s.killed;
  if (!args.usd.empty()) out += " --usd " + args.usd;
  return out;
}

struct SelfcheckArgs : TasksArgs {
  SelfcheckSettings settings;
};

Result<int> selfcheck(const SelfcheckArgs& args) {
  SelfcheckSettings settings = args.settings;
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kCheck));
  settings.seed = campaign.seed;
  const std::string file = "selfcheck.json";
  const StateFolder place = selfcheck_folder(campaign.folder);
  return run_tasks<SelfcheckResults>(
      args, campaign, settings,
      {.name = "selfcheck",
       .verb = "check",
       .place = place,
       .files = {file},
       .bytes_max = kSelfcheckBytes,
       .parse = parse_selfcheck,
       .cannot_run = cannot_run_here,
       .is_good = is_good,
       .run = [&](const AskedTasks& t) { return run_variants(args, settings, campaign, t); },
       .write = [&](const auto&) { return std::vector{file}; },
       .text = [&](const auto& shown,
                   const auto&) { return selfcheck_text(shown, args.folder, place.runs()); },
       .places =
           [&](const auto&) {
             return "All outcomes: " + (StateFolder{campaign.folder}.reports() / file).string() +
                    "\n";
           },
       .options = options_typed(args, settings)});
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
      "Killed or interrupted, the same command goes on; a task whose contract, image, rerun and\n"
      "settings are the same is not checked again. Results: reports/selfcheck.json; "
      "docs/pilots.md.\n"
      "Exit codes: 0 all sound or weak, 1 some are not, or it was stopped, 2 bad input,\n"
      "3 --usd is spent, 4 infrastructure.");
  const auto args = arguments<SelfcheckArgs>(command, exit_code, selfcheck);
  SelfcheckSettings& settings = args->settings;
  add_tasks_arguments(command, *args);
  command.add_option("--repeats", settings.repeats, "how often each is judged").in_range(1, 1'000);
  command.add_option("--mutants", settings.mutants, "mistakes to try in each reference")
      .in_range(0, 1'000);
  command.add_option("--killed", settings.killed, "share of the decided mistakes that must fail")
      .check(share(0, 1), "SHARE");
  add_tasks_options(command, *args, "check", "");
}
}  // namespace proctor::cli
