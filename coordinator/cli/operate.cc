#include "coordinator/cli/operate.h"

#include <array>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "common/base/json_fields.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/aggregate/run_filter.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/core/events.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"

namespace proctor::cli {
namespace {
Time now() {
  return {mono_now(), wall_now()};
}

struct Still {
  CampaignView view;  // begun
  CampaignView::Begun begun;

  Scheduler& core() const { return *view.core; }
};
Result<Still> still_of(const FrozenCampaign& frozen, RestoredState state) {
  PROCTOR_TRY(CampaignView view, view_of(frozen, std::move(state)));
  CampaignView::Begun begun = view.begin(now());
  return Still{std::move(view), std::move(begun)};
}

bool is_check(const JournalWrite& write) {
  const Note* note = std::get_if<Note>(&write);
  return note != nullptr && note->kind == StageChecked::kNote;
}

// The act's own writes and nothing of what a life would do besides, but for the check of stages
// that is approved; then the answer, for which nothing is waited for that is not written.
Result<OperatorAnswer> decide(Still& still, const OperatorAct& act, Journal& journal) {
  Scheduler& scheduler = still.core();
  std::vector<proctor::Command> commands = scheduler.on(OperatorAsked{1, act}, now());
  std::vector<JournalWrite>& first = still.begun.writes;
  std::erase_if(first, [&](const JournalWrite& w) {
    return act.kind != OperatorActKind::kApproveStage || !is_check(w);
  });
  for (proctor::Command& c : commands)
    if (auto* persist = std::get_if<Persist>(&c)) {
      std::ranges::move(persist->writes, std::back_inserter(first));
      PROCTOR_CHECK_OK(journal.append_and_wait(std::exchange(first, {})));
    }
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  std::ranges::move(scheduler.on(Persisted{kAll}, now()), std::back_inserter(commands));
  for (const proctor::Command& c : commands)
    if (const auto* answer = std::get_if<Answer>(&c)) return answer->answer;
  return Error{Errc::kUnavailable, "nothing was decided: proctor resume, and ask again"};
}

// A scheduler whose campaign is over hears nothing more; what was cancelled, or is parked
// because it is broken, can still be wanted.
Result<OperatorAnswer> requeue_after_the_end(const Scheduler& scheduler, const OperatorAct& act,
                                             Journal& journal) {
  OperatorFact fact{act};
  std::erase_if(fact.act.runs, [&](RunId run) {
    return scheduler.phase(run) != RunPhase::kCancelled && !scheduler.is_faulty(run);
  });
  const std::size_t closed = std::erase_if(
      fact.act.runs, [&](RunId run) { return scheduler.gates().is_closed(scheduler.plan(), run); });
  const std::size_t n = fact.act.runs.size();
  if (n == 0)
    return OperatorAnswer{OperatorAnswer::Verdict::kUnchanged,
                          0 < closed ? kStageClosed
                                     : "none of them is cancelled, or parked because its task or "
                                       "method is broken; those that ended invalid are run again "
                                       "by --invalid"};
  std::vector<JournalWrite> note;
  note.push_back(note_of(fact));
  PROCTOR_CHECK_OK(journal.append_and_wait(std::move(note)));
  return OperatorAnswer{OperatorAnswer::Verdict::kDone, counted(n, "run") + " in line again"};
}

Result<OperatorAnswer> reopen_after_the_end(Scheduler& scheduler, const OperatorAct& act,
                                            Journal& journal) {
  OperatorAnswer answer;
  std::vector<JournalWrite> writes = scheduler.reopen_after_the_end(act, answer);
  if (!writes.empty()) PROCTOR_CHECK_OK(journal.append_and_wait(std::move(writes)));
  return answer;
}
}  // namespace

Result<ControlAnswer> act_offline(const std::string& folder, const ControlRequest& request) {
  // What is asked to run again would meet the changed files with the next resume.
  PROCTOR_TRY(const FrozenCampaign frozen,
              request.act == "requeue" ? load_unchanged(folder) : load_registered(folder));
  PROCTOR_TRY(RestoredState state, read_journal(frozen));
  if (request.act == "kick" || (request.act == "drain" && request.worker.empty()))
    return Error{Errc::kUnavailable, "no coordinator runs this campaign, so there is nothing to " +
                                         request.act + ": proctor resume " + folder};
  PROCTOR_TRY(Still still, still_of(frozen, std::move(state)));
  // Words that are wrong need no lock.
  PROCTOR_CHECK_OK(act_of(request, names_of(frozen.plan, still.core()), wall_now()));
  // The journal's lock keeps a coordinator from starting meanwhile.
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, Journal::open(frozen.folder.journal()));
  PROCTOR_TRY(state, journal->load());
  PROCTOR_TRY(still, still_of(frozen, std::move(state)));
  PROCTOR_TRY(const OperatorAct act,
              act_of(request, names_of(frozen.plan, still.core()), wall_now()));
  const bool after = still.begun.over && act.kind == OperatorActKind::kRequeue;
  PROCTOR_TRY(const OperatorAnswer answer,
              after ? (act.invalid ? reopen_after_the_end(still.core(), act, *journal)
                                   : requeue_after_the_end(still.core(), act, *journal))
                    : decide(still, act, *journal));
  PROCTOR_CHECK_OK(journal->close());
  std::string text = answer.text;
  if (act.kind == OperatorActKind::kRequeue && answer.verdict != OperatorAnswer::Verdict::kDone) {
    PROCTOR_TRY(const std::string raises, raises_for(folder, frozen, act.runs));
    if (!raises.empty()) text += raises;
  }
  return ControlAnswer{verdict_of(answer.verdict), std::move(text), {}};
}

