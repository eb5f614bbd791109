// proctor pilot status, approve, waive, close: the gates between the stages of a campaign
// (docs/pilots.md).
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/caps.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/operate.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {
bool is_break(char c) {
  return c == ' ' || c == ',' || c == ';' || c == ')';
}

// As PILOTS names them; those that no fact of the journal tells apart are one.
std::string state_of(const Scheduler& core, std::uint16_t stage, const StageFacts& facts) {
  const GateBook::Gate* next = core.gates().next();
  if (next != nullptr && next->index <= stage) {
    const std::optional<GateView> gate = core.gate();
    if (stage != next->index || gate->waits_for == "runs") return "planned";
    return gate->waits_for == "approval" ? "waiting" : "refused";
  }
  if (0 < facts.open) return "open";
  // What its exit asks for is part of being closed, as the next gate asks it.
  const std::vector<StageAnswer> exit = check_exit(facts);
  return std::ranges::all_of(exit, &StageAnswer::holds) ? "closed" : "over";
}

Json stage_json(const Scheduler& core, std::uint16_t s, const StageFacts& f) {
  const std::string& name = core.plan().stages[s].name;
  JsonWriter out;
  out("name", name);
  out("state", state_of(core, s, f));
  out("open", f.open);
  out("ended", f.ended());
  out("parked", f.parked);
  out("cancelled", f.cancelled);
  out("removed", f.removed);
  out("spent_micro_usd", f.spent);
  out("cap_micro_usd", f.cap);
  out("exit", check_exit(f));
  if (const GateBook::Gate* gate = core.gates().find(name)) {
    out("people", gate->people);
    out("entry", core.check_stage(s).predicates);
    Json approved = Json::array();
    for (const auto& [by, digest] : gate->approved) {
      JsonWriter one;
      one("by", by);
      one("digest", digest);
      approved.push_back(one.take());
    }
    out("approved", approved);
  }
  return out.take();
}

void print_answers(const char* side, const std::vector<StageAnswer>& answers) {
  for (const StageAnswer& a : answers)
    fmt::print("  {:<5} {:<7} {:<26} {}\n", side, to_string(a.value), a.label(),
               printable(a.text, limits::kDetailBytes));
}

void print_status(const Scheduler& core, const std::string& folder) {
  const PlanView& plan = core.plan();
  const std::string unit = money_word(core.settings().cost_model);
  for (std::uint16_t s = 0; s < plan.stages.size(); ++s) {
    const StageFacts f = core.facts_of(s);
    fmt::print(
        "stage {}: {}; {} ended, {} not over, {} parked, {} cancelled, {} removed; {} of {} {} "
        "spent\n",
        plan.stages[s].name, state_of(core, s, f), counted(f.ended(), "run"), f.open, f.parked,
        f.cancelled, f.removed, format_usd(f.spent), format_usd(f.cap), unit);
    if (const GateBook::Gate* gate = core.gates().find(plan.stages[s].name)) {
      // Of one that is open what it was opened by is in the journal (proctor journal export).
      if (!gate->open) print_answers("entry", core.check_stage(s).predicates);
      const std::vector<std::string> by = GateBook::approvers(*gate, gate->checked);
      for (const std::string& name : by) std::printf("  approved by %s\n", printable(name).c_str());
    }
    print_answers("exit", check_exit(f));
  }
  std::printf("%s\n", kCapsArePolicy.data());
  const std::optional<GateView> gate = core.gate();
  if (!gate) return;
  if (gate->waits_for == "approval" && gate->behind == 0) {
    std::printf("\nstage %s has no run left that could begin: there is nothing to approve\n",
                gate->stage.c_str());
    return;
  }
  std::printf("\nstage %s %s\n", gate->stage.c_str(),
              printable(told_with_folder(gate->text, folder), 4 * limits::kDetailBytes).c_str());
  if (gate->waits_for == "approval")
    std::printf(
        "What is approved has the digest %s:\n  proctor pilot approve %s %s --digest %s "
        "--by NAME --reason WHY\n",
        gate->digest.c_str(), folder.c_str(), gate->stage.c_str(),
        gate->digest.substr(0, 12).c_str());
}

// Numbers of an agent that never did anything are approved as any other: said beside them.
void print_early_ends(const CampaignReport& report, const std::string& folder) {
  for (const EarlyEnd& early : early_ends(report.runs))
    std::printf("\nWarning: %s\nWhat it said: proctor logs %s %s\n",
                printable(early_end_text(early, report.runs), limits::kDetailBytes).c_str(),
                folder.c_str(), report.runs[early.first].name.c_str());
}

struct ShowArgs {
  std::string folder;
  bool json = false;
};

Result<int> show(const ShowArgs& args) {
  const std::string& folder = args.folder;
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(frozen.folder));
  if (!journal) return not_begun(folder);
  PROCTOR_CHECK_OK(journal->hold());
  PROCTOR_TRY(CampaignView view, view_of(frozen, *journal));
  view.begin({mono_now(), wall_now()});
  const Scheduler& core = *view.core;
  const PlanView& plan = core.plan();
  if (args.json) {
    Json stages = Json::array();
    for (std::uint16_t s = 0; s < plan.stages.size(); ++s)
      stages.push_back(stage_json(core, s, core.facts_of(s)));
    std::optional<StatusSnapshot::Gate> gate = gate_seen(core);
    if (gate) gate->text = told_with_folder(std::move(gate->text), folder);
    JsonWriter out;
    out("campaign", frozen.id);
    out("stages", stages);
    out("gate", gate);
    std::printf("%s\n", out.take().dump(1, Json::Utf8::kReplace).c_str());
    return kOk;
  }
  if (plan.stages.empty())
    std::printf(
        "No stage of %s has an entry, an exit or an approval: its runs follow one another "
        "in the plan's order (docs/pilots.md, Gates).\n",
        printable(folder, limits::kDetailBytes).c_str());
  else
    print_status(core, printable(folder, limits::kDetailBytes));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen, *journal, view));
  print_early_ends(report, printable(folder, limits::kDetailBytes));
  return kOk;
}

