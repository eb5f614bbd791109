// proctor budget CAMPAIGN: where the money is.  proctor budget raise: a declared deviation (R163).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/control_client.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/operate.h"
#include "coordinator/cli/parked_advice.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/cli/status_file.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kFolderShown = 400;

struct ShowArgs {
  std::string folder, by;
  bool watch = false, json = false;
};
struct RaiseArgs {
  std::string folder, scope, usd, reason, by;
  bool json = false;
};

Result<int> show(const ShowArgs& args) {
  const std::optional<MoneyBy> by = money_by(args.by);
  if (!args.by.empty() && !by)
    return Error{Errc::kInvalid,
                 "--by " + printable(args.by) +
                     ": expected category, method, stratum or task, as in: proctor budget " +
                     printable(args.folder, kFolderShown) + " --by method"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  for (;;) {
    PROCTOR_TRY(const MoneyInput input, read_money(frozen));
    const MoneyView view = build_money(input);
    std::vector<MoneyGroup> groups;
    if (by) groups = group_money(input, *by);
    const std::string text =
        args.json ? with_shared_envelope(frozen, render_money_json(view, args.by, groups))
                  : render_money_text(view) + (by ? render_groups_text(groups) : "") +
                        shared_envelope_text(frozen, input.unit);
    if (args.watch && !args.json) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    if (!args.watch || !input.running) return kOk;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::vector<JournalWrite> writes_of(const FrozenCampaign& frozen, const MoneyInput& input,
                                    const RaiseArgs& args, MicroUsd to) {
  std::vector<JournalWrite> out;
  const WallTime at = wall_now();
  for (std::uint32_t s = 0; s < input.scopes.size(); ++s) {
    const auto& scope = input.scopes[s];
    const bool follows = args.scope == "global" && follows_global(frozen.campaign, scope.name);
    if (scope.name != args.scope && !follows) continue;
    out.push_back(ScopeDefined{ScopeId(s), scope.name, to, scope.cap});
    const std::string reason = follows ? "follows global: " + args.reason : args.reason;
    out.push_back(
        note_of(BudgetRaised{ScopeId(s), scope.name, scope.cap, to, reason, args.by, at}));
    for (const MoneyInput::Parked& p : input.parked)
      if (p.scope == s) out.push_back(RunUnparked{RunId(p.run)});
  }
  return out;
}

// Said before the raise is asked for: what it means for a stage that opens by what this one spends.
void tell_gates(const Campaign& campaign, const RaiseArgs& args) {
  for (std::size_t s = 1; s < campaign.stages.size(); ++s) {
    const Stage &before = campaign.stages[s - 1], &next = campaign.stages[s];
    std::vector<StageCriterion> asked = before.rules.exit;
    asked.insert(asked.end(), next.rules.entry.begin(), next.rules.entry.end());
    if (std::ranges::count(asked, StagePredicate::kSpendWithin, &StageCriterion::is) == 0) continue;
    const auto own = campaign.envelopes.stage.find(before.name);
    const bool follows = own == campaign.envelopes.stage.end();
    if (args.scope != (follows ? "global" : "stage:" + before.name)) continue;
    fmt::print(stderr,
               "note: unless it is open, stage {} goes on asking that stage {} spent no more than "
               "the {} {} that were registered (spend_within; proctor pilot waive), and approvals "
               "of before the raise lapse\n",
               next.name, before.name,
               format_usd(follows ? campaign.envelopes.global : own->second),
               money_word(campaign.cost_model));
  }
}

Result<int> raise(const RaiseArgs& args) {
  Result<MicroUsd> to = parse_usd(args.usd);
  if (!to.ok()) return in_context("the new cap", std::move(to).error());
  if (printable(args.reason).find_first_not_of(' ') == std::string::npos)
    return Error{Errc::kInvalid,
                 "a deviation needs a reason, for it stands in every report: --reason TEXT"};
  if (limits::kDetailBytes < args.reason.size() || limits::kDetailBytes < args.by.size())
    return Error{Errc::kInvalid,
                 fmt::format("--reason has {} bytes and --by {}, and {} is the most "
                             "of each: say it shorter, and keep the rest in a file "
                             "that the reason names",
                             args.reason.size(), args.by.size(), limits::kDetailBytes)};
  if (!is_utf8(args.reason) || !is_utf8(args.by))
    return Error{Errc::kInvalid, fmt::format("{} is not UTF-8, and every report quotes it: type it "
                                             "again in a terminal whose locale is one of UTF-8",
                                             is_utf8(args.reason) ? "--by" : "--reason")};
  const ControlRequest request{
      .act = "raise", .reason = args.reason, .by = args.by, .scope = args.scope, .to = args.usd};
  PROCTOR_TRY(const StateFolder state, campaign_folder(args.folder));
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  tell_gates(frozen.campaign, args);
  PROCTOR_TRY(auto live, ask_coordinator(state, request));
  if (live) return tell(request, {std::move(*live), true}, args.json);
  PROCTOR_TRY(MoneyInput input, read_money(frozen));
  if (input.scopes.empty()) return not_begun(args.folder);
  PROCTOR_CHECK_OK(check_raise(input, args.scope, *to));
  // The journal's lock keeps a coordinator from starting meanwhile.
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, Journal::open(frozen.folder.journal()));
  PROCTOR_TRY(input, read_money(frozen));
  PROCTOR_CHECK_OK(check_raise(input, args.scope, *to));
  PROCTOR_CHECK_OK(journal->append_and_wait(writes_of(frozen, input, args, *to)));
  PROCTOR_CHECK_OK(journal->close());
  PROCTOR_TRY(const WrittenReport report, write_report_files(frozen));
  const std::string done = args.scope + " may now hold " + format_usd(*to) + " " +
                           money_word(frozen.campaign.cost_model) +
                           "; the deviation is in the journal and in every report.";
  if (args.json)
    return tell(request, {{ControlAnswer::Verdict::kDone, done, {}}, false}, args.json);
  StatusReader reader(args.folder);
  PROCTOR_TRY(const std::optional<SeenStatus> now, reader.look());
  const bool over = now && now->stands == SeenStatus::Stands::kComplete &&
                    now->status.parked == now->status.faulty;
  std::printf("%s\n%s\n", done.c_str(),
              over ? "No run waits for money: there is nothing to go on with."
                   : ("Go on with: " + resume_command(args.folder, frozen.campaign)).c_str());
  return kOk;
}

void add_raise(Command budget, int& exit_code) {
  const Command command = budget.add_subcommand(
      "raise", "give an envelope more money: a declared deviation from the registration",
      "Example:\n  proctor budget raise my-campaign task:json-lib 12.50 --by Ada "
      "--reason \"prices rose on Monday\"\n"
      "Runs that were parked there start at once, or with the next resume when no coordinator "
      "runs.");
  auto args = std::make_shared<RaiseArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command
      .add_option("SCOPE", args->scope,
                  "global, stage:NAME, task:ID, method:NAME, stratum:KEY=LEVEL or shared:NAME")
      .required();
  command
      .add_option("AMOUNT", args->usd,
                  "the new cap, as in 12.50: USD, or the units of the built-in prices")
      .required();
  command.add_option("--reason", args->reason, "why; it stands in every report").required();
  command.add_option("--by", args->by, "who decided it (default: you)");
  command.add_flag("--json", args->json, "for scripts");
  command.callback([=, &exit_code] {
    if (args->by.empty()) args->by = user_name();
    exit_code = code_of(raise(*args));
  });
}

void add_share(Command budget, int& exit_code) {
  const Command command = budget.add_subcommand(
      "share", "say that an envelope of several campaigns is new: Redis has it from then on",
      "Example:\n  proctor budget share my-campaign\n"
      "  proctor budget share my-campaign theirs another   after all of them had ended, and Redis "
      "lost it\n"
      "Name every campaign that ever spent from it: what is not named does not count.");
  auto folders = std::make_shared<std::vector<std::string>>();
  command.add_option("CAMPAIGN", *folders, "folders of campaigns that name it in budget.shared")
      .required();
  command.callback([=, &exit_code] { exit_code = code_of(share_envelope(*folders)); });
}

void add_leave(Command budget, int& exit_code) {
  const Command command = budget.add_subcommand(
      "leave", "say that a killed campaign is not resumed: it takes no part in a shared envelope",
      "Example:\n  proctor budget leave my-campaign\n"
      "It holds what it spent, and the whole asks of attempts that never ended; what it might have "
      "spent besides\nis the others' again, and nobody waits for it.  One that ended by itself has "
      "left; say it once more where\nproctor budget shows it as unheard.");
  auto folder = std::make_shared<std::string>();
  command.add_option("CAMPAIGN", *folder, "its folder").required();
  command.callback([=, &exit_code] { exit_code = code_of(leave_envelope(*folder)); });
}

}  // namespace

void add_budget(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "budget", "where the money of a campaign is, to the cent",
      "Example:\n  proctor budget my-campaign --by method\n"
      "  proctor budget raise my-campaign global 40.00 --reason \"two more tasks\"");
  auto args = std::make_shared<ShowArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder");
  command.add_flag("--watch", args->watch, "again every second, until it ends");
  command.add_flag("--json", args->json, "exact to the micro-dollar, for scripts");
  command.add_option("--by", args->by, "also by category, method, stratum or task");
  add_raise(command, exit_code);
  add_share(command, exit_code);
  add_leave(command, exit_code);
  command.callback([=, &exit_code] {
    if (command.has_parsed_subcommand()) return;  // it has its own
    if (args->folder.empty()) throw_missing("CAMPAIGN");
    exit_code = code_of(show(*args));
  });
}

}  // namespace proctor::cli
