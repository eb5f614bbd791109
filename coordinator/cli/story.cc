#include "coordinator/cli/story.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <regex>
#include <set>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
namespace {
// Words in front of a fact's detail, by its kind; "" is the detail alone.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kPrefixes{
    {{"chosen; ", "intent"},
     {"granted: ", "granted"},
     {"denied: ", "denied"},
     {"never started: ", "voided"},
     {"lost: ", "lost"},
     {"cancelled: ", "cancelled"},
     {"result: ", "result"},
     {"settled: ", "settled"},
     {"parked: ", "parked"},
     {"reviewed: ", "reviewed"},
     {"", "epoch"},
     {"found running after a restart, on ", "adopted"},
     {"its worker was killed and goes on with it: ", "outlived"},
     {"", "worker_left"},
     {"not heard of for a while: worker ", "worker_suspect"},
     {"heard of again: worker ", "worker_back"},
     {"Redis is away: ", "redis_away"},
     {"task removed: ", "task_removed"}}};

// An object's members one after the other; anything else as it is.
std::string members_of(const std::string& detail) {
  const Result<Json> parsed = parse_json(detail);
  if (!parsed.ok() || !parsed->is_object()) return detail;
  std::string out;
  for (const auto& [key, value] : parsed->items())
    out += (out.empty() ? "" : ", ") + key + " " +
           (value.is_string() ? value.get<std::string>() : value.dump(-1, Json::Utf8::kReplace));
  return out;
}

Note note_of(const StoryFact& fact) {
  return {fact.at, fact.fact, fact.run, fact.attempt, fact.detail};
}

std::string raised(const StoryFact& fact, const std::string& unit) {
  const Result<BudgetRaised> raise = fact_of<BudgetRaised>(note_of(fact));
  if (!raise.ok()) return fact.detail;
  return "envelope " + raise->name + " raised from " + format_usd(raise->from) + " to " +
         format_usd(raise->to) + " " + unit + " by " +
         (raise->by.empty() ? "nobody named" : raise->by) + ": " + raise->reason;
}

// An operator's act: who, what, on what, why.
std::string operated(const StoryFact& fact) {
  const Result<OperatorFact> read = fact_of<OperatorFact>(note_of(fact));
  if (!read.ok()) return "operator: " + fact.detail;
  const OperatorAct& act = read->act;
  std::string out = "operator " + act.by + ": " + std::string(word_of(act.kind));
  if (act.now) out += " --now";
  for (const std::string& word :
       {act.selected, act.worker.raw(), act.stage, act.criterion, act.mode})
    if (!word.empty()) out += " " + word;
  if (!act.reason.empty()) out += ": " + act.reason;
  return out;
}

// What the stages before one came to, and that it was opened.
std::optional<std::string> of_gate(const Note& note) {
  if (const auto checked = fact_of<StageChecked>(note); checked.ok())
    return "before stage " + checked->stage +
           (checked->holds ? ": what it asks for holds" : ": what it asks for does not hold") +
           " (digest " + checked->digest.short_hex() + ")";
  const auto opened = fact_of<StageOpened>(note);
  if (!opened.ok()) return std::nullopt;
  std::string by;
  for (const std::string& name : opened->by) by += (by.empty() ? ", approved by " : ", ") + name;
  return "stage " + opened->stage + " is open" + by + " (digest " + opened->digest.short_hex() +
         ")";
}

std::string unprinted(const StoryFact& fact, const std::string& unit) {
  const Note note = note_of(fact);
  if (fact.fact == OperatorFact::kNote) return operated(fact);
  if (fact.fact == BudgetRaised::kNote) return raised(fact, unit);
  if (fact.fact == BudgetAlert::kNote)
    if (const auto alert = fact_of<BudgetAlert>(note); alert.ok()) return describe(*alert, unit);
  if (fact.fact == RunDominates::kNote)
    if (const auto dominance = fact_of<RunDominates>(note); dominance.ok())
      return describe(*dominance, unit);
  if (fact.fact == StageChecked::kNote || fact.fact == StageOpened::kNote)
    if (const auto gate = of_gate(note)) return *gate;
  if (fact.fact == WorkerJoined::kNote || fact.fact == WorkerJoined::kNoteAgain)
    if (const auto joined = fact_of<WorkerJoined>(note); joined.ok())
      return fmt::format("worker {}: {} with {} slots", joined->again ? "restarted" : "joined",
                         joined->worker.raw(), joined->slots);
  if (fact.fact == "redis_back") return "Redis is back";
  if (fact.fact == "drain" && fact.detail == "signal")
    return "interrupted: what runs is finished, nothing starts";
  if (fact.fact == "cancel" && fact.detail == "signal")
    return "interrupted again: what runs is cancelled";
  const auto known = std::ranges::find(kPrefixes, fact.fact,
                                       &std::pair<std::string_view, std::string_view>::second);
  if (known != kPrefixes.end()) return std::string(known->first) + fact.detail;
  if (fact.detail.empty()) return fact.fact;
  return fact.fact + ": " + (fact.detail.starts_with("{") ? members_of(fact.detail) : fact.detail);
}