Result<Json> explain_offline(const FrozenCampaign& frozen, RunId run) {
  PROCTOR_TRY(RestoredState state, read_journal(frozen));
  PROCTOR_TRY(const Still still, still_of(frozen, std::move(state)));
  return to_json(still.core().why(run));
}

// proctor pause, unpause, drain, cancel, requeue, approve, quarantine, release, kick.

namespace {
using Verdict = ControlAnswer::Verdict;

int exit_code_of(Verdict verdict) {
  if (verdict == Verdict::kDone || verdict == Verdict::kUnchanged) return kOk;
  return verdict == Verdict::kUnavailable ? kInfrastructure : kBadInput;
}

enum class Operand { kNone, kRuns, kWorker, kMaybeWorker };
struct ActCommand {
  OperatorActKind kind;
  const char* what;
  Operand operand;
  bool needs_reason;
  const char* footer;
};

constexpr const char* kRunsAre =
    "TASK/METHOD/rN, a task, a method, or all (task:ID or method:NAME when one name is both)";
constexpr std::array<ActCommand, 9> kActCommands{{
    {OperatorActKind::kPause,
     "start nothing until unpause; what runs is finished, or with --now suspended", Operand::kNone,
     false,
     "Example:\n  proctor pause my-campaign --now --reason \"the build farm is needed\"\n"
     "Suspended runs stand still where they are, and their clocks with them; they hold their\n"
     "memory and their reservations. Stays so across a restart, until: proctor unpause."},
    {OperatorActKind::kUnpause, "start runs again, and let go on what was suspended",
     Operand::kNone, false, "Example:\n  proctor unpause my-campaign"},
    {OperatorActKind::kDrain,
     "finish what runs there and start nothing: on a worker, or everywhere", Operand::kMaybeWorker,
     false,
     "Example:\n  proctor drain my-campaign build7 --reason \"its disk is replaced\"\n"
     "release gives the worker work again. Without WORKER the whole campaign is finished so, as\n"
     "by an interrupt, and the coordinator ends; then: proctor resume."},
    {OperatorActKind::kCancel, "stop runs, or keep them from starting", Operand::kRuns, true,
     "Example:\n  proctor cancel my-campaign my-agent --reason \"its key has leaked\"\n"
     "  proctor cancel my-campaign --where 'state=planned language=rust' --reason \"no compiler\"\n"
     "What they cost so far is charged. requeue takes those back that have no outcome."},
    {OperatorActKind::kRequeue, "put cancelled or waiting runs in line again, now", Operand::kRuns,
     false,
     "Example:\n  proctor requeue my-campaign json-lib/my-agent/r1\n"
     "  proctor requeue my-campaign --invalid --reason \"the disk was full\"\n"
     "Of a task or method that is parked because it is broken, one run lets all of them try\n"
     "again. --invalid takes those of RUNS (without: of all) that ended invalid, as far as the\n"
     "attempts that were registered reach; their first results stay in report and explain.\n"
     "Exit code 2 where nothing is put in line."},
    {OperatorActKind::kApprove, "let runs go on that wait for a person's decision", Operand::kRuns,
     true,
     "Example:\n  proctor approve my-campaign json-lib/my-agent/r1 --reason \"the diff is fine\""},
    {OperatorActKind::kQuarantine, "give a worker nothing new until it is released",
     Operand::kWorker, false,
     "Example:\n  proctor quarantine my-campaign build7 --reason \"it throttles\""},
    {OperatorActKind::kRelease, "end a worker's quarantine or drain", Operand::kWorker, false,
     "Example:\n  proctor release my-campaign build7"},
    {OperatorActKind::kKick,
     "tell a worker to leave at once; its attempts are lost and tried again", Operand::kWorker,
     true,
     "Example:\n  proctor kick my-campaign build7 --reason \"it hangs\"\n"
     "Lost attempts are charged at their ceiling, because nobody knows what they cost. A local\n"
     "worker that was kicked comes back with the next resume."},
}};

struct OperateArgs : ActArgs {
  std::string where;
};

// The runs that the filter finds in the journal as it is now, as places in the plan.
Status select_where(OperateArgs& args) {
  if (!args.request.runs.empty())
    return Error{Errc::kInvalid, "RUNS and --where: name the runs by one of them"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const ReportInput input, read_runs(frozen));
  PROCTOR_TRY(const RunFilter filter,
              RunFilter::parse(args.where, {input.strata_keys, input.runs}));
  std::vector<RunId> found;
  for (std::uint32_t i = 0; i < input.runs.size(); ++i)
    if (filter.matches(input.runs[i])) found.emplace_back(i);
  std::string places = "order:" + ranges_of(found);
  std::ranges::replace(places, ' ', ',');
  if (found.empty())
    return Error{Errc::kNotFound, "no run is meant by --where " + printable(args.where) +
                                      ": see proctor list " + args.folder + " --where ..."};
  constexpr std::size_t kPlacesBytes = 32'768;  // of a request's 64 KiB
  if (kPlacesBytes < places.size())
    return Error{Errc::kInvalid, "--where finds " + std::to_string(found.size()) +
                                     " runs that lie too far apart in the plan for one act: "
                                     "add a method=NAME or order<N to it, and act again"};
  args.request.runs = std::move(places);
  return ok_status();
}

Result<int> operate(OperateArgs args) {
  if (!args.where.empty()) PROCTOR_CHECK_OK(select_where(args));
  if (args.request.by.empty()) args.request.by = user_name();
  return act_and_tell(args);
}

void add_command(Command app, int& exit_code, const ActCommand& c) {
  const std::string name(word_of(c.kind));
  const Command command = app.add_subcommand(name, c.what, c.footer);
  const auto args = arguments<OperateArgs>(command, exit_code, operate);
  args->request.act = name;
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  if (c.operand == Operand::kRuns) command.add_option("RUNS", args->request.runs, kRunsAre);
  if (c.kind == OperatorActKind::kRequeue)
    command.add_flag("--invalid", args->request.invalid,
                     "those that ended invalid; the result they have is kept and shown");
  if (c.operand == Operand::kWorker || c.operand == Operand::kMaybeWorker)
    command.add_option("WORKER", args->request.worker, "a worker's name, as in proctor status")
        .required(c.operand == Operand::kWorker);
  if (c.kind == OperatorActKind::kPause)
    command.add_flag("--now", args->request.now, "also suspend what runs");
  command.add_option("--reason", args->request.reason, "why; it stands in the journal")
      .required(c.needs_reason);
  command.add_option("--by", args->request.by, "who decided it (default: you)");
  command.add_flag("--json", args->json, "for scripts");
  if (c.operand == Operand::kRuns)
    command.add_option("--where", args->where, "the runs of a filter instead (proctor list)")
        .type_name("FILTER");
}
}  // namespace

