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
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/operate.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/control_protocol.h"

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

bool is_blank(const std::string& text) {
  return printable(text).find_first_not_of(' ') == std::string::npos;
}

Result<int> raise(RaiseArgs args) {
  if (args.by.empty()) args.by = user_name();
  Result<MicroUsd> to = parse_usd(args.usd);
  if (!to.ok()) return in_context("the new cap", std::move(to).error());
  if (is_blank(args.reason))
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
  const auto args = arguments<RaiseArgs>(command, exit_code, raise);
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
}

void add_share(Command budget, int& exit_code) {
  const Command command = budget.add_subcommand(
      "share", "say that an envelope of several campaigns is new: Redis has it from then on",
      "Example:\n  proctor budget share my-campaign\n"
      "  proctor budget share my-campaign theirs another   after all of them had ended, and Redis "
      "lost it\n"
      "Name every campaign that ever spent from it: what is not named does not count.");
  const auto folders = arguments<std::vector<std::string>>(command, exit_code, share_envelope);
  command.add_option("CAMPAIGN", *folders, "folders of campaigns that name it in budget.shared")
      .required();
}

void add_leave(Command budget, int& exit_code) {
  const Command command = budget.add_subcommand(
      "leave", "say that a killed campaign is not resumed: it takes no part in a shared envelope",
      "Example:\n  proctor budget leave my-campaign\n"
      "It holds what it spent, and the whole asks of attempts that never ended; what it might have "
      "spent besides\nis the others' again, and nobody waits for it.  One that ended by itself has "
      "left; say it once more where\nproctor budget shows it as unheard.");
  const auto folder = arguments<std::string>(command, exit_code, leave_envelope);
  command.add_option("CAMPAIGN", *folder, "its folder").required();
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

// proctor review CAMPAIGN RUN: books a person's time on a run that has ended (C_human; R158, R174).

namespace {
struct ReviewArgs {
  std::string folder, run, minutes, by, note;
};

Status check_words(const ReviewArgs& args) {
  if (is_blank(args.by)) return Error{Errc::kInvalid, "--by: found nothing, expected a name"};
  PROCTOR_CHECK_OK(check_text("--by", args.by, limits::kDetailBytes));
  return check_text("--note", args.note, limits::kDetailBytes);
}

// What a person's minute costs here.
Result<std::uint64_t> registered_price(const Campaign& campaign) {
  Result<std::uint64_t> price = human_minute_price(campaign.cost_model);
  if (price.ok()) return price;
  return Error{Errc::kInvalid,
               price.error().detail +
                   ", so a review has no price.\nPrices are registered with a campaign: put a row "
                   "such as human,minute,0.80 into pilot_cost_model.csv before the next one is "
                   "registered"};
}

// Says what does not fit and what to type; nothing was changed.
void refuse(const Campaign& campaign, const ReviewArgs& args, MicroUsd cost,
            const std::vector<ReviewShort>& where) {
  const std::string unit = money_word(campaign.cost_model);
  std::fprintf(stderr, "proctor: %s minutes of review cost %s %s, and they do not fit:\n",
               args.minutes.c_str(), format_usd(cost).c_str(), unit.c_str());
  for (const ReviewShort& s : where)
    std::fprintf(stderr, "  %s is short by %s %s: %s of %s are spent and %s reserved\n",
                 s.scope.c_str(), format_usd(s.short_by).c_str(), unit.c_str(),
                 format_usd(s.spent).c_str(), format_usd(s.cap).c_str(),
                 format_usd(s.reserved).c_str());
  std::fputs(
      "Nothing was charged or written down. A cap is passed by nobody's time either: raise it as a "
      "declared deviation,\nthen book the review again:\n",
      stderr);
  for (const ReviewShort& s : where)
    if (!follows_global(campaign, s.scope))
      std::fprintf(stderr, "  proctor budget raise %s %s %s --reason \"...\"\n",
                   args.folder.c_str(), s.scope.c_str(), format_usd(s.raise_to).c_str());
}

struct Booking {
  RunReviewed review;
  MoneyInput money;
  std::vector<BudgetAlert> alerts;  // of the levels that it reaches
};

// A review fills envelopes as a settlement does, so it is told as one is.
std::vector<BudgetAlert> reached_by(const FrozenCampaign& frozen, const RestoredState& state,
                                    const MoneyInput& money, const RunReviewed& review) {
  BudgetAlerts alerts(frozen.campaign.watch.alerts);
  for (const BudgetAlert& told : state.alerts) alerts.take(told);
  const MoneyView view = build_money(money);
  std::vector<BudgetAlert> out;
  for (const std::uint32_t s : money.runs[review.run.raw()].path) {
    const EnvelopeMoney& e = view.envelopes[s];
    if (follows_global(frozen.campaign, e.name)) continue;
    ScopeBalance balance{e.cap, e.spent, e.reserved};
    alerts.rearm(ScopeId(s), balance);
    balance.spent = balance.spent + review.charged;
    for (BudgetAlert& alert : alerts.reached(ScopeId(s), e.name, balance, review.at))
      out.push_back(std::move(alert));
  }
  return out;
}

// As the journal stands.  kConflict: the run has not ended.
Result<Booking> book(const FrozenCampaign& frozen, RunId run, std::uint64_t milli_minutes,
                     MicroUsd cost, const ReviewArgs& args) {
  if (const auto& shared = frozen.campaign.envelopes.shared)
    return Error{Errc::kInvalid, "this campaign shares " + shared->scope() +
                                     " with others: only runs are charged to it, so a review "
                                     "cannot be booked here"};
  PROCTOR_TRY(const RestoredState state, read_journal(frozen));
  const auto ended = std::ranges::find(state.ended, run, &EndedRun::run);
  if (ended == state.ended.end())
    return Error{Errc::kConflict, args.run +
                                      " has not ended: there is nothing to review yet (proctor "
                                      "explain says where it is)"};
  PROCTOR_TRY(MoneyInput money, read_money(frozen));
  const auto seq = static_cast<std::uint32_t>(state.reviews.size() + 1);
  const RunReviewed review{seq, run, milli_minutes, cost, args.by, args.note, wall_now()};
  std::vector<BudgetAlert> alerts = reached_by(frozen, state, money, review);
  return Booking{review, std::move(money), std::move(alerts)};
}

std::vector<JournalWrite> writes_of(const Booking& b) {
  std::vector<JournalWrite> out = {b.review};
  // Whoever is parked at one of these envelopes is short by that much more.
  const auto& path = b.money.runs[b.review.run.raw()].path;
  for (const MoneyInput::Parked& p : b.money.parked)
    if (std::ranges::find(path, p.scope) != path.end())
      out.push_back(
          RunParked{RunId(p.run), ScopeId(p.scope), p.short_by + b.review.charged, b.review.at});
  for (const BudgetAlert& alert : b.alerts) out.push_back(note_of(alert));
  return out;
}

void say(const Booking& b, const ReviewArgs& args) {
  std::string scopes;
  for (const std::uint32_t s : b.money.runs[b.review.run.raw()].path)
    scopes += (scopes.empty() ? "" : ", ") + b.money.scopes[s].name;
  std::printf("%s: %s minutes by %s, %s %s charged to %s (review %u of the campaign)\n",
              args.run.c_str(), format_minutes(b.review.milli_minutes).c_str(),
              printable(args.by).c_str(), format_usd(b.review.charged).c_str(),
              b.money.unit.c_str(), scopes.c_str(), b.review.seq);
  for (const BudgetAlert& alert : b.alerts)
    std::printf("%s\n", describe(alert, b.money.unit).c_str());
}

// The coordinator that runs books it; nothing: none runs.
Result<std::optional<int>> through_coordinator(const FrozenCampaign& frozen,
                                               const ReviewArgs& args) {
  const ControlRequest request{.act = kActReview,
                               .runs = args.run,
                               .reason = args.note,
                               .by = args.by,
                               .minutes = args.minutes};
  PROCTOR_TRY(const std::optional<ControlAnswer> answer, ask_coordinator(frozen.folder, request));
  if (!answer) return std::optional<int>();
  const std::string text = printable_lines(answer->text);
  if (answer->verdict == ControlAnswer::Verdict::kDone) {
    PROCTOR_TRY(const WrittenReport report, write_report_files(frozen));
    std::printf("%s: %s\n", args.run.c_str(), text.c_str());
    return std::optional<int>(kOk);
  }
  std::fprintf(stderr, "proctor: %s: %s\n", args.run.c_str(), text.c_str());
  if (answer->verdict == ControlAnswer::Verdict::kUnavailable)
    return std::optional<int>(kInfrastructure);
  const Json& why = answer->explanation;
  const bool is_short = why.is_object() && why.contains("code") && why["code"] == kCodeShort;
  return std::optional<int>(is_short ? kBudgetExhausted : kBadInput);
}

Result<int> review(const ReviewArgs& args) {
  Result<std::uint64_t> minutes = parse_minutes(args.minutes);
  if (!minutes.ok())
    return Error{Errc::kInvalid, "--minutes: found \"" + printable(args.minutes, 40) +
                                     "\", expected " + minutes.error().detail};
  PROCTOR_CHECK_OK(check_words(args));
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const RunId run, find_run(frozen.plan, args.run));
  PROCTOR_TRY(const std::uint64_t price, registered_price(frozen.campaign));
  PROCTOR_TRY(const std::optional<int> told, through_coordinator(frozen, args));
  if (told) return *told;
  const MicroUsd cost = review_cost(price, *minutes);
  PROCTOR_TRY(Booking booking, book(frozen, run, *minutes, cost, args));
  // The journal's lock keeps a coordinator from starting meanwhile.
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, Journal::open(frozen.folder.journal()));
  PROCTOR_TRY(booking, book(frozen, run, *minutes, cost, args));
  const std::vector<ReviewShort> where = check_review(booking.money, run.raw(), cost);
  if (!where.empty()) {
    refuse(frozen.campaign, args, cost, where);
    return kBudgetExhausted;
  }
  PROCTOR_CHECK_OK(journal->append_and_wait(writes_of(booking)));
  PROCTOR_CHECK_OK(journal->close());
  PROCTOR_TRY(const WrittenReport report, write_report_files(frozen));
  say(booking, args);
  return kOk;
}
}  // namespace

void add_review(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "review", "book a person's minutes on a run: the human part of its cost",
      "Example:\n  proctor review my-campaign json-lib/my-agent/r1 --minutes 12 --by Ada "
      "--note \"reads the diff\"\n"
      "Charged at the row human,minute of pilot_cost_model.csv to the run's envelopes, by the\n"
      "coordinator where one runs. Exit code 3 when an envelope is short: nothing is charged "
      "then.");
  const auto args = arguments<ReviewArgs>(command, exit_code, review);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("RUN", args->run, "TASK/METHOD/rN, as in the plan").required();
  command.add_option("--minutes", args->minutes, "how long it took, as in 12 or 7.5").required();
  command.add_option("--by", args->by, "who did it").required();
  command.add_option("--note", args->note, "what was found");
}
}  // namespace proctor::cli