// "2026-11-22", "2026-11-22T10:58:42.5+01:00"
std::optional<WallTime> parse_moment(std::string_view text) {
  using namespace std::chrono;
  static const std::regex kForm(
      R"((\d{4})-(\d\d)-(\d\d)([Tt ](\d\d):(\d\d):(\d\d)(\.(\d{0,18}))?([Zz]|([+-])(\d\d):(\d\d))?)?)");
  std::cmatch found;
  if (!std::regex_match(text.data(), text.data() + text.size(), found, kForm)) return std::nullopt;
  const auto part = [&](std::size_t n) { return found[n].matched ? std::stoi(found[n]) : 0; };
  const year_month_day day{year(part(1)), month(static_cast<unsigned>(part(2))),
                           std::chrono::day(static_cast<unsigned>(part(3)))};
  if (!day.ok() || 23 < part(5) || 59 < part(6) || 60 < part(7) || 23 < part(12) || 59 < part(13))
    return std::nullopt;
  const minutes ahead = (hours(part(12)) + minutes(part(13))) * (found[11] == "-" ? -1 : 1);
  const milliseconds fraction(std::stoi((found[9].str() + "000").substr(0, 3)));
  const milliseconds whole = sys_days(day).time_since_epoch() + hours(part(5)) + minutes(part(6)) +
                             seconds(part(7)) - ahead + fraction;
  return WallTime(whole.count());
}

std::optional<std::int64_t> parse_ago(std::string_view text) {
  constexpr std::array<std::pair<char, std::int64_t>, 4> kUnits{
      {{'s', 1'000}, {'m', 60'000}, {'h', 3'600'000}, {'d', 86'400'000}}};
  constexpr std::int64_t kMost = 1'000'000'000;
  std::int64_t n = 0;
  if (!take_number(text, n) || text.size() != 1 || n < 0 || kMost < n) return std::nullopt;
  for (const auto& [unit, ms] : kUnits)
    if (text.front() == unit) return n * ms;
  return std::nullopt;
}
// proctor story CAMPAIGN [RUN]: what happened, in order, each with its cause.

// Which facts of a journal belong into one run's story: its own, and what was done to its task, its
// method or an envelope of its, or to a list of runs of which it is one.
class RunStory {
 public:
  RunStory(const FrozenCampaign& frozen, RunId run)
      : run_(run), task_(frozen.plan.row(run).task), method_(frozen.plan.row(run).method) {
    const PlanView view = make_plan_view(frozen.campaign, frozen.plan);
    for (const ScopeId scope : view.path(run)) envelopes_.insert(view.scopes[scope.raw()].name);
    for (const Removal& r : frozen.registration.removals)
      if (r.task == frozen.plan.task(run).id)
        removals_.insert(removal_note(r.task, r.reason, r.by));
  }

  bool has(const StoryFact& fact) const {
    if (fact.run == run_) return true;
    const Note note = note_of(fact);
    // That another run failed is that one's story; that none of them is started is theirs all.
    if (note.kind == FaultFact::kNote) {
      const auto fault = fact_of<FaultFact>(note);
      if (!fault.ok() || fault->verdict == FaultFact::Verdict::kFailed) return false;
      const bool of_task = fault->subject.kind == FaultSubject::Kind::kTask;
      return fault->subject.index == (of_task ? task_ : method_);
    }
    if (fact.run) return false;
    if (note.kind == OperatorFact::kNote) {
      const auto act = fact_of<OperatorFact>(note);
      return act.ok() && std::ranges::find(act->act.runs, run_) != act->act.runs.end();
    }
    if (note.kind == BudgetRaised::kNote) {
      const auto raise = fact_of<BudgetRaised>(note);
      return raise.ok() && envelopes_.contains(raise->name);
    }
    return note.kind == kNoteTaskRemoved && removals_.contains(note.detail);
  }

