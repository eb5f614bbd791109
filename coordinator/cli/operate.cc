// proctor pause, unpause, drain, cancel, requeue, approve, quarantine, release, kick.
#include "coordinator/cli/operate.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "common/base/json.h"
#include "common/base/text.h"
#include "coordinator/aggregate/run_filter.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/control_client.h"
#include "coordinator/cli/offline_act.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/cli/pilot_commands.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {

using Verdict = ControlAnswer::Verdict;

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDone:
    case Verdict::kUnchanged:
      return kOk;
    case Verdict::kRefused:
    case Verdict::kInvalid:
      return kBadInput;
    case Verdict::kUnavailable:
      break;
  }
  return kInfrastructure;
}

enum class Operand { kNone, kRuns, kWorker, kMaybeWorker };
struct ActCommand {
  const char* name;
  const char* what;
  Operand operand;
  bool needs_reason;
  const char* footer;
};

constexpr const char* kRunsAre =
    "TASK/METHOD/rN, a task, a method, or all (task:ID or method:NAME when one name is both)";
constexpr std::array<ActCommand, 9> kActCommands{{
    {"pause", "start nothing until unpause; what runs is finished, or with --now suspended",
     Operand::kNone, false,
     "Example:\n  proctor pause my-campaign --now --reason \"the build farm is needed\"\n"
     "Suspended runs stand still where they are, and their clocks with them; they hold their\n"
     "memory and their reservations. Stays so across a restart, until: proctor unpause."},
    {"unpause", "start runs again, and let go on what was suspended", Operand::kNone, false,
     "Example:\n  proctor unpause my-campaign"},
    {"drain", "finish what runs there and start nothing: on a worker, or everywhere",
     Operand::kMaybeWorker, false,
     "Example:\n  proctor drain my-campaign build7 --reason \"its disk is replaced\"\n"
     "release gives the worker work again. Without WORKER the whole campaign is finished so, as\n"
     "by an interrupt, and the coordinator ends; then: proctor resume."},
    {"cancel", "stop runs, or keep them from starting", Operand::kRuns, true,
     "Example:\n  proctor cancel my-campaign my-agent --reason \"its key has leaked\"\n"
     "  proctor cancel my-campaign --where 'state=planned language=rust' --reason \"no compiler\"\n"
     "What they cost so far is charged. requeue takes those back that have no outcome."},
    {"requeue", "put cancelled or waiting runs in line again, now", Operand::kRuns, false,
     "Example:\n  proctor requeue my-campaign json-lib/my-agent/r1\n"
     "  proctor requeue my-campaign --invalid --reason \"the disk was full\"\n"
     "Of a task or method that is parked because it is broken, one run lets all of them try\n"
     "again. --invalid takes those of RUNS (without: of all) that ended invalid, as far as the\n"
     "attempts that were registered reach; their first results stay in report and explain.\n"
     "Exit code 2 where nothing is put in line."},
    {"approve", "let runs go on that wait for a person's decision", Operand::kRuns, true,
     "Example:\n  proctor approve my-campaign json-lib/my-agent/r1 --reason \"the diff is fine\""},
    {"quarantine", "give a worker nothing new until it is released", Operand::kWorker, false,
     "Example:\n  proctor quarantine my-campaign build7 --reason \"it throttles\""},
    {"release", "end a worker's quarantine or drain", Operand::kWorker, false,
     "Example:\n  proctor release my-campaign build7"},
    {"kick", "tell a worker to leave at once; its attempts are lost and tried again",
     Operand::kWorker, true,
     "Example:\n  proctor kick my-campaign build7 --reason \"it hangs\"\n"
     "Lost attempts are charged at their ceiling, because nobody knows what they cost. A local\n"
     "worker that was kicked comes back with the next resume."},
}};

struct OperateArgs {
  std::string folder, where;
  ControlRequest request;
  bool json = false;
};