Result<int> act_and_tell(const ActArgs& args) {
  PROCTOR_TRY(const StateFolder state, campaign_folder(args.folder));
  PROCTOR_TRY(auto live, ask_coordinator(state, args.request));
  Acted out{{}, live.has_value()};
  if (live) {
    out.answer = std::move(*live);
  } else {
    PROCTOR_TRY(out.answer, act_offline(args.folder, args.request));
  }
  out.answer.text = told_with_folder(std::move(out.answer.text), args.folder);
  return tell(args.request, out, args.json);
}

int tell(const ControlRequest& request, const Acted& acted, bool json) {
  const ControlAnswer& answer = acted.answer;
  // Whoever requeues expects something to run.
  const bool in_vain = request.act == "requeue" && answer.verdict == Verdict::kUnchanged;
  const int code = in_vain ? kBadInput : exit_code_of(answer.verdict);
  if (json) {
    JsonWriter out;
    out("act", request.act);
    out("verdict", answer.verdict);
    out("text", answer.text);
    out("live", acted.live);
    std::printf("%s\n", out.take().dump(-1, Json::Utf8::kReplace).c_str());
    return code;
  }
  // Its lines are ours; what a terminal would obey is in them from elsewhere.
  const std::string text = printable_lines(answer.text);
  if (code == kOk) {
    std::printf("%s\n", text.c_str());
    if (!acted.live) std::printf("No coordinator runs: the next proctor resume stands by it.\n");
  } else {
    std::fprintf(stderr, "proctor: %s\n", text.c_str());
  }
  return code;
}