 private:
  RunId run_;
  std::uint32_t task_ = 0, method_ = 0;
  std::set<std::string> envelopes_;
  std::set<std::string> removals_;  // of its task, as the journal's notes hold them
};

struct StoryArgs {
  std::string folder, run, since;
  bool json = false;
};

std::string name_of(const Plan& plan, RunId run) {
  return run.raw() < plan.size() ? plan.run_name(run) : "run " + std::to_string(run.raw());
}

void print_json(const Plan& plan, const std::string& unit, const StoryFact& fact) {
  JsonWriter out;
  out("at", to_rfc3339(fact.at));
  out("at_ms", fact.at);
  out("fact", fact.fact);
  out("detail", fact.detail);
  out("text", sentence_of(fact, unit));
  out("run", fact.run ? name_of(plan, *fact.run) : std::string(), kOptional);
  out("attempt", fact.attempt, kOptional);
  std::printf("%s\n", out.take().dump(-1, Json::Utf8::kReplace, true).c_str());
}

void print_text(const Plan& plan, const std::string& unit, const StoryFact& fact,
                std::optional<RunId> told) {
  std::string who;
  if (fact.run && fact.run != told) who = name_of(plan, *fact.run);
  if (fact.attempt)
    who += (who.empty() ? "" : " ") + ("attempt " + std::to_string(fact.attempt->raw()));
  if (!who.empty()) who += "  ";
  std::printf("%s  %s%s\n", to_rfc3339(fact.at).c_str(), who.c_str(),
              sentence_of(fact, unit).c_str());
}

Result<int> tell_story(const StoryArgs& args) {
  WallTime since(0);
  if (!args.since.empty()) {
    PROCTOR_TRY(since, parse_since(args.since, wall_now()));
  }
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  std::optional<RunId> run;
  if (!args.run.empty()) {
    PROCTOR_TRY(run, find_run(frozen.plan, args.run));
  }
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  const std::string unit = money_word(frozen.campaign.cost_model);
  std::optional<RunStory> its;
  if (run) its.emplace(frozen, *run);
  bool anything = false;
  const auto tell = [&](const StoryFact& fact) {
    if (its && !its->has(fact)) return;
    anything = true;
    StoryFact told = fact;
    // For one run alone, because it reads all of an attempt's evidence.
    if (its && fact.fact == "result" && fact.run && fact.attempt)
      if (const Result<std::string> again =
              judged_again(frozen.folder.attempt(name_of(frozen.plan, *fact.run), *fact.attempt));
          again.ok() && !again->empty())
        told.detail += "; " + *again;
    if (args.json)
      print_json(frozen.plan, unit, told);
    else
      print_text(frozen.plan, unit, told, run);
  };
  PROCTOR_CHECK_OK(journal.each_fact(run, since, tell, unit));
  if (!anything && !args.json)
    std::printf("nothing has happened%s\n", args.since.empty() ? " yet" : " since then");
  return kOk;
}
}  // namespace

std::string sentence_of(const StoryFact& fact, const std::string& unit) {
  return printable(unprinted(fact, unit), limits::kDetailBytes * 2);
}

Result<WallTime> parse_since(std::string_view text, WallTime now) {
  if (const auto ago = parse_ago(text)) return WallTime(now.raw() - *ago);
  if (const auto moment = parse_moment(text)) return *moment;
  return Error{Errc::kInvalid, "--since: found \"" + printable(text, 60) +
                                   "\", expected a time as 2026-11-22T10:58:42Z, or how long ago: "
                                   "90s, 15m, 2h, 3d"};
}

void add_story(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("story", "what happened, in order, each with its cause",
                         "Example:\n  proctor story my-campaign --since 2h\n"
                         "  proctor story my-campaign json-lib/noop/r1 --json\n"
                         "From the journal, of one RUN also how often its patch was judged again; "
                         "a coordinator may be\n"
                         "running. With --json one object a line.");
  const auto args = arguments<StoryArgs>(command, exit_code, tell_story);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option(
      "RUN", args->run,
      "TASK/METHOD/rN: of this run, and what was done to its task, method or envelopes");
  command.add_option("--since", args->since,
                     "a time as 2026-11-22T10:58:42Z, or how long ago: 90s, 15m, 2h, 3d");
  command.add_flag("--json", args->json, "for scripts");
}
}  // namespace proctor::cli
