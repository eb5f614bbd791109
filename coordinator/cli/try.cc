#include "coordinator/cli/try.h"

#include <algorithm>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/trace/evidence.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/shell/local_workers.h"

namespace proctor::cli {
namespace {
// Holds the id of the campaign that has been begun there.
fs::path mark_of(const StateFolder& place) {
  return place.campaign / "campaign-id";
}

bool is_begun(const FrozenCampaign& frozen) {
  const Result<std::string> before = read_file(mark_of(frozen.folder), 4'096);
  return before.ok() && *before == frozen.id;
}

bool is_open(const RunRecord& run) {
  using State = RunRecord::State;
  return run.state == State::kPlanned || run.state == State::kRunning;
}

Trial trial_of(int code, CampaignReport report) {
  Trial out;
  out.code = code;
  out.over = std::ranges::none_of(report.runs, is_open);
  for (const RunRecord& run : report.runs) out.cost = out.cost + run.cost.total();
  out.report = std::move(report);
  return out;
}
}  // namespace

Result<FileLock> own_trial(const StateFolder& place, const std::string& command) {
  PROCTOR_CHECK_OK(make_private_dirs(place.campaign.parent_path()));
  Result<FileLock> lock = FileLock::try_acquire(place.campaign.string() + ".lock");
  if (!lock.ok() && lock.error().code == Errc::kConflict)
    return Error{Errc::kConflict, "this is under way now, by another proctor " + command + " in " +
                                      place.campaign.string() + ": wait for it, or interrupt it"};
  return lock;
}

Status begin_trial(const FrozenCampaign& frozen) {
  PROCTOR_CHECK_OK(LocalWorkers::end_left(frozen.folder));
  PROCTOR_CHECK_OK(remove_tree(frozen.folder.campaign));
  PROCTOR_CHECK_OK(make_dirs(frozen.folder.campaign));
  return write_file(mark_of(frozen.folder), frozen.id);
}

Result<Trial> run_trial(RunOptions options, const FrozenCampaign& frozen) {
  if (!is_begun(frozen)) {
    PROCTOR_CHECK_OK(begin_trial(frozen));
  } else if (Result<CampaignReport> before = read_report(frozen); before.ok()) {
    Trial trial = trial_of(kOk, std::move(before).value());
    if (trial.over) return trial;
  }
  options.folder = frozen.folder.campaign.string();
  options.begin = RunOptions::Begin::kEither;
  options.show_report = false;
  PROCTOR_TRY(const int code, run_frozen(options, frozen));
  PROCTOR_TRY(CampaignReport report, read_report(frozen));
  return trial_of(code, std::move(report));
}

void forget_trial(const StateFolder& place) {
  std::error_code ec;
  fs::remove(mark_of(place), ec);
}

void add_tasks_arguments(const Command& command, TasksArgs& args) {
  command.add_option("CAMPAIGN", args.folder, "the campaign's folder").required();
  command.add_option("TASK", args.tasks, "contracts' ids; none: all");
}

void add_tasks_options(const Command& command, TasksArgs& args, const std::string& verb,
                       const std::string& when) {
  command.add_option("--usd", args.usd,
                     "what the machine's time for it may cost; not given: no limit");
  command
      .add_option("--workers", args.options.workers,
                  "local workers" + when + "; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kLocalWorkersMax);
  command
      .add_option("--slots", args.options.slots, "of each" + when + "; not given: the campaign's")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_flag("--again", args.again, verb + " also what is known from before");
  command.add_flag("--json", args.json, "the results as they are kept");
}

std::string typed_again(const TasksArgs& args, const std::string& options) {
  std::string out = " " + args.folder;
  for (const std::string& task : args.tasks) out += " " + task;
  return out + options;
}

Result<AskedTasks> asked_tasks(const TasksArgs& args, const Campaign& campaign,
                               const std::function<bool(const Contract&)>& is_known) {
  AskedTasks out;
  if (!args.usd.empty()) {
    Result<MicroUsd> usd = parse_usd(args.usd);
    if (!usd.ok()) return in_context("--usd", std::move(usd).error());
    out.usd = *usd;
  }
  std::vector<std::string_view> ids;
  for (const Contract& c : campaign.contracts) ids.push_back(c.id);
  for (const std::string& name : args.tasks)
    if (campaign.find_contract(name) == nullptr) return no_such("the campaign", "task", name, ids);
  for (const Contract& c : campaign.contracts) {
    if (!args.tasks.empty() && std::ranges::find(args.tasks, c.id) == args.tasks.end()) continue;
    out.all.push_back(&c);
    if (!args.again && is_known(c)) {
      ++out.reused;
      continue;
    }
    const std::vector<std::string> missing =
        missing_here(args.options, selfcheck_campaign(campaign, {{&c, {}}}, 1, out.usd));
    if (missing.empty())
      out.todo.push_back(&c);
    else
      out.lacking.emplace_back(&c, missing.front());
  }
  return out;
}

std::string cost_words(const Campaign& campaign, std::int64_t usd_micros, std::size_t reused,
                       const std::string& verb) {
  const std::string known =
      reused == 0 ? ""
                  : fmt::format(
                        "; {} known from before, their contracts being the same (--again "
                        "{}s anew)",
                        reused, verb);
  return fmt::format("It cost {} {} of this machine's time, of no envelope of the campaign{}.\n",
                     format_usd(MicroUsd::from_micros(usd_micros)), money_word(campaign.cost_model),
                     known);
}

// proctor try CAMPAIGN TASK METHOD: one run, in a folder of its own.  The campaign is neither
// registered nor changed, and none of its money is spent.

namespace {
struct TryArgs {
  std::string folder, task, method;
  RunOptions options;
};

// What a newcomer would take for a fault, and is right; and what is wrong and looks right.
std::string of_baseline(const RunRecord& run) {
  if (const std::string why = broken_task_word(run); !why.empty())
    return fmt::format("  the task is {}: {}\n", run.passes == 0 ? "broken" : "flaky", why);
  if (run.baseline == RunRecord::Baseline::kNoop && run.outcome == RunOutcome::kFailure)
    return "  that is right: noop changes nothing, so the checks must not pass\n";
  return "";
}

std::string why_of(const FrozenCampaign& frozen, const RunRecord& run) {
  const fs::path attempt = frozen.folder.attempt(run.name, AttemptNo(run.attempts));
  std::string out = of_baseline(run);
  if (run.outcome == RunOutcome::kSuccess) return out;
  out += failing_checks(attempt);
  if (!run.agent_exit || *run.agent_exit == 0) return out;
  const std::string said = last_lines_of(attempt / "agent" / kStderrFile, "      ");
  return said.empty() ? out : out + "  the agent's stderr ends:\n" + said;
}

std::string told(const FrozenCampaign& frozen, const RunRecord& run, const std::string& folder) {
  std::string out = run.name + ": " + std::string(to_string(run.state));
  const bool ended = run.state == RunRecord::State::kEnded;
  if (ended)
    out += " with " + std::string(to_string(run.outcome)) + ", " +
           std::string(to_string(run.termination));
  const std::string& why = run.parked_why.empty() ? run.rationale : run.parked_why;
  if (!why.empty()) out += "\n  " + printable(why, limits::kDetailBytes);
  out += "\n";
  if (ended) out += why_of(frozen, run);
  const std::string read = " " + folder + " " + run.task + "/" + run.method + " --try\n";
  const fs::path evidence = run.attempts == 0
                                ? frozen.folder.run(run.name)
                                : frozen.folder.attempt(run.name, AttemptNo(run.attempts));
  return out + "  it cost " + format_usd(run.cost.total()) + " " +
         money_word(frozen.campaign.cost_model) +
         ", of no envelope of the campaign\n  evidence: " + evidence.string() +
         "\n  all that was said: proctor logs" + read + "  what it changed:   proctor diff" + read;
}

Result<int> try_one(TryArgs args) {
  PROCTOR_TRY(Campaign campaign, load_checked(args.folder, Outside::kCheck));
  const StateFolder place = try_folder(campaign.folder, args.task, args.method);
  PROCTOR_TRY(campaign, try_campaign(campaign, args.task, args.method));
  args.options.workers = args.options.slots = 1;
  PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  PROCTOR_CHECK_OK(check_models(args.options, campaign));
  PROCTOR_CHECK_OK(check_host_things(args.options, campaign));
  PROCTOR_CHECK_OK(check_programs(args.options, campaign));
  PROCTOR_TRY(const FileLock lock, own_trial(place, "try"));
  PROCTOR_TRY(const FrozenCampaign frozen, freeze_trials(std::move(campaign), {}, place));
  PROCTOR_CHECK_OK(begin_trial(frozen));
  args.options.folder = place.campaign.string();
  args.options.show_report = false;
  args.options.go_on = "proctor try " + args.folder + " " + args.task + " " + args.method;
  PROCTOR_TRY(const int code, run_frozen(args.options, frozen));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  const RunRecord& run = report.runs.front();
  std::fputs(told(frozen, run, args.folder).c_str(), stdout);
  if (code != kOk) return code;
  const bool judged = run.state == RunRecord::State::kEnded &&
                      (run.outcome == RunOutcome::kSuccess || run.outcome == RunOutcome::kFailure);
  return judged ? kOk : kJobFailed;
}
}  // namespace

void add_try(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "try", "one run of one method at one task, before anything is registered",
      "Example:\n  proctor try my-campaign json-lib my-agent\n"
      "Its evidence stays in my-campaign/.proctor/try/TASK/METHOD until the next try. Nothing is\n"
      "tried again, and the campaign's own runs, money and registration know nothing of it.\n"
      "proctor logs, diff and explain read it with --try: proctor logs my-campaign "
      "json-lib/my-agent --try\n"
      "Exit codes: 0 it was judged (success or failure), 1 it could not be, 2 bad input,\n"
      "3 too little money, 4 infrastructure.");
  const auto args = arguments<TryArgs>(command, exit_code, try_one);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("TASK", args->task, "a contract's id").required();
  command.add_option("METHOD", args->method, "a method's name").required();
  command
      .add_option("--models", args->options.models,
                  "file that says how the worker reaches single-shot models")
      .envname("PROCTOR_MODELS");
}
}  // namespace proctor::cli