void add_pilot_status(Command pilot, int& exit_code) {
  const Command command =
      pilot.add_subcommand("status", "each stage: what it came to, and what the next one waits for",
                           "Example:\n  proctor pilot status my-campaign");
  const auto args = arguments<ShowArgs>(command, exit_code, show);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--json", args->json, "for scripts");
}

struct PilotAct {
  OperatorActKind kind;
  const char *what, *footer;
};
constexpr std::array<PilotAct, 3> kPilotActs{{
    {OperatorActKind::kApproveStage, "let a stage begin, by what the stages before it came to",
     "Example:\n  proctor pilot approve my-campaign full --by Ada --reason \"costs are as "
     "planned\"\n"
     "It is of what `proctor pilot status` shows now: when that changes before the stage opens,\n"
     "it counts no longer. Criteria that do not hold cannot be approved. Names are claims, and\n"
     "count once each. With no coordinator at work: proctor resume goes on."},
    {OperatorActKind::kWaive,
     "let one criterion of a stage pass that does not hold: a declared deviation",
     "Example:\n  proctor pilot waive my-campaign limited spend_within --by Ada --reason \"prices "
     "rose\"\n"
     "STAGE and CRITERION are those of a line of `proctor pilot status` that says no or unknown."},
    {OperatorActKind::kCloseStage, "end a stage with what has been run of it: a declared deviation",
     "Example:\n  proctor pilot close my-campaign limited --by Ada --reason \"its money is "
     "spent\"\n"
     "Its runs that have not ended are cancelled, and none of them begins any more, also by a\n"
     "requeue or a raise. Its exit is decided over the tasks that ended under every method."},
}};

void add_pilot_act(Command pilot, int& exit_code, const PilotAct& c) {
  const std::string_view act = word_of(c.kind);
  const Command command = pilot.add_subcommand(act.substr(0, act.find('_')), c.what, c.footer);
  const auto args = arguments<ActArgs>(command, exit_code, act_and_tell);
  args->request.act = act;
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("STAGE", args->request.stage, "the stage's name").required();
  if (c.kind == OperatorActKind::kWaive)
    command
        .add_option("CRITERION", args->request.criterion,
                    "as in spend_within or \"invalid_share 0.05\"")
        .required();
  command.add_option("--by", args->request.by, "who decides so").required();
  command.add_option("--reason", args->request.reason, "why; it stands in the journal").required();
  if (c.kind == OperatorActKind::kApproveStage)
    command.add_option("--digest", args->request.digest,
                       "of what you have seen, or its first digits: refused if it is another now");
  command.add_flag("--json", args->json, "for scripts");
}
}  // namespace

std::string told_with_folder(std::string text, const std::string& folder) {
  constexpr std::string_view kProgram = "proctor ", kPlace = "CAMPAIGN";
  std::size_t at = 0;
  while ((at = text.find(kPlace, at)) != std::string::npos) {
    // Nothing but the names of a command stands between the program and the place for its folder.
    const std::size_t program = text.rfind(kProgram, at);
    const std::size_t end = at + kPlace.size();
    const bool is_command =
        program != std::string::npos && (end == text.size() || is_break(text[end])) &&
        std::all_of(text.begin() + static_cast<std::ptrdiff_t>(program),
                    text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char c) { return c == ' ' || c == '-' || ('a' <= c && c <= 'z'); });
    if (is_command) text.replace(at, kPlace.size(), folder);
    at = is_command ? at + folder.size() : end;
  }
  return text;
}

void add_pilot(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "pilot", "stages that wait for one another, and for people",
      "Example:\n  proctor pilot status my-campaign\n"
      "  proctor pilot approve my-campaign full --by Ada --reason \"costs are as planned\"");
  command.require_subcommand(1);
  add_pilot_status(command, exit_code);
  for (const PilotAct& c : kPilotActs) add_pilot_act(command, exit_code, c);
}
}  // namespace proctor::cli