void add_operate(Command app, int& exit_code) {
  for (const ActCommand& c : kActCommands) add_command(app, exit_code, c);
}

// proctor remove-task: takes a task out after the freeze, for a reason (R173).

namespace {
struct RemoveArgs {
  std::string folder, task, reason, by;
};

Status remove_task(RemoveArgs args) {
  if (args.by.empty()) args.by = user_name();
  const auto& [folder, task, reason, by] = args;
  PROCTOR_TRY(FrozenCampaign frozen, load_registered(folder));
  PROCTOR_CHECK_OK(add_removal(frozen.registration, task, reason, wall_now(), by));
  PROCTOR_CHECK_OK(make_private_dirs(frozen.folder.state()));
  PROCTOR_TRY(std::optional<JournalReader> begun, begun_journal(frozen.folder));
  if (begun) {
    PROCTOR_CHECK_OK(load_whole(frozen, *begun));
    begun.reset();
  }
  // The journal's lock also keeps this from happening under a running campaign.
  auto opened = Journal::open(frozen.folder.journal());
  if (!opened.ok() && opened.error().code == Errc::kConflict)
    return Error{Errc::kConflict, "a coordinator is at work (" + opened.error().detail +
                                      "): a task is taken out where none is. Interrupt it once "
                                      "(Ctrl-C), then the same again, then proctor resume " +
                                      folder};
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, std::move(opened));
  std::vector<JournalWrite> note;
  note.push_back(Note{wall_now(), kNoteTaskRemoved, {}, {}, removal_note(task, reason, by)});
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r)  // no money is missing where none is asked
    if (frozen.plan.task(RunId(r)).id == task) note.push_back(RunUnparked{RunId(r)});
  PROCTOR_CHECK_OK(journal->append_and_wait(std::move(note)));
  PROCTOR_CHECK_OK(write_file(frozen.folder.registration(), to_json(frozen.registration)));
  std::printf(
      "%s is out of the campaign: none of its runs begins any more, and those that have "
      "ended keep their outcome and their evidence, and are in no rate of the report\n",
      task.c_str());
  return journal->close();
}
}  // namespace

void add_remove_task(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "remove-task", "take a task out of a registered campaign, with a reason that is recorded",
      "Example:\n  proctor remove-task my-campaign json-lib --by Ada --reason \"its suite is "
      "flaky\"");
  const auto args = arguments<RemoveArgs>(command, exit_code, remove_task);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("TASK", args->task, "the contract's id").required();
  command
      .add_option("--reason", args->reason,
                  "why: only what makes the task itself invalid, never how runs came out")
      .required();
  command.add_option("--by", args->by, "who decided it (default: you)");
}
}  // namespace proctor::cli