// The runs that the filter finds in the journal as it is now, as places in the plan.
Status select_where(OperateArgs& args) {
  if (!args.request.runs.empty())
    return Error{Errc::kInvalid, "RUNS and --where: name the runs by one of them"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const ReportInput input, read_runs(frozen));
  PROCTOR_TRY(const RunFilter filter,
              RunFilter::parse(args.where, {input.strata_keys, input.runs}));
  std::string places;
  std::size_t found = 0;
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    if (!filter.matches(input.runs[i])) continue;
    std::size_t last = i;
    while (last + 1 < input.runs.size() && filter.matches(input.runs[last + 1])) ++last;
    places += (places.empty() ? "order:" : ",") + std::to_string(i);
    if (i < last) places += "-" + std::to_string(last);
    found += last - i + 1;
    i = last;
  }
  if (found == 0)
    return Error{Errc::kNotFound, "no run is meant by --where " + printable(args.where) +
                                      ": see proctor list " + args.folder + " --where ..."};
  constexpr std::size_t kPlacesBytes = 32'768;  // of a request's 64 KiB
  if (kPlacesBytes < places.size())
    return Error{Errc::kInvalid, "--where finds " + std::to_string(found) +
                                     " runs that lie too far apart in the plan for one act: "
                                     "add a method=NAME or order<N to it, and act again"};
  args.request.runs = std::move(places);
  return ok_status();
}

void add_command(Command app, int& exit_code, const ActCommand& c) {
  const Command command = app.add_subcommand(c.name, c.what, c.footer);
  auto args = std::make_shared<OperateArgs>();
  args->request.act = c.name;
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  if (c.operand == Operand::kRuns) command.add_option("RUNS", args->request.runs, kRunsAre);
  if (args->request.act == "requeue")
    command.add_flag("--invalid", args->request.invalid,
                     "those that ended invalid; the result they have is kept and shown");
  if (c.operand == Operand::kWorker || c.operand == Operand::kMaybeWorker)
    command.add_option("WORKER", args->request.worker, "a worker's name, as in proctor status")
        .required(c.operand == Operand::kWorker);
  if (args->request.act == "pause")
    command.add_flag("--now", args->request.now, "also suspend what runs");
  command.add_option("--reason", args->request.reason, "why; it stands in the journal")
      .required(c.needs_reason);
  command.add_option("--by", args->request.by, "who decided it (default: you)");
  command.add_flag("--json", args->json, "for scripts");
  if (c.operand == Operand::kRuns)
    command.add_option("--where", args->where, "the runs of a filter instead (proctor list)")
        .type_name("FILTER");
  command.callback([=, &exit_code] {
    if (!args->where.empty()) {
      const Status found = select_where(*args);
      if (!found.ok()) {
        exit_code = complain(found.error());
        return;
      }
    }
    if (args->request.by.empty()) args->request.by = user_name();
    const Result<Acted> acted = act_on(args->folder, args->request);
    exit_code = acted.ok() ? tell(args->request, *acted, args->json) : complain(acted.error());
  });
}

}  // namespace

Result<Acted> act_on(const std::string& folder, const ControlRequest& request) {
  PROCTOR_TRY(const StateFolder state, campaign_folder(folder));
  PROCTOR_TRY(auto live, ask_coordinator(state, request));
  Acted out{{}, live.has_value()};
  if (live) {
    out.answer = std::move(*live);
  } else {
    PROCTOR_TRY(out.answer, act_offline(folder, request));
  }
  out.answer.text = told_with_folder(std::move(out.answer.text), folder);
  return out;
}

int tell(const ControlRequest& request, const Acted& acted, bool json) {
  const ControlAnswer& answer = acted.answer;
  // Whoever requeues expects something to run.
  const bool in_vain = request.act == "requeue" && answer.verdict == Verdict::kUnchanged;
  const int code = in_vain ? kBadInput : exit_code_of(answer.verdict);
  if (json) {
    const Json out = {{"act", request.act},
                      {"verdict", to_string(answer.verdict)},
                      {"text", answer.text},
                      {"live", acted.live}};
    std::printf("%s\n", out.dump(-1, Json::Utf8::kReplace).c_str());
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

}  // namespace proctor::cli
